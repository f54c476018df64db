"""Practice positions: possible, going on, and won, as a solver of its own finds."""

from collections import Counter

import chess
import ending_solver
import numpy as np
import pytest

from chess_snn.games import get_game
from chess_snn.games.chess import from_board, to_board

GAME = get_game("chess")
NUM_POSITIONS = 4000
SOLVED = {
    chess.PAWN: ending_solver.PAWN,
    chess.ROOK: ending_solver.ROOK,
    chess.QUEEN: ending_solver.QUEEN,
}
SHARES = {"Q": 4, "R": 3, "QQ": 2, "QR": 3, "RR": 2, "P": 2}


@pytest.fixture(scope="module")
def boards():
    states = GAME.practice_states(np.arange(NUM_POSITIONS, dtype=np.uint64))
    return [to_board(state) for state in states]


def strong_side(board):
    return chess.popcount(board.occupied_co[chess.WHITE]) > 1


def army(board):
    """The strong side's pieces beside its king, such as "QR"."""
    pieces = (piece.symbol().upper() for piece in board.piece_map().values())
    return "".join(sorted(pieces)).replace("K", "")


def test_python_chess_finds_them_possible_and_going_on(boards):
    for board in boards:
        assert board.is_valid(), (board.fen(), board.status())
        assert not board.is_game_over(), board.fen()
        assert chess.popcount(board.occupied_co[not strong_side(board)]) == 1


def test_rows_are_those_of_the_boards(boards):
    states = GAME.practice_states(np.arange(NUM_POSITIONS, dtype=np.uint64))
    np.testing.assert_array_equal(states, np.stack([from_board(board) for board in boards]))


def test_armies_come_in_their_shares(boards):
    counts = Counter(map(army, boards))
    assert set(counts) == set(SHARES)
    for name, sixteenths in SHARES.items():
        expected = NUM_POSITIONS * sixteenths / 16
        assert abs(counts[name] - expected) < 5 * expected**0.5, (name, counts)


def test_both_colours_are_strong_and_both_sides_move(boards):
    counts = Counter((strong_side(board), board.turn) for board in boards)
    assert len(counts) == 4
    assert min(counts.values()) > 0.2 * NUM_POSITIONS


def test_the_weak_side_cannot_take_anything(boards):
    for board in boards:
        if board.turn != strong_side(board):
            assert not any(board.generate_legal_captures()), board.fen()


def test_a_lone_piece_wins_for_certain(boards):
    won = ending_solver.solve()
    num_solved = Counter()
    for original in boards:
        board = original if strong_side(original) == chess.WHITE else original.mirror()
        if len(army(board)) > 1:
            continue
        king, enemy = board.king(chess.WHITE), board.king(chess.BLACK)
        (square,) = chess.SquareSet(board.occupied & ~board.kings)
        kind = board.piece_type_at(square)
        turn = ending_solver.WHITE if board.turn else ending_solver.BLACK
        assert won[SOLVED[kind], turn, king, enemy, square], original.fen()
        num_solved[kind] += 1
    assert min(num_solved[kind] for kind in SOLVED) > 0.1 * NUM_POSITIONS


def test_the_solver_knows_the_famous_counts():
    """King and pawn: 124,960 won with white to move, and 97,604 with black, both wings counted."""
    won = ending_solver.solve()
    assert won[ending_solver.PAWN, ending_solver.WHITE].sum() == 124_960
    assert won[ending_solver.PAWN, ending_solver.BLACK].sum() == 97_604
    assert won[ending_solver.ROOK, ending_solver.WHITE].sum() == 175_168  # all of them


def test_pawns_win_by_running_and_by_their_king(boards):
    led = Counter()
    for board in boards:
        if army(board) == "P":
            strong = strong_side(board)
            (pawn,) = board.pieces(chess.PAWN, strong)
            ranks = chess.square_rank(board.king(strong)) - chess.square_rank(pawn)
            led[ranks == (2 if strong else -2)] += 1
    assert min(led.values()) > 0.3 * sum(led.values()), led
