"""PGN as it is found: good games beside python-chess, bad ones by kind, none imported by half."""

import io

import chess
import chess.pgn
import numpy as np
import pytest

from chess_snn.data import START_KINDS
from chess_snn.games import get_game
from chess_snn.games.chess import action_of_move, from_board
from chess_snn.pgn.reading import find_games, read_games
from chess_snn.pgn.report import FAULT_KINDS

GAME = get_game("chess")


def with_tags(moves, result="1-0", more=""):
    return f'[Event "x"]\n[Result "{result}"]\n{more}\n{moves} {result}\n'.encode()


def assert_same_game(records, k, game):
    """Game ``k`` of ``records`` has the positions and moves of python-chess's ``game``."""
    rows = range(*records.game_offsets[k : k + 2])
    board = game.board()
    moves = list(game.mainline_moves())
    assert len(rows) == len(moves)
    seen = {}
    for row, move in zip(rows, moves, strict=True):
        key = board._transposition_key()
        expected = from_board(board)[:5]
        expected[4] |= np.uint64(min(seen.get(key, 0), 3) << 20)
        seen[key] = seen.get(key, 0) + 1
        np.testing.assert_array_equal(records.states[row], expected, str(board))
        assert records.actions[row] == action_of_move(move, board.turn)
        board.push(move)
    assert {1: "1-0", 0: "1/2-1/2", -1: "0-1"}[records.outcomes_white[k]] == game.headers["Result"]


GOOD = {
    "plain": b'[Event "x"]\n[Result "1-0"]\n\n1. e4 e5 2. Nf3 1-0\n',
    "comments": with_tags("1. e4 {a ; ( } 1... e5 {[%eval 0.3] [%clk 0:03:00]\n[%cal Gd1h5]} "
                          "2. Nf3 ; the rest is silence 2. d4\nNc6"),
    "variations": with_tags("1. e4 (1. d4 d5 (1... Nf6 {1-0 )} 2. c4) 2. c4) 1... e5 "
                            "(1... c5 1-0) 2. Nf3"),
    "glyphs": with_tags("1. e4! $1 e5?! $6 $146 2. Nf3 !! Nc6 2... $10", result="1/2-1/2"),
    "no move numbers": with_tags("e4 e5 Nf3 Nc6"),
    "numbers without blanks": with_tags("1.e4 e5 2.Nf3 2...Nc6 3. ... ", result="0-1"),
    "escaped line": with_tags("1. e4\n% 1. d4 {\ne5 2. Nf3"),
    "blank lines among moves": with_tags("1. e4\n\n\te5\r\n 2. Nf3"),
    "checks and promotions": with_tags(
        "1. e4 d5 2. exd5 c6 3. dxc6 Qd6 4. cxb7 Qg6 5. bxa8=Q Qh5 6. Qxb8 e6 7. Qxc8+ Ke7"
    ),
    "zeros castle": with_tags("1. e4 e5 2. Nf3 Nf6 3. Bc4 Bc5 4. 0-0 0-0"),
    "long moves": with_tags("1. e2-e4 e7e5 2. Ng1-f3 Nb8c6"),
    "byte order mark": b"\xef\xbb\xbf" + with_tags("1. e4 e5"),
    "quotes in a tag": with_tags("1. e4", more='[White "Joe "The Rook" O\'Hara"]\n'),
    "escaped quotes in a tag": with_tags("1. e4", more='[White "Joe \\"The Rook\\""]\n'),
    "brackets in a tag": with_tags("1. e4", more='[Site "[1] {2} (3)"]\n'),
    "fen": b'[Event "x"]\n[SetUp "1"]\n[FEN "4k3/P7/8/8/8/8/8/4K3 w - - 3 40"]\n[Result "1-0"]\n\n'
           b"40. a8=Q+ Kd7 1-0\n",
    "fen, black moves": b'[Event "x"]\n[FEN "4k3/8/8/8/8/8/p7/4K3 b - - 0 1"]\n[Result "0-1"]\n\n'
                        b"1... a1=R+ 2. Kd2 0-1\n",
    "variant standard": with_tags("1. e4", more='[Variant "Standard"]\n'),
    "empty lines among tags": b'[Event "x"]\n\n[Result "1-0"]\n\n1. e4 1-0\n',
}


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("name", GOOD)
def test_good_games_are_those_of_python_chess(name, ending):
    text = GOOD[name].replace(b"\r\n", b"\n").replace(b"\n", ending)
    records, report = read_games(text)
    assert (report.games_read, report.games, report.refused) == (1, 1, {}), report
    plain = GOOD[name].decode("utf-8-sig").replace("\r\n", "\n").replace("\n\n\t", "\n\t")
    assert_same_game(records, 0, chess.pgn.read_game(io.StringIO(plain)))
    assert report.positions == records.num_positions


def test_many_games_in_one_text_each_by_itself():
    texts = [text if text.endswith(b"\n") else text + b"\n" for text in GOOD.values()]
    records, report = read_games(b"\n".join(texts))
    assert (report.games_read, report.games) == (len(GOOD), len(GOOD)), report.refused
    for k, text in enumerate(GOOD.values()):
        alone, _ = read_games(text)
        rows = slice(*records.game_offsets[k : k + 2])
        np.testing.assert_array_equal(records.states[rows], alone.states)
        np.testing.assert_array_equal(records.actions[rows], alone.actions)


def test_what_a_record_says_of_an_imported_game():
    records, _ = read_games(GOOD["plain"] + b"\n" + GOOD["fen"])
    assert records.outcomes_white.tolist() == [1, 1]
    assert records.terminations.tolist() == [0, 0]
    assert records.values_stm.tolist() == [1, -1, 1, 1, -1]
    assert records.surprises.tolist() == [0] * 5
    assert records.target_actions.tolist() == records.actions.tolist()
    assert records.target_weights.tolist() == [1] * 5
    assert [START_KINDS[kind] for kind in records.start_kinds] == ["ordinary", "restart"]
    assert records.cut_values_white.tolist() == [0, 0]


FOOLS_MATE = "1. f3 e5 2. g4 Qh4#"
STALEMATE_FEN = '[FEN "7k/5Q2/8/8/8/8/8/K7 w - - 0 1"]\n'
SHUFFLE = "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8"


@pytest.mark.parametrize(("text", "outcome", "termination", "played_on"), [
    (with_tags(FOOLS_MATE, "0-1"), -1, "checkmate", 0),
    (with_tags("1. Qg6", "1/2-1/2", STALEMATE_FEN), 0, "stalemate", 0),
    (with_tags(SHUFFLE, "1/2-1/2"), 0, "threefold_repetition", 0),
    (with_tags(SHUFFLE, "1-0"), 1, "ongoing", 0),
    (with_tags(SHUFFLE + " 5. e4 e5", "1/2-1/2"), 0, "ongoing", 1),
    (with_tags(SHUFFLE + " 5. f3 e5 6. g4 Qh4#", "0-1"), -1, "checkmate", 1),
    (with_tags("1. Kb1", "1/2-1/2", '[FEN "7k/8/8/8/8/8/r7/K7 w - - 99 90"]\n'), 0,
     "fifty_moves", 0),
    (with_tags("1. Kxa2", "1/2-1/2", '[FEN "7k/8/8/8/8/8/r7/K7 w - - 9 90"]\n'), 0,
     "insufficient_material", 0),
])
def test_endings_are_those_of_the_rules(text, outcome, termination, played_on):
    records, report = read_games(text)
    assert report.games == 1, report.refused
    assert records.outcomes_white.tolist() == [outcome]
    assert GAME.spec.terminations[records.terminations[0]] == termination
    assert report.played_on == played_on
    values = records.values_stm * np.where(GAME.side_to_move(records.states) == 0, 1, -1)
    assert (values == outcome).all()


BAD = {
    "illegal": (with_tags("1. e4 e5 2. Ke3"), "illegal_move", 2, "Ke3"),
    "null move": (with_tags("1. e4 -- 2. d4"), "illegal_move", 1, "--"),
    "no right to castle": (with_tags("1. O-O"), "illegal_move", 0, "O-O"),
    "behind a mate": (with_tags(FOOLS_MATE + " 3. a3", "0-1"), "illegal_move", 4, "a3"),
    "ambiguous": (with_tags("1. Nf3 d6 2. d3 d5 3. Nd2"), "ambiguous_move", 4, "Nd2"),
    "no word of chess": (with_tags("1. e4 Sf6"), "unreadable_move", 1, "Sf6"),
    "null in zeros": (with_tags("1. e4 0000 2. d4"), "unreadable_move", 1, "0000"),
    "a stray bracket": (with_tags("1. e4 ) e5"), "unreadable_move", 1, ")"),
    "a lost beginning": (b"5. Nf3 Nf6 1-0\n", "unreadable_move", 0, "5."),
    "figurines": (with_tags("1. \u2658f3"), "wrong_encoding", 0, "\xe2\x99\x98f3"),
    "zero bytes": (with_tags("1. e4 \0 e5"), "wrong_encoding", 1, "\0"),
    "no result": (b'[Event "x"]\n[Result "1-0"]\n\n1. e4 e5 2. Nf3', "truncated", 3, ""),
    "cut in a comment": (b'[Event "x"]\n\n1. e4 {so far', "truncated", 1, ""),
    "cut in a variation": (b'[Event "x"]\n\n1. e4 (1. d4 1-0', "truncated", 1, ""),
    "unknown result": (b'[Event "x"]\n[Result "*"]\n\n1. e4 e5 *\n', "unknown_result", 2, "*"),
    "two results": (b'[Event "x"]\n[Result "1-0"]\n\n1. e4 e5 0-1\n', "contradicting_result", 2,
                    "0-1"),
    "the mated side won": (with_tags(FOOLS_MATE, "1-0"), "contradicting_result", 4, "1-0"),
    "a won stalemate": (with_tags("1. Qg6", "1-0", STALEMATE_FEN), "contradicting_result", 1,
                        "1-0"),
    "no moves": (b'[Event "x"]\n[Result "1-0"]\n\n1-0\n', "no_moves", None, ""),
    "tags alone": (b'[Event "x"]\n[Result "1-0"]\n', "no_moves", None, ""),
    "open tag": (b'[Event "x"]\n[Site "y\n\n1. e4 1-0\n', "bad_header", None, '[Site "y'),
    "tag without quotes": (b'[Event "x"]\n[Site y]\n\n1. e4 1-0\n', "bad_header", None,
                           "[Site y]"),
    "two positions": (b'[FEN "8/8/8/8/8/8/8/8 w - - 0 1"]\n[FEN "x"]\n\n1. e4 1-0\n', "bad_header",
                      None, '[FEN "x"]'),
    "set up, but how": (with_tags("1. e4", more='[SetUp "1"]\n'), "bad_header", None,
                        '[SetUp "1"] without [FEN …]'),
    "a start of our own, misspelt": (with_tags("1. e4", more='[StartKind "easy"]\n'), "bad_header",
                                     None, '[StartKind "easy"]'),
    "a cut value out of range": (with_tags("1. e4", more='[CutValueWhite "nan"]\n'), "bad_header",
                                 None, '[CutValueWhite "nan"]'),
    "no kings": (with_tags("1. e4", more='[FEN "8/8/8/8/8/8/P7/8 w - - 0 1"]\n'), "bad_position",
                 None, "8/8/8/8/8/8/P7/8 w - - 0 1"),
    "no position": (with_tags("1. e4", more='[FEN "startpos"]\n'), "bad_position", None,
                    "startpos"),
    "Chess960": (with_tags("1. e4", more='[Variant "Chess960"]\n'), "variant", None, "Chess960"),
    "atomic": (with_tags("1. e4", more='[variant "Atomic"]\n'), "variant", None, "Atomic"),
}


@pytest.mark.fault(20)
@pytest.mark.parametrize("name", BAD)
def test_bad_games_are_refused_by_kind_and_their_neighbours_are_not(name):
    text, kind, ply, token = BAD[name]
    records, report = read_games(text, [41])
    assert records is None
    assert report.refused == {kind: 1}, report
    (bad,) = report.examples.values()
    assert (bad.kind, bad.game, bad.ply, bad.token) == (kind, 41, ply, token)

    between = GOOD["plain"] + b"\n" + text + b"\n\n" + GOOD["variations"]
    records, report = read_games(between)
    assert (report.games_read, report.games, report.refused) == (3, 2, {kind: 1}), report
    assert report.examples[kind].game == 2
    lengths = np.diff(records.game_offsets)
    assert lengths.tolist() == [3, 3]


def test_every_kind_of_fault_is_met_here():
    assert {kind for _, kind, _, _ in BAD.values()} == set(FAULT_KINDS)


def test_the_first_example_of_a_kind_is_kept():
    _, report = read_games(BAD["illegal"][0] + b"\n" + BAD["null move"][0])
    assert report.refused == {"illegal_move": 2}
    assert report.examples["illegal_move"].game == 1


@pytest.mark.parametrize("text", [b"", b"\n\n", b"\xef\xbb\xbf", b"; nothing\n% here\n{at all}"])
def test_a_text_without_games(text):
    records, report = read_games(text)
    assert (records, report.games_read, report.games_refused) == (None, 0, 0)


def test_games_without_tags_or_blank_lines_between_them():
    records, report = read_games(b"1. e4 e5 1-0 {good} 1. d4 d5 0-1\n1. c4 1/2-1/2 1/2-1/2")
    assert (report.games, report.refused) == (3, {})
    assert records.outcomes_white.tolist() == [1, -1, 0]
    assert np.diff(records.game_offsets).tolist() == [2, 2, 1]


def test_latin_1_names_are_read_and_counted():
    more = '[White "M\u00fcller"]\n'
    latin1 = with_tags("1. e4", more=more).decode().encode("latin-1")
    records, report = read_games(latin1 + b"\n" + with_tags("1. d4", more=more))
    assert (report.games, report.latin1_headers) == (2, 1)
    assert records.num_positions == 2


def test_a_comment_that_is_never_closed_costs_one_game():
    text = b'[Event "x"]\n\n1. e4 { never closed 1-0\n\n' + GOOD["plain"] + b"\n" + GOOD["fen"]
    _, report = read_games(text)
    assert (report.games_read, report.games, report.refused) == (3, 2, {"truncated": 1})


def test_tags_inside_a_comment_are_a_comment():
    text = with_tags('1. e4 {he knew\n[Event "of old"]\n1. d4 d5 0-1} e5')
    records, report = read_games(text)
    assert (report.games_read, report.games) == (1, 1)
    assert records.num_positions == 2


def test_a_text_may_be_cut_wherever_a_game_begins():
    text = b"\n".join([*GOOD.values(), *(bad[0] for bad in BAD.values())])
    starts = [game.start for game in find_games(text)]
    whole, report = read_games(text)
    for cut in starts:
        first, first_report = read_games(text[:cut])
        second, second_report = read_games(text[cut:], [first_report.games_read + 1])
        first_report.add(second_report)
        assert first_report == report, cut
        parts = [part.actions for part in (first, second) if part is not None]
        np.testing.assert_array_equal(np.concatenate(parts), whole.actions)
