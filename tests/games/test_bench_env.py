"""The benchmark of the rules measures what it says; a test does not hold its bars."""

import random

import chess_oracle as oracle
import numpy as np
import pytest

from benchmarks import env
from benchmarks.report import Report
from chess_snn.games import get_game
from chess_snn.games.chess import from_board


@pytest.mark.parametrize(("game", "bars"), [
    ("chess", {"ratio, rules": 100, "ratio, rules and planes": 120}),
    ("2048", {"random moves, whole games": 1e7, "expectimax:2": 1e5,
              "expectimax:2, mean score": 3e4}),
])
def test_report_has_rates_and_barred_figures(game, bars):
    report = Report("env")
    env.run(report, quick=True, game=game)
    assert all(m.value > 0 for m in report.measurements)
    assert {m.name: m.at_least for m in report.measurements if m.passes is not None} == bars


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
