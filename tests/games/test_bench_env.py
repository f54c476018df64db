"""The benchmark measures what it says; its bars are for `chess-snn bench env`, not for a test."""

import random

import chess_oracle as oracle
import numpy as np

from chess_snn.bench import env
from chess_snn.games import get_game
from chess_snn.games.chess import from_board


def test_report_has_rates_and_barred_ratios():
    report = env.run(quick=True)
    figures = {m.name: m for m in report.measurements}
    assert len(figures) == 6
    assert all(m.value > 0 for m in report.measurements)
    assert figures["ratio, rules"].at_least == 100
    assert figures["ratio, rules and planes"].at_least == 120


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
