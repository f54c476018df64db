"""PGN: games as people write them, beside python-chess; any octets; packed files."""

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
import zstandard
from folders import scratch
from fuzzing import ACCEPTED, Target, Verdict
from mutation import octets, one_of, words
from position_targets import random_games, refuses

from chess_snn.data import GameRecords
from chess_snn.data.schema import check_records
from chess_snn.games import get_game
from chess_snn.games.chess import action_of_move, from_board
from chess_snn.pgn import format_game, read_games, standard_tags
from chess_snn.pgn.source import read_chunks

# python-chess tells the log of every illegal move.
logging.getLogger("chess.pgn").setLevel(logging.CRITICAL)

GAME = get_game("chess")
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
"""Refusals of games whose moves python-chess may find good."""


def try_game(data: bytes) -> Verdict:
    """One game: what we accept python-chess accepts as the same, and what it accepts we do."""
    verdict = try_text(data)
    plain = _for_python_chess(data)
    if plain is None:
        return verdict
    text, result = plain
    records, report = read_games(data)
    assert report.games_read == 1, report
    game = chess.pgn.read_game(io.StringIO(text))
    fen = game.headers.get("FEN", chess.STARTING_FEN)
    if records is None:
        (kind,) = report.refused
        if kind == "bad_position":
            assert refuses(fen)
        elif kind not in _NOT_ABOUT_MOVES:
            assert game.errors, f"{kind}, though python-chess finds nothing wrong"
        return Verdict(False, ("comparable", kind))
    assert not game.errors, game.errors
    board, moves = game.board(), list(game.mainline_moves())
    np.testing.assert_array_equal(records.states[0], from_board(board)[:5])
    assert len(moves) == records.num_positions
    for action, move in zip(records.actions.tolist(), moves, strict=True):
        assert action == action_of_move(move, board.turn)
        board.push(move)
    assert RESULTS[int(records.outcomes_white[0])] == result
    return Verdict(True, ("comparable", int(records.terminations[0])))


def try_text(data: bytes) -> Verdict:
    """Any text: every game is refused for one reason, or follows the rules from its first state."""
    records, report = read_games(data)
    assert report.games + report.games_refused == report.games_read
    assert sum(report.refused.values()) == report.games_refused
    if records is not None:
        assert records.num_games == report.games
        assert records.num_positions == report.positions
        check_records(records)
        for k in range(records.num_games):
            rows = slice(*records.game_offsets[k : k + 2])
            _assert_follows(records.states[rows], records.actions[rows])
    return Verdict(report.games > 0, (tuple(sorted(report.refused)), min(report.games, 2)))


def _assert_follows(states: np.ndarray, actions: np.ndarray) -> None:
    batch = GAME.allocate(1)
    GAME.reset(batch, np.zeros(1, np.int64), states[:1])
    for state, action in zip(states, actions, strict=True):
        np.testing.assert_array_equal(batch.state[0, :5], state)
        assert action in batch.legal_actions[0, : batch.num_legal[0]]
        GAME.step(batch, np.array([action], np.int16))


def _for_python_chess(data: bytes) -> tuple[str, str] | None:
    """The game without variations, its moves on one line, and how it ends.

    None where both would not read the same words.

    python-chess checks the moves of variations, which we pass over; it ends a game at an empty
    line, and skips what is no word of PGN.
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


def try_file(data: bytes) -> Verdict:
    """A file of any packing: its chunks are its text, whole and in order."""
    path = scratch() / "games.pgn"
    path.write_bytes(data)
    text = b"".join(chunk.text for chunk in read_chunks(path))
    plain = _unpacked(data)
    assert plain is not None, "accepted, though gzip or zstd does not unpack it"
    assert plain == text or not text, "the chunks are not the file"
    return Verdict(bool(text), (data[:2], bool(text)))


def try_export(data: bytes) -> Verdict:
    """Positions and moves that somebody wrote into a shard: what is exported imports the same."""
    records = _with_columns(_recorded(), data)
    texts = [format_game(records, k, standard_tags(records, k)) for k in range(records.num_games)]
    again, report = read_games("".join(texts).encode())
    if report.refused:  # another last move may contradict the result
        assert report.refused.keys() == {"contradicting_result"}, report
        return Verdict(True, "contradicting")
    assert again is not None
    np.testing.assert_array_equal(again.states, records.states)
    np.testing.assert_array_equal(again.actions, records.actions)
    return ACCEPTED


@cache
def _recorded() -> GameRecords:
    records, _ = read_games(b"\n".join(_games()[:4]))
    assert records is not None
    return records


def _with_columns(records: GameRecords, data: bytes) -> GameRecords:
    """``data`` as states, then actions, cut or filled up to their size."""
    num_bytes = records.states.nbytes + records.actions.nbytes
    column = np.frombuffer(data[:num_bytes].ljust(num_bytes, b"\0"), np.uint8).copy()
    states, actions = np.split(column, [records.states.nbytes])
    return replace(
        records, states=states.view(np.uint64).reshape(records.states.shape),
        actions=actions.view(np.int16),
    )


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


def _games() -> list[bytes]:
    """Written by python-chess, some with the glyphs, comments and variations that people add."""
    stream = random.Random(2)
    texts = []
    for k, board in enumerate(random_games(stream, 24, 14)):
        game = chess.pgn.Game.from_board(board)
        result = board.result()
        game.headers["Result"] = stream.choice(_ENDS) if result == "*" else result
        if k % 3 == 0:
            for node in game.mainline():
                node.comment = stream.choice(("", "", "a comment (1. e4)", "[%eval 0.3]"))
                node.nags = stream.choice(((), (), (1,), (146,)))
                if (others := list(node.parent.board().legal_moves)) and stream.random() < 0.2:
                    node.parent.add_variation(stream.choice(others))
        texts.append(str(game).encode() + b"\n")
    return texts


def _change_moves(stream: random.Random, data: bytes, other: bytes) -> bytes:
    """The movetext changed by words; tag pairs whole, but for the result and the position."""
    tags, gap, moves = data.partition(b"\n\n")
    if stream.random() < 0.2:
        result = stream.choice([end.encode() for end in _ENDS])
        tags = re.sub(rb'\[Result "[^"]*"\]', b'[Result "' + result + b'"]', tags)
    if stream.random() < 0.1:
        fens = re.findall(rb'\[FEN "[^"]*"\]', other)
        tags = re.sub(rb'\[FEN "[^"]*"\]', fens[0] if fens else b'[White "x"]', tags)
    if stream.random() < 0.9:
        moves = _WORDS(stream, moves, other.partition(b"\n\n")[2])
    return tags + gap + moves


def _packed(text: bytes) -> list[bytes]:
    """Plain and packed, in one piece and in two."""
    packed = [gzip.compress(text, mtime=0), zstandard.compress(text)]
    return [text, *packed, *(2 * file for file in packed)]


MOVES = (
    b"e4", b"e5", b"Nf3", b"Nbd2", b"N1d2", b"Qxd5+", b"exd5", b"O-O", b"O-O-O", b"0-0", b"a8=Q",
    b"axb8=N", b"a8q", b"e1=Q#", b"e2e4", b"e2-e4", b"g1f3", b"e1g1", b"Ng1f3", b"Ke2", b"Kxe8",
    b"--", b"Z0", b"0000", b"Pe4", b"e9", b"exd6e.p.", b"N", b"1.", b"12...", b"99.", b"$1",
    b"$999", b"!", b"?!", b"{a}", b"{", b"}", b"(", b")", b"(1. e4 e5)", b";", b"%", b"+-", b"=",
    b"1-0", b"0-1", b"1/2-1/2", b"1/2", b"*",
)
TAGS = (
    b'[Event "x"]\n', b'[Result "1-0"]\n', b'[Result "*"]\n', b'[SetUp "1"]\n', b'[FEN "x"]\n',
    b'[FEN "7k/5Q2/8/8/8/8/8/K7 w - - 0 1"]\n', b'[Variant "Chess960"]\n',
    b'[CutValueWhite "0.5"]\n', b'[StartKind "practice"]\n', b"[", b'"]\n', b"\n\n", b"\n%", b"\n",
)
_WORDS = words(MOVES)

TARGETS = (
    Target(
        "pgn-game", try_game, _change_moves, _games, weight=140,
    ),
    Target(
        "pgn-text", try_text, one_of((2, octets((*MOVES, *TAGS))), (1, words((*MOVES, *TAGS)))),
        lambda: [a + b"\n" + b for a, b in zip(_games()[::3], _games()[1::3], strict=False)],
        weight=100,
    ),
    Target(
        "pgn-file", try_file, octets((b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18")),
        lambda: [file for game in _games()[:3] for file in _packed(game)], weight=30,
    ),
    Target(
        "pgn-export", try_export, octets(),
        lambda: [_recorded().states.tobytes() + _recorded().actions.tobytes()], weight=20,
    ),
)
