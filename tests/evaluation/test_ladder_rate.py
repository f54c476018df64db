"""Rating players on the ladder: simulated players of known strength, and approximate rungs."""

import math

import numpy as np
import pytest
from simulated_ladder import play_pairs, simulated_ladder
from subtraction_game import SubtractionGame

from chess_snn.errors import RatingError
from chess_snn.evaluation import MatchResult
from chess_snn.evaluation.ladder import (
    APPROXIMATE_ELO,
    BATCH_PAIRS,
    rate_on_ladder,
    run_ladder_test,
)

ELOS = {"random": 0.0, "a": 300.0, "b": 600.0, "c": 900.0, "d": 1200.0, "e": 1500.0}


@pytest.fixture(scope="module")
def ladder():
    return simulated_ladder(ELOS, 150, np.random.default_rng(0))


def match(player, opponent, counts):
    """A match whose openings had these outcomes, int[3, 3]: with white and with black."""
    places = np.argwhere(np.ones((3, 3)))
    pairs = np.repeat(places, counts.ravel(), axis=0)
    num_games, names = 2 * len(pairs), tuple(f"o{number}" for number in range(len(pairs)))
    return MatchResult(
        spec=SubtractionGame().spec, player_a=player, player_b=opponent, opening_keys=names,
        opening_positions=names,
        opening_index=np.repeat(np.arange(len(pairs), dtype=np.int32), 2),
        a_is_white=np.tile([True, False], len(pairs)),
        scores_a=(1.0 - pairs / 2.0).astype(np.float32).ravel(),
        terminations=np.ones(num_games, np.uint8), plies=np.ones(num_games, np.int32),
        actions=np.zeros(num_games, np.int16),
    )


def games_on_ladder(ladder, player, elo, num_games, stream):
    return run_ladder_test(
        ladder, ladder.players, num_games,
        lambda rung, number: match(player, rung, play_pairs(elo, ELOS[rung], BATCH_PAIRS, stream)),
    )


@pytest.mark.parametrize("elo", [150.0, 700.0, 1400.0])
def test_a_player_meets_rungs_near_its_strength(ladder, elo):
    played = games_on_ladder(ladder, "new", elo, 200, np.random.default_rng(1))
    games = {name: sum(batch.num_games for batch in batches) for name, batches in played.items()}
    assert sum(games.values()) == 200
    most_met = max(games, key=games.get)
    assert abs(ELOS[most_met] - elo) <= 300


def test_players_are_rated_together_on_the_ladders_scale(ladder):
    stream = np.random.default_rng(2)
    played = {
        name: games_on_ladder(ladder, name, elo, 400, stream)
        for name, elo in (("x", 450.0), ("y", 1050.0))
    }
    x, y = rate_on_ladder(ladder, played)
    for rated, elo in ((x, 450.0), (y, 1050.0)):
        assert rated.rating.elo.low < elo < rated.rating.elo.high
        assert rated.rating.elo.value == pytest.approx(elo, abs=100)
        assert rated.rating.num_games == 400 == sum(match.num_games for match in rated.matches)
    assert [rated.rating.player for rated in (x, y)] == ["x", "y"]
    assert x.to_json()["opponents"][0]["score_low"] <= x.to_json()["opponents"][0]["score"]


def test_approximate_rungs_widen_the_interval_of_those_who_met_them(ladder):
    stream = np.random.default_rng(3)
    played = {
        "x": {"c": [match("x", "c", play_pairs(1000, 900, 40, stream))]},
        "y": {"d": [match("y", "d", play_pairs(1000, 1200, 40, stream))]},
    }
    plain, others = rate_on_ladder(ladder, played), rate_on_ladder(ladder, played, {"d"})
    assert [rated.approximate for rated in others] == [(), ("d",)]
    assert others[0].rating == plain[0].rating
    before, after = plain[1].rating.elo, others[1].rating.elo
    assert after.value == before.value
    for end in ("low", "high"):
        reach = getattr(after, end) - after.value
        assert abs(reach) == pytest.approx(
            math.hypot(getattr(before, end) - before.value, APPROXIMATE_ELO)
        )


def test_a_player_that_won_every_game_has_a_bound(ladder):
    sweep = np.zeros((3, 3), np.int64)
    sweep[0, 0] = 20
    (rated,) = rate_on_ladder(ladder, {"x": {"e": [match("x", "e", sweep)]}}, {"e"})
    assert rated.rating.elo.high == math.inf
    assert ELOS["e"] < rated.rating.elo.low < rated.rating.elo.value
    assert rated.to_json()["elo_high"] is None


def test_who_met_nobody_of_the_ladder_is_not_rated(ladder):
    even = np.zeros((3, 3), np.int64)
    even[0, 2] = even[2, 0] = 5
    with pytest.raises(RatingError, match="'x'"):
        rate_on_ladder(ladder, {"x": {"stranger": [match("x", "stranger", even)]}})
