"""The numbering of actions, against the geometry of moves and a few numbers worked out by hand."""

import chess
import chess_oracle as oracle
import numpy as np
import pytest

from chess_snn.games.chess import action_of_move, move_of_action
from chess_snn.games.chess.actions import DECODED_ACTION, NUM_ACTIONS, OFF_BOARD

BY_HAND = {
    ("e2e4", chess.WHITE): 12 * 73 + 1,  # ahead, two squares
    ("e7e5", chess.BLACK): 12 * 73 + 1,
    ("a1h8", chess.WHITE): 0 * 73 + 1 * 7 + 6,  # along the long diagonal
    ("h8a8", chess.BLACK): 7 * 73 + 6 * 7 + 6,  # files are not mirrored
    ("g1f3", chess.WHITE): 6 * 73 + 63,
    ("g8f6", chess.BLACK): 6 * 73 + 63,
    ("e1g1", chess.WHITE): 4 * 73 + 2 * 7 + 1,
    ("e8c8", chess.BLACK): 4 * 73 + 6 * 7 + 1,
    ("a7a8q", chess.WHITE): 48 * 73 + 0,
    ("a7b8n", chess.WHITE): 48 * 73 + 66,
    ("b2a1b", chess.BLACK): 49 * 73 + 67,
    ("h7h8r", chess.WHITE): 55 * 73 + 71,
}


@pytest.mark.parametrize(("uci", "turn"), BY_HAND)
def test_worked_out_by_hand(uci, turn):
    assert action_of_move(chess.Move.from_uci(uci), turn) == BY_HAND[uci, turn]


@pytest.mark.parametrize("turn", chess.COLORS)
def test_every_piece_move_has_its_own_number(turn):
    """All moves of a queen, a knight and a promoting pawn on an otherwise empty board."""
    moves = set()
    board = chess.Board(None)
    for square in chess.SQUARES:
        for piece in (chess.QUEEN, chess.KNIGHT):
            board.set_piece_at(square, chess.Piece(piece, turn))
            moves |= {chess.Move(square, target) for target in board.attacks(square)}
            board.remove_piece_at(square)
    last, before_last = (7, 6) if turn else (0, 1)
    for file in range(8):
        for target_file in {max(0, file - 1), file, min(7, file + 1)}:
            ends = chess.square(file, before_last), chess.square(target_file, last)
            moves |= {chess.Move(*ends, piece) for piece in (2, 3, 4)}
    actions = {action_of_move(move, turn) for move in moves}
    assert actions == {oracle.action_of(move, turn) for move in moves}
    assert len(actions) == len(moves)
    assert actions == set(np.flatnonzero(DECODED_ACTION != OFF_BOARD).tolist())
    assert max(actions) < NUM_ACTIONS
    board.turn = turn
    assert {move_of_action(board, action) for action in actions} == moves


def test_queen_move_of_a_pawn_to_the_last_rank_promotes_to_a_queen():
    pawn = chess.Board("8/P3k3/8/8/8/8/8/4K3 w - - 0 1")
    rook = chess.Board("8/R3k3/8/8/8/8/8/4K3 b - - 0 1").mirror()
    action = action_of_move(chess.Move.from_uci("a7a8q"), chess.WHITE)
    assert move_of_action(pawn, action).uci() == "a7a8q"
    rook.turn = chess.WHITE
    assert move_of_action(rook, action).uci() == "a7a8"
