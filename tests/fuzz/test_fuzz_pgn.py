"""PGN: games as people write them, beside python-chess; any bytes; compressed files."""

import gzip
import io
import logging
import random
import re
import zlib
from dataclasses import replace
from functools import cache

import chess
import chess.pgn
import numpy as np
import pytest
import zstandard
from damaged_inputs import changed_bytes, changed_words, either, fuzz, scratch
from hypothesis import strategies as st
from test_fuzz_positions import GAME, random_games, refuses

from chess_snn.data import GameRecords
from chess_snn.data.records import check_records
from chess_snn.games.base import ONGOING
from chess_snn.games.chess import action_of_move, from_board
from chess_snn.pgn.reading import read_games
from chess_snn.pgn.source import read_chunks
from chess_snn.pgn.writing import format_game, standard_tags

# python-chess logs every illegal move.
logging.getLogger("chess.pgn").setLevel(logging.CRITICAL)

RESULTS = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}
_MOVE = r"(?:[NBKRQ]?[a-h]?[1-8]?[-x]?[a-h][1-8](?:=?[nbrqNBRQ])?|O-O(?:-O)?|0-0(?:-0)?)"
_TOKEN = re.compile(rf"\d{{1,3}}\.+|(?:\d{{1,3}}\.+)?{_MOVE}[+#]{{0,2}}[!?]{{0,2}}|\$\d{{1,3}}")
_TAG = re.compile(
    r'\[(Event|Site|Date|Round|White|Black|Result|FEN|SetUp) "[^"\\\r\n\0]+"\]'
)
_COMMENT = re.compile(r"\{[^{}]*\}")
_VARIATION = re.compile(r"\([^(){};]*\)")
_ENDS = (*RESULTS.values(), "*")
_NOT_ABOUT_MOVES = {"no_moves", "unknown_result", "contradicting_result", "bad_header"}
"""Refusals of games whose moves python-chess may accept."""

_WORDS = (
    b"e4", b"e5", b"Nf3", b"Nbd2", b"N1d2", b"Qxd5+", b"exd5", b"O-O", b"O-O-O", b"0-0", b"a8=Q",
    b"axb8=N", b"a8q", b"e1=Q#", b"e2e4", b"e2-e4", b"g1f3", b"e1g1", b"Ng1f3", b"Ke2", b"Kxe8",
    b"--", b"Z0", b"0000", b"Pe4", b"e9", b"exd6e.p.", b"N", b"1.", b"12...", b"99.", b"$1",
    b"$999", b"!", b"?!", b"{a}", b"{", b"}", b"(", b")", b"(1. e4 e5)", b";", b"%", b"+-", b"=",
    b"1-0", b"0-1", b"1/2-1/2", b"1/2", b"*",
)
_TAGS = (
    b'[Event "x"]\n', b'[Result "1-0"]\n', b'[Result "*"]\n', b'[SetUp "1"]\n', b'[FEN "x"]\n',
    b'[FEN "7k/5Q2/8/8/8/8/8/K7 w - - 0 1"]\n', b'[Variant "Chess960"]\n',
    b'[CutValueWhite "0.5"]\n', b'[StartKind "practice"]\n', b"[", b'"]\n', b"\n\n", b"\n%", b"\n",
)


@cache
def written_games() -> tuple[bytes, ...]:
    """Games by python-chess, some with the glyphs, comments and variations that people add."""
    stream, texts = random.Random(2), []
    for number, board in enumerate(random_games(24, 14)):
        game = chess.pgn.Game.from_board(board)
        result = board.result()
        game.headers["Result"] = stream.choice(_ENDS) if result == "*" else result
        for node in game.mainline() if number % 3 == 0 else ():
            node.comment = stream.choice(("", "", "a comment (1. e4)", "[%eval 0.3]"))
            node.nags = stream.choice(((), (), (1,), (146,)))
            if stream.random() < 0.2:
                node.parent.add_variation(stream.choice(list(node.parent.board().legal_moves)))
        texts.append(str(game).encode() + b"\n")
    return tuple(texts)


@st.composite
def changed_game(draw, valid):
    """Change words of the movetext; of the tag pairs only the result and the position."""
    tags, gap, moves = draw(st.sampled_from(valid)).partition(b"\n\n")
    other = draw(st.sampled_from(valid))
    for tag in draw(st.sets(st.sampled_from((rb'\[Result "[^"]*"\]', rb'\[FEN "[^"]*"\]')))):
        if found := re.search(tag, other):
            tags = re.sub(tag, found[0], tags)
    return tags + gap + draw(changed_words(*_WORDS)([moves]))


@pytest.mark.fault(20)
@fuzz(
    written_games, changed_game,
    b'[Event "?"]\n[Site "?"]\n[Date "????.??.??"]\n[Round "?"]\n[White "?"]\n[Black "?"]\n'
    b'[Result "1/2-1/2"]\n[FEN "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1"]\n'
    b'[SetUp "1"]\n\n1. Qhh5 ( 1. Qee8;) 1/2-1/2\n',
)
def test_pgn_game(data):
    """Both accept the same inputs, we and python-chess, and read them alike."""
    check_text(data)
    plain = _for_python_chess(data)
    if plain is None:
        return
    text, result = plain
    records, report = read_games(data)
    assert report.games_read == 1, report
    game = chess.pgn.read_game(io.StringIO(text))
    if records is None:
        (kind,) = report.refused
        if kind == "bad_position":
            assert refuses(game.headers.get("FEN", chess.STARTING_FEN))
        elif kind not in _NOT_ABOUT_MOVES:
            assert game.errors, f"{kind}, though python-chess finds no error"
        return
    assert not game.errors, game.errors
    board, moves = game.board(), list(game.mainline_moves())
    np.testing.assert_array_equal(records.states[0], from_board(board)[:5])
    assert len(moves) == records.num_positions
    for action, move in zip(records.actions.tolist(), moves, strict=True):
        assert action == action_of_move(move, board.turn)
        board.push(move)
    assert RESULTS[int(records.outcomes_white[0])] == result


def _for_python_chess(data: bytes) -> tuple[str, str] | None:
    """The game without variations, its moves on one line, and its result.

    None where both would not read the same words: python-chess checks the moves of variations,
    which we skip; it ends a game at an empty line, and skips unknown words.
    """
    try:
        tags, gap, moves = data.decode("ascii").partition("\n\n")
    except UnicodeDecodeError:
        return None
    if not gap or "[Event" in moves or not all(map(_TAG.fullmatch, tags.split("\n"))):
        return None
    plain = _COMMENT.sub(" ", moves)
    while plain != (shorter := _VARIATION.sub(" ", plain)):
        plain = shorter
    *tokens, result = plain.split() or [""]
    if result not in _ENDS or not all(map(_TOKEN.fullmatch, tokens)):
        return None
    return f"{tags}\n\n{' '.join([*tokens, result])}\n", result


def check_text(data):
    """Every game is refused for one reason, or follows the rules from its first state."""
    records, report = read_games(data)
    assert report.games + report.games_refused == report.games_read
    assert sum(report.refused.values()) == report.games_refused
    if records is None:
        return
    assert (records.num_games, records.num_positions) == (report.games, report.positions)
    check_records(records)
    for k in range(records.num_games):
        rows = slice(*records.game_offsets[k : k + 2])
        batch = GAME.allocate(1)
        GAME.reset(batch, np.zeros(1, np.int64), records.states[rows][:1])
        for state, action in zip(records.states[rows], records.actions[rows], strict=True):
            np.testing.assert_array_equal(batch.state[0, :5], state)
            if batch.termination[0] != ONGOING:
                break  # a draw by rule, which people may play on
            assert action in batch.legal_actions[0, : batch.num_legal[0]]
            GAME.step(batch, np.array([action], np.int16))


test_pgn_text = pytest.mark.fault(20)(fuzz(
    lambda: [first + b"\n" + second for first, second in zip(
        written_games()[::3], written_games()[1::3], strict=True
    )],
    either(changed_bytes(*_WORDS, *_TAGS), changed_words(*_WORDS, *_TAGS)),
)(check_text))


@cache
def _packed_games() -> list[bytes]:
    """Plain and compressed, in one piece and in two."""
    text = written_games()[0]
    packed = [gzip.compress(text, mtime=0), zstandard.compress(text)]
    return [text, *packed, *(2 * file for file in packed)]


@pytest.mark.fault(20)
@fuzz(_packed_games, changed_bytes(b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18"))
def test_pgn_file(data):
    """A file's chunks are its text, whole and in order."""
    path = scratch() / "games.pgn"
    path.write_bytes(data)
    text = b"".join(chunk.text for chunk in read_chunks(path))
    plain = _unpacked(data)
    assert plain is not None, "accepted, though gzip or zstd does not decompress it"
    assert plain == text or not text, "the chunks are not the file"


def _unpacked(data: bytes) -> bytes | None:
    try:
        if data[:2] == b"\x1f\x8b":
            return gzip.decompress(data)
        if data[:4] in (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18"):
            stream = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
            return stream.read()
    except (OSError, EOFError, zlib.error, zstandard.ZstdError):
        return None
    return data


@cache
def _recorded() -> GameRecords:
    records, _ = read_games(b"\n".join(written_games()[:4]))
    assert records is not None
    return records


@fuzz(lambda: [_recorded().states.tobytes() + _recorded().actions.tobytes()], changed_bytes())
def test_pgn_export(data):
    """Positions and moves of any shard: what is exported is imported as the same."""
    records = _recorded()
    num_bytes = records.states.nbytes + records.actions.nbytes
    column = np.frombuffer(data[:num_bytes].ljust(num_bytes, b"\0"), np.uint8).copy()
    states, actions = np.split(column, [records.states.nbytes])
    records = replace(
        records, states=states.view(np.uint64).reshape(records.states.shape),
        actions=actions.view(np.int16),
    )
    texts = [format_game(records, k, standard_tags(records, k)) for k in range(records.num_games)]
    again, report = read_games("".join(texts).encode())
    if report.refused:  # another last move may contradict the result
        assert report.refused.keys() == {"contradicting_result"}, report
        return
    assert again is not None
    np.testing.assert_array_equal(again.states, records.states)
    np.testing.assert_array_equal(again.actions, records.actions)
