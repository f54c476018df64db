"""The benchmark of the rules compares with python-chess doing the same work."""

import random

import chess_oracle as oracle
import numpy as np

from benchmarks import env
from chess_snn.games import get_game
from chess_snn.games.chess import from_board


def test_both_sides_compute_the_same():
    game = get_game("chess")
    for board in oracle.random_boards(random.Random(8), 100):
        board.clear_stack()  # a state row from a board knows no repetitions
        np.testing.assert_array_equal(
            env._planes(board), game.planes(from_board(board)[None])[0]
        )
        for action, move in oracle.legal_actions(board).items():
            key = board.turn, move.from_square, move.to_square, move.promotion
            assert env._ACTION_OF[key] == action
