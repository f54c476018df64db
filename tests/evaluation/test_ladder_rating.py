"""Players of known strength climb to their place, and are rated on the ladder."""

import math

import numpy as np
import pytest
from made_games import made_match
from simulated_ladder import pair_results, play_pairs, simulated_ladder

from chess_snn.errors import RatingError
from chess_snn.evaluation.ladder.adaptive import (
    APPROXIMATE_ELO,
    BATCH_PAIRS,
    RungScore,
    bracketing_rungs,
    distance_to_ladder,
    has_arrived,
    next_rung,
    rate_on_ladder,
    run_ladder_test,
)
from chess_snn.evaluation.ratings.crosstable import Crosstable
from chess_snn.evaluation.ratings.fit import fit_ratings

RUNGS = np.arange(0, 1500, 120)
TOP = len(RUNGS) - 1
PAIRS = 5


def ladder_test(elo, start, num_batches, stream):
    """Scores by rung, and the rungs in the order in which they were met."""
    counts, met = {}, []
    for _ in range(num_batches):
        scores = scores_of(counts)
        met.append(next_rung(scores, start, RUNGS))
        drawn = play_pairs(elo, RUNGS[met[-1]], PAIRS, stream)
        counts[met[-1]] = counts.get(met[-1], 0) + drawn
    return scores_of(counts), met


def scores_of(counts):
    points = 4 - np.indices((3, 3)).sum(axis=0)
    return {
        rung: RungScore(float((drawn * points).sum()) / 2, int(2 * drawn.sum()))
        for rung, drawn in counts.items()
    }


@pytest.mark.parametrize("start", [0, 6, TOP])
@pytest.mark.parametrize("elo", [0, 333, 700, 1440])
def test_everybody_arrives_at_their_own_rung(elo, start):
    own = int(np.abs(RUNGS - elo).argmin())
    off = 0
    for seed in range(20):
        scores, _ = ladder_test(elo, start, 25, np.random.default_rng(seed))
        off += not (
            has_arrived(scores, start, RUNGS)
            and own in bracketing_rungs(scores, start, RUNGS)
        )
    assert off <= 2


def test_a_climb_that_begins_near_wastes_nothing():
    _, met = ladder_test(600, 5, 12, np.random.default_rng(3))
    assert all(abs(rung - 5) <= 2 for rung in met)


@pytest.mark.parametrize(("elo", "end"), [(-2000, 0), (4000, TOP)])
def test_beyond_the_ladder_it_stays_at_its_end(elo, end):
    scores, met = ladder_test(elo, 6, 20, np.random.default_rng(0))
    assert {min(met), max(met)} == {6, end}
    bracket = bracketing_rungs(scores, 6, RUNGS)
    assert end in bracket
    assert len(bracket) == 3


@pytest.mark.parametrize(("score", "rung"), [(0.75, 3), (0.7, 2), (0.3, 2), (0.25, 1)])
def test_the_score_against_a_rung_decides_where_it_goes(score, rung):
    """Though by all games its own rung is another one, about which it would play otherwise."""
    others = {0: 0.6, 1: 0.5} if score > 0.5 else {3: 0.5, 4: 0.4}
    scores = {other: RungScore(points * 400, 400) for other, points in others.items()}
    assert next_rung(scores | {2: RungScore(score * 20, 20)}, 2, RUNGS) == rung


def test_the_least_played_of_three_goes_next():
    even = {rung: RungScore(games / 2, games) for rung, games in ((2, 20), (3, 20), (4, 10))}
    assert next_rung(even, 3, RUNGS) == 4
    assert next_rung(even | {4: RungScore(10, 20)}, 3, RUNGS) == 3


def test_between_two_rungs_it_stays_about_the_more_even_one():
    scores = {2: RungScore(8, 10), 3: RungScore(3.5, 10)}
    assert bracketing_rungs(scores, 2, RUNGS) == bracketing_rungs(scores, 3, RUNGS) == [2, 3, 4]
    assert next_rung(scores, 2, RUNGS) == 4


def test_one_lucky_batch_on_the_way_does_not_hold_it():
    scores = {0: RungScore(7, 10), 1: RungScore(38, 40), 2: RungScore(35, 40)}
    assert next_rung(scores, 0, RUNGS) > 2


def test_two_rungs_and_one():
    assert next_rung({}, 0, [0.0]) == 0
    assert bracketing_rungs({0: RungScore(5, 10)}, 0, [0.0]) == [0]
    assert bracketing_rungs({1: RungScore(5, 10)}, 1, [0.0, 90.0]) == [0, 1]
    assert has_arrived({0: RungScore(10, 10)}, 0, [0.0])


def test_the_interval_narrows_with_the_players_own_games_and_holds_the_truth():
    stream = np.random.default_rng(7)
    elos = {"random": 0, "b": 150, "c": 300, "d": 450}
    ladder = simulated_ladder(elos, 60, stream)
    widths = []
    for num_pairs in (10, 160):
        games = [
            game for rung in ("b", "c")
            for game in pair_results("new", 220, rung, elos[rung], num_pairs, stream).games()
        ]
        distance = distance_to_ladder(ladder, games, "new", "b")
        assert distance.low < 70 < distance.high
        widths.append(distance.width)
        rating = fit_ratings(Crosstable.from_games([*ladder.games(), *games])).of("new").elo
        assert rating.low < 220 < rating.high
    assert widths[1] < widths[0] / 2
    assert rating.high - rating.low > widths[1], "the ladder's own uncertainty is in the rating"


def test_who_won_everything_has_no_narrow_interval():
    stream = np.random.default_rng(0)
    ladder = simulated_ladder({"random": 0, "b": 150, "c": 300}, 40, stream)
    games = list(pair_results("new", 9000, "c", 0, 20, stream).games())
    assert distance_to_ladder(ladder, games, "new", "c").width == np.inf


# Rating players on the ladder: simulated players of known strength, and approximate rungs.


RUNGS_BY_NAME = {"random": 0.0, "a": 300.0, "b": 600.0, "c": 900.0, "d": 1200.0, "e": 1500.0}


@pytest.fixture(scope="module")
def ladder():
    return simulated_ladder(RUNGS_BY_NAME, 150, np.random.default_rng(0))


def match(player, opponent, counts):
    """A match whose openings had these outcomes, int[3, 3]: with white and with black."""
    places = np.argwhere(np.ones((3, 3)))
    pairs = np.repeat(places, counts.ravel(), axis=0)
    return made_match(1.0 - pairs / 2.0, player, opponent)


def games_on_ladder(ladder, player, elo, num_games, stream):
    return run_ladder_test(
        ladder, ladder.players, num_games,
        lambda rung, number: match(
            player, rung, play_pairs(elo, RUNGS_BY_NAME[rung], BATCH_PAIRS, stream)
        ),
    ).batches


@pytest.mark.parametrize("elo", [150.0, 700.0, 1400.0])
def test_a_player_meets_rungs_near_its_strength(ladder, elo):
    played = games_on_ladder(ladder, "new", elo, 200, np.random.default_rng(1))
    games = {name: sum(batch.num_games for batch in batches) for name, batches in played.items()}
    assert sum(games.values()) == 200
    most_met = max(games, key=games.get)
    assert abs(RUNGS_BY_NAME[most_met] - elo) <= 300


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
    assert RUNGS_BY_NAME["e"] < rated.rating.elo.low < rated.rating.elo.value
    assert rated.to_json()["elo_high"] is None


def test_who_met_nobody_of_the_ladder_is_not_rated(ladder):
    even = np.zeros((3, 3), np.int64)
    even[0, 2] = even[2, 0] = 5
    with pytest.raises(RatingError, match="'x'"):
        rate_on_ladder(ladder, {"x": {"stranger": [match("x", "stranger", even)]}})
