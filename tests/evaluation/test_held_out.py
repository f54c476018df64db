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


def test_ratings_predict_better_than_a_constant_and_are_calibrated(ladder):
    check = held_out_check(ladder, "p0")
    assert check.num_unpredicted == 0
    assert check.num_fitted + check.num_predicted == ladder.num_games
    assert check.num_fitted == pytest.approx(0.8 * ladder.num_games, rel=0.01)
    assert check.log_loss < check.constant_log_loss - 0.05
    assert sum(row.num_games for row in check.bins) == check.num_predicted
    for row in check.bins:
        if row.num_games:
            assert row.low <= row.expected_score <= row.high
            # Four standard errors of a mean of results between 0 and 1.
            assert abs(row.score - row.expected_score) < 2 / math.sqrt(row.num_games)


def test_without_differences_ratings_predict_what_a_constant_does():
    table = simulated_table([0, 0, 0], 400, stream=np.random.default_rng(3))
    check = held_out_check(table, "p0")
    assert check.log_loss == pytest.approx(check.constant_log_loss, abs=5e-3)


def test_loss_is_minus_the_logarithm_of_what_was_predicted():
    """Won by white three times in four, so both predictors say 3/4 and 1/4 throughout."""
    games = [RatedGame(white, black, outcome, f"{number}")
             for number in range(100)
             for outcome in [-1 if number % 4 == 0 else 1]
             for white, black in (("a", "b"), ("b", "a"))]
    check = held_out_check(Crosstable.from_games(games), "a", seed=4)
    fitted_wins = round(check.bins[7].expected_score * 160)
    assert check.num_fitted == 160
    win = fitted_wins / 160
    score = check.bins[7].score
    expected = -(score * math.log(win) + (1 - score) * math.log(1 - win))
    assert check.log_loss == pytest.approx(expected)
    assert check.constant_log_loss == pytest.approx(expected)


def test_games_between_infinitely_distant_players_are_counted_apart():
    games = even_pairs("a", "b", 40) + [RatedGame("ace", "a", 1, str(n)) for n in range(10)]
    check = held_out_check(Crosstable.from_games(games), "a")
    assert check.num_unpredicted == 2
    assert math.isfinite(check.log_loss)


def test_a_result_called_impossible_costs_everything():
    """The one draw is held out for some choice, and fitted for another."""
    games = [*even_pairs("a", "b", 20), RatedGame("a", "b", 0, "z")]
    table = Crosstable.from_games(games)
    checks = [held_out_check(table, "a", fitted_share=0.7, seed=seed) for seed in range(20)]
    losses = {math.isinf(check.log_loss) for check in checks}
    assert losses == {True, False}
    for check in checks:
        json.dumps(check.to_json(), allow_nan=False)


def test_the_anchor_changes_nothing_and_the_seed_the_choice(ladder):
    first, anchored, other = (
        held_out_check(ladder, anchor, seed=seed)
        for anchor, seed in (("p0", 1), ("p3", 1), ("p0", 2))
    )
    assert anchored.log_loss == pytest.approx(first.log_loss)
    assert other.log_loss != first.log_loss


def test_says_when_nothing_is_left_to_predict():
    with pytest.raises(RatingError, match="none of 0 held-out games"):
        held_out_check(Crosstable.from_games(even_pairs("a", "b", 1)), "a")


@pytest.mark.parametrize("share", [0.0, 1.0, math.nan])
def test_refuses_a_share_out_of_range(ladder, share):
    with pytest.raises(ConfigError, match="fitted_share must be"):
        held_out_check(ladder, "p0", fitted_share=share)
