import json
import math

import numpy as np
import pytest
from simulated_games import simulated_table

from chess_snn.errors import ConfigError, RatingError
from chess_snn.evaluation import Crosstable, RatedGame, held_out_check


def even_pairs(a, b, num_openings):
    """Pairs that white wins, a wins, black wins, b wins, and so on in turns."""
    games = []
    for number in range(num_openings):
        as_white, as_black = ((1, 1), (1, -1), (-1, -1), (-1, 1))[number % 4]
        games.append(RatedGame(a, b, as_white, str(number)))
        games.append(RatedGame(b, a, as_black, str(number)))
    return games


@pytest.fixture(scope="module")
def ladder():
    return simulated_table([0, 200, 350, 600, 800], 150, stream=np.random.default_rng(2), span=3)


def test_ratings_predict_better_than_a_constant(ladder):
    check = held_out_check(ladder, "p0")
    assert check.num_fitted + check.num_predicted == ladder.num_games
    assert check.num_fitted == pytest.approx(0.8 * ladder.num_games, rel=0.01)
    assert check.log_loss < check.constant_log_loss - 0.05


def test_without_differences_ratings_predict_what_a_constant_does():
    table = simulated_table([0, 0, 0], 400, stream=np.random.default_rng(3))
    check = held_out_check(table, "p0")
    assert check.log_loss == pytest.approx(check.constant_log_loss, abs=5e-3)


def test_loss_is_minus_the_logarithm_of_what_was_predicted():
    """White wins three games of four, whoever has it, so both predictors say 3/4 and 1/4."""
    games = [RatedGame(white, black, outcome, f"{number}")
             for number in range(4000)
             for outcome in [-1 if number % 4 == 0 else 1]
             for white, black in (("a", "b"), ("b", "a"))]
    check = held_out_check(Crosstable.from_games(games), "a", seed=4)
    assert check.num_fitted == 6400
    expected = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert check.constant_log_loss == pytest.approx(expected, abs=0.03)
    assert check.log_loss == pytest.approx(check.constant_log_loss, abs=1e-3)


def test_a_result_never_seen_costs_the_ratings_little_and_the_constant_everything():
    """The one draw is held out for some choice, and fitted for another."""
    games = [*even_pairs("a", "b", 20), RatedGame("a", "b", 0, "z")]
    table = Crosstable.from_games(games)
    checks = [held_out_check(table, "a", fitted_share=0.7, seed=seed) for seed in range(20)]
    assert {math.isinf(check.constant_log_loss) for check in checks} == {True, False}
    for check in checks:
        assert check.log_loss < 2
        json.dumps(check.to_json(), allow_nan=False)


def test_the_anchor_changes_nothing_and_the_seed_the_choice(ladder):
    first, anchored, other = (
        held_out_check(ladder, anchor, seed=seed)
        for anchor, seed in (("p0", 1), ("p3", 1), ("p0", 2))
    )
    assert anchored.log_loss == pytest.approx(first.log_loss)
    assert other.log_loss != first.log_loss


def test_says_when_nothing_is_left_to_predict():
    with pytest.raises(RatingError):
        held_out_check(Crosstable.from_games(even_pairs("a", "b", 1)), "a")


@pytest.mark.parametrize("share", [0.0, 1.0, math.nan])
def test_refuses_a_share_out_of_range(ladder, share):
    with pytest.raises(ConfigError, match="fitted_share must be"):
        held_out_check(ladder, "p0", fitted_share=share)
