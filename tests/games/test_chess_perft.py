"""Published leaf counts (chessprogramming.org, Perft Results) and python-chess's divide."""

import chess
import pytest

from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.games.chess import perft, perft_divide

GAME = get_game("chess")
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"

PUBLISHED = {
    chess.STARTING_FEN: (20, 400, 8_902, 197_281, 4_865_609),
    KIWIPETE: (48, 2_039, 97_862, 4_085_603),
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1": (14, 191, 2_812, 43_238),
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1": (6, 264, 9_467, 422_333),
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8": (44, 1_486, 62_379, 2_103_487),
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10": (
        46, 2_079, 89_890, 3_894_594,
    ),
}  # fmt: skip


@pytest.mark.parametrize("fen", PUBLISHED)
def test_published_counts(fen):
    state = GAME.parse_state(fen)
    counts = tuple(perft(state, depth) for depth in range(1, len(PUBLISHED[fen]) + 1))
    assert counts == PUBLISHED[fen]


@pytest.mark.parametrize("fen", PUBLISHED)
def test_counts_of_the_mirrored_position(fen):
    state = GAME.parse_state(chess.Board(fen).mirror().fen())
    assert perft(state, 3) == PUBLISHED[fen][2]


def test_divide_equals_python_chess():
    board = chess.Board(KIWIPETE)
    expected = {}
    for move in board.legal_moves:
        board.push(move)
        expected[move.uci()] = board.legal_moves.count()
        board.pop()
    divided = perft_divide(GAME.parse_state(KIWIPETE), 2)
    assert divided == expected
    assert list(divided) == sorted(divided)


def test_depth_zero_is_the_position_itself():
    assert perft(GAME.parse_state(KIWIPETE), 0) == 1


def test_mate_has_no_leaves():
    mated = GAME.parse_state("rnb1kbnr/pppp1ppp/8/4p3/5PPq/8/PPPPP2P/RNBQKBNR w KQkq - 1 3")
    assert perft(mated, 3) == 0
    assert perft_divide(mated, 3) == {}


def test_draws_do_not_cut_the_tree():
    """Bare kings are a draw to the rules and a position to perft."""
    assert perft(GAME.parse_state("8/8/8/8/3k4/8/8/K7 w - - 120 90"), 1) == 3


@pytest.mark.parametrize(("function", "depth"), [(perft, -1), (perft_divide, 0)])
def test_depth_out_of_range(function, depth):
    with pytest.raises(ConfigError, match=f"depth must be >= .*got {depth}"):
        function(GAME.parse_state(KIWIPETE), depth)
