"""Ratings: closed forms, what any maximum satisfies, invariances, and players without a rating."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_games import chances, simulated_table

from chess_snn.errors import ConfigError, RatingError
from chess_snn.evaluation import (
    Crosstable,
    RatedGame,
    elo_difference,
    fit_ratings,
    wilson_interval,
)

FEW = 20
"""Resamples where the intervals are not what is looked at."""


def games_of(first, second, *by_colour):
    """Games with ``first`` white (wins, draws, losses), then with ``second``; an opening each."""
    games = []
    for white, black, counts in zip((first, second), (second, first), by_colour, strict=True):
        outcomes = np.repeat([1, 0, -1], counts).tolist()
        games += [RatedGame(white, black, outcome, f"{number}")
                  for number, outcome in enumerate(outcomes)]
    return games


def paired(a, b, scores):
    """Openings with a's results as white and as black: 1 won, 0 drawn, -1 lost."""
    games = []
    for number, (as_white, as_black) in enumerate(scores):
        games.append(RatedGame(a, b, as_white, str(number)))
        games.append(RatedGame(b, a, -as_black, str(number)))
    return games


def fit(games, anchor, **options):
    return fit_ratings(Crosstable.from_games(games), anchor, **{"num_resamples": FEW} | options)


def elo_of(ratings):
    return {rating.player: rating.elo.value for rating in ratings.table}


# Closed forms


@pytest.mark.parametrize(("wins", "losses"), [(76, 24), (1, 3), (999, 1), (5, 5)])
def test_two_players_without_draws_are_the_logistic_formula(wins, losses):
    ratings = fit(games_of("a", "b", (wins, 0, losses), (losses, 0, wins)), "b")
    expected = elo_difference(wins / (wins + losses))
    assert ratings.of("a").elo.value == pytest.approx(expected, abs=1e-8)
    assert ratings.colour_advantage.value == pytest.approx(0.0, abs=1e-8)
    assert ratings.draw_rate.value == 0.0


def test_two_players_with_draws_are_as_their_frequencies():
    ratings = fit(games_of("a", "b", (30, 50, 20), (20, 50, 30)), "b")
    assert ratings.of("a").elo.value == pytest.approx(400 * math.log10(30 / 20), abs=1e-8)
    odds = 50 / math.sqrt(30 * 20)
    assert ratings.draw_rate.value == pytest.approx(odds / (2 + odds), abs=1e-10)
    assert ratings.chances_of_white("a", "b") == pytest.approx((0.3, 0.5, 0.2), abs=1e-9)


def test_two_players_with_a_colour_advantage_are_two_odds():
    """a scores 60 : 20 with white and 30 : 50 with black."""
    ratings = fit(games_of("a", "b", (60, 0, 20), (50, 0, 30)), "b")
    with_white, with_black = 400 * math.log10(60 / 20), 400 * math.log10(30 / 50)
    assert ratings.of("a").elo.value == pytest.approx((with_white + with_black) / 2, abs=1e-8)
    assert ratings.colour_advantage.value == pytest.approx((with_white - with_black) / 2, abs=1e-8)


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_at_the_maximum_what_is_expected_is_what_happened(seed):
    """The likelihood equations: every player's points, white's points, and the draws."""
    table = simulated_table(
        [0, 120, 200, 350], 25, stream=np.random.default_rng(seed), span=3
    )
    ratings = fit_ratings(table, "p0", num_resamples=1)
    elos = [ratings.of(name).elo.value for name in table.players]
    points, expected_points = np.zeros(4), np.zeros(4)
    draws = expected_draws = colours = expected_colours = 0.0
    for pairing, by_colour in zip(table.pairings, table.totals(), strict=True):
        for (white, black), counts in zip((pairing, pairing[::-1]), by_colour, strict=True):
            told = chances(
                elos[white], elos[black], ratings.colour_advantage.value, ratings.draw_rate.value
            ) * counts.sum()
            for happened, sums in ((counts, points), (told, expected_points)):
                sums[white] += happened[0] + happened[1] / 2
                sums[black] += happened[2] + happened[1] / 2
            draws, expected_draws = draws + counts[1], expected_draws + told[1]
            colours += counts[0] - counts[2]
            expected_colours += told[0] - told[2]
    assert expected_points == pytest.approx(points, abs=1e-6)
    assert expected_draws == pytest.approx(draws, abs=1e-6)
    assert expected_colours == pytest.approx(colours, abs=1e-6)


@pytest.mark.oracle
def test_a_general_optimiser_finds_the_same_maximum():
    optimize = pytest.importorskip("scipy.optimize")
    table = simulated_table([0, 150, 300, 500], 30, stream=np.random.default_rng(8), span=3)

    def cost(values):
        elos, draw_rate = np.r_[0.0, values[:3]], 1 / (1 + math.exp(-values[4]))
        return -sum(
            counts @ np.log(chances(elos[white], elos[black], values[3], draw_rate))
            for pairing, by_colour in zip(table.pairings, table.totals(), strict=True)
            for (white, black), counts in zip((pairing, pairing[::-1]), by_colour, strict=True)
        )

    found = optimize.minimize(cost, np.zeros(5), method="BFGS", options={"gtol": 1e-7}).x
    ratings = fit_ratings(table, "p0", num_resamples=FEW)
    values = [ratings.of(name).elo.value for name in ("p1", "p2", "p3")]
    assert values == pytest.approx(found[:3], abs=0.05)
    assert ratings.colour_advantage.value == pytest.approx(found[3], abs=0.05)
    assert ratings.draw_rate.value == pytest.approx(1 / (1 + math.exp(-found[4])), abs=1e-4)


# Invariances


def random_games(seed, num_games=300):
    stream = np.random.default_rng(seed)
    games = []
    for _ in range(num_games):
        white, black = stream.choice(4, 2, replace=False)
        outcome = 1 - stream.choice(3, p=chances(100 * white, 100 * black, 40, 0.3))
        games.append(RatedGame(f"p{white}", f"p{black}", int(outcome), str(stream.integers(40))))
    return games


def test_the_order_of_games_does_not_change_a_bit():
    games = random_games(4)
    first = fit(games, "p0")
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(games))
        again = fit([games[index] for index in order], "p0")
        assert again.to_json() == first.to_json()
        np.testing.assert_array_equal(again.resampled_elo, first.resampled_elo)


def test_swapped_colours_flip_the_sign_of_the_colour_advantage():
    games = random_games(5)
    swapped = [RatedGame(game.black, game.white, -game.outcome_white, game.opening)
               for game in games]
    mirrored = [replace(game, outcome_white=-game.outcome_white) for game in games]
    ratings, by_swap, by_mirror = (fit(rows, "p0") for rows in (games, swapped, mirrored))
    assert by_swap.colour_advantage.value == pytest.approx(-ratings.colour_advantage.value)
    assert elo_of(by_swap) == pytest.approx(elo_of(ratings), abs=1e-8)
    # Every result the other way round: both kinds of difference change sign.
    assert by_mirror.colour_advantage.value == pytest.approx(-ratings.colour_advantage.value)
    assert elo_of(by_mirror) == pytest.approx(
        {name: -elo for name, elo in elo_of(ratings).items()}, abs=1e-8
    )


def test_another_anchor_shifts_every_rating_by_as_much():
    games = random_games(6)
    at_0, at_2 = fit(games, "p0"), fit(games, "p2")
    shift = at_0.of("p2").elo.value
    assert elo_of(at_2) == pytest.approx(
        {name: elo - shift for name, elo in elo_of(at_0).items()}, abs=1e-8
    )
    assert at_2.of("p2").elo.to_json() == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert at_2.colour_advantage.value == pytest.approx(at_0.colour_advantage.value)
    assert at_2.of("p3").elo.low == pytest.approx(at_0.difference("p3", "p2").low, abs=1e-6)


def test_ten_times_the_games_give_the_same_ratings_and_narrower_intervals():
    games = random_games(7)
    more = [replace(game, opening=f"{copy}/{game.opening}") for copy in range(10) for game in games]
    few, many = fit(games, "p0", num_resamples=300), fit(more, "p0", num_resamples=300)
    assert elo_of(many) == pytest.approx(elo_of(few), abs=1e-8)
    for name in ("p1", "p2", "p3"):
        wide, narrow = few.of(name).elo, many.of(name).elo
        ratio = (wide.high - wide.low) / (narrow.high - narrow.low)
        assert ratio == pytest.approx(math.sqrt(10), rel=0.25)


def test_repeated_games_from_one_opening_narrow_nothing():
    """Deterministic players play the same game again; that is not evidence."""
    games = random_games(8)
    once, twice = fit(games, "p0"), fit(games + games, "p0")
    assert elo_of(twice) == pytest.approx(elo_of(once), abs=1e-8)
    assert twice.of("p3").elo.low == pytest.approx(once.of("p3").elo.low, abs=1e-6)


# Intervals


def test_both_games_of_an_opening_are_resampled_together():
    """In every opening the side to move first wins both, or loses both: a pair is always even."""
    games = paired("a", "b", [(1, -1)] * 15 + [(-1, 1)] * 10)
    ratings = fit(games, "b", num_resamples=200)
    elo, colour = ratings.of("a").elo, ratings.colour_advantage
    assert (elo.low, elo.high) == pytest.approx((0.0, 0.0), abs=1e-6)
    assert colour.low < colour.value - 50
    assert colour.high > colour.value + 50


def test_the_same_seed_gives_the_same_intervals_and_another_one_others():
    games = random_games(9)
    first, again, other = (fit(games, "p0", seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.resampled_elo, again.resampled_elo)
    assert not np.array_equal(first.resampled_elo, other.resampled_elo)


def test_an_interval_has_one_end_where_some_resamples_have_no_loss():
    games = paired("a", "b", [(1, 1)] * 28 + [(1, -1), (-1, 1)])
    elo = fit(games, "b", num_resamples=300).of("a").elo
    assert math.isfinite(elo.value)
    assert 200 < elo.low < elo.value - 50
    assert elo.high == math.inf


def test_one_opening_says_nothing_about_its_spread():
    elo = fit(paired("a", "b", [(1, 0)] * 20) + paired("c", "b", [(1, -1)]), "b").of("c").elo
    assert (elo.low, elo.high) == (-math.inf, math.inf)


def covered(elos, num_openings, span, repetitions, num_resamples, seed):
    """Repetitions in which each player's interval holds its true rating; then the shared two."""
    stream = np.random.default_rng(seed)
    hits = np.zeros(len(elos) + 1, np.int64)
    for repetition in range(repetitions):
        table = simulated_table(elos, num_openings, stream=stream, span=span)
        ratings = fit_ratings(table, "p0", num_resamples=num_resamples, seed=repetition)
        truths = [(ratings.of(f"p{number}").elo, elo) for number, elo in enumerate(elos)][1:]
        truths += [(ratings.colour_advantage, 30.0), (ratings.draw_rate, 0.3)]
        hits += [estimate.low <= truth <= estimate.high for estimate, truth in truths]
    return hits


def test_intervals_hold_the_true_ratings_93_times_in_100():
    hits = covered([0, 150, 300, 500], 40, 2, repetitions=100, num_resamples=200, seed=11)
    assert hits.mean() >= 93
    assert hits.min() >= 90


@pytest.mark.slow
@pytest.mark.parametrize(
    ("elos", "num_openings", "span"),
    [([0, 150, 300, 500, 600, 900], 40, 2), ([0, 200, 400, 550], 12, 3), ([0, 300, 600], 50, 1)],
)
def test_intervals_of_many_tables_hold_the_true_ratings(elos, num_openings, span):
    hits = covered(elos, num_openings, span, repetitions=1000, num_resamples=500, seed=12)
    assert hits.min() >= 930


# Players without a finite rating


@pytest.mark.parametrize("num_openings", [1, 3, 40])
def test_a_clean_sweep_has_the_exact_one_sided_bound(num_openings):
    ratings = fit(paired("a", "b", [(1, 1)] * num_openings), "b")
    elo = ratings.of("a").elo
    assert (elo.value, elo.high) == (math.inf, math.inf)
    low, _ = wilson_interval(1.0, num_openings)
    assert elo.low == pytest.approx(elo_difference(low), abs=1e-3)
    loser = fit(paired("a", "b", [(1, 1)] * num_openings), "a").of("b").elo
    assert (loser.value, loser.low) == (-math.inf, -math.inf)
    assert loser.high == pytest.approx(-elo.low, abs=1e-6)


def test_players_without_a_finite_rating_distort_nobody():
    games = random_games(10)
    sweeps = (paired("ace", "p1", [(1, 1)] * 6) + paired("ace", "p3", [(1, 1)] * 6)
              + paired("dud", "p0", [(-1, -1)] * 6) + paired("dud", "ace", [(-1, -1)] * 2))
    alone, together = fit(games, "p0"), fit(games + sweeps, "p0")
    for name in ("p1", "p2", "p3"):
        one, other = alone.of(name).elo.to_json(), together.of(name).elo.to_json()
        assert other == pytest.approx(one, abs=1e-8)
    assert (together.table[0].player, together.table[-1].player) == ("ace", "dud")
    ace, dud = together.of("ace").elo, together.of("dud").elo
    assert (ace.value, dud.value) == (math.inf, -math.inf)
    assert together.of("p3").elo.value < ace.low < math.inf
    assert -math.inf < dud.high < 0


def test_a_sweep_of_somebody_who_swept_is_farther_away():
    games = paired("b", "c", [(1, 1)] * 10) + paired("a", "b", [(1, 1)] * 10)
    ratings = fit(games, "c")
    assert [rating.player for rating in ratings.table] == ["a", "b", "c"]
    assert ratings.of("b").elo.low == pytest.approx(elo_difference(0.05 ** 0.1), abs=1e-3)
    assert ratings.of("a").elo.low > ratings.of("b").elo.low + 100


def test_a_player_who_never_lost_with_white_has_a_lower_bound_only():
    """Of two players alone: being white may be worth everything, and the other half too."""
    elo = fit(paired("a", "b", [(1, 1)] * 29 + [(1, -1)]), "b").of("a").elo
    assert (elo.value, elo.high) == (math.inf, math.inf)
    assert 200 < elo.low < 600


def test_draws_without_a_loss_have_a_lower_bound_only():
    ratings = fit(paired("a", "b", [(1, 0)] * 5 + [(0, 1)] * 5), "b")
    elo = ratings.of("a").elo
    assert (elo.value, elo.high) == (math.inf, math.inf)
    assert 0 < elo.low < 1000
    assert math.isnan(ratings.draw_rate.value)


@pytest.mark.parametrize(
    "games",
    [paired("a", "b", [(0, 0)] * 8),
     games_of("a", "b", (5, 0, 5), (0, 0, 0)),
     paired("a", "x", [(1, 1)] * 4) + paired("b", "x", [(1, 1)] * 4)],
    ids=["only draws", "one colour only", "both beat a third"],
)
def test_games_that_say_nothing_of_a_distance_give_no_rating(games):
    elo = fit(games, "b").of("a").elo
    assert math.isnan(elo.value)
    assert (elo.low, elo.high) == (-math.inf, math.inf)


@settings(max_examples=30)
@given(st.integers(0, 100_000), st.integers(2, 5), st.integers(1, 12))
def test_any_few_games_give_bounds_around_the_rating(seed, num_players, num_games):
    """Tables so small that anything can be separated, unconnected or open."""
    stream = np.random.default_rng(seed)
    games = []
    for number in range(num_games + num_players - 1):
        # The first games connect everybody.
        white, black = ((number + 1, stream.integers(number + 1)) if number + 1 < num_players
                        else stream.choice(num_players, 2, replace=False))
        outcome = int(stream.integers(-1, 2))
        opening = str(stream.integers(4))
        games.append(RatedGame(f"p{white}", f"p{black}", outcome, opening))
    ratings = fit(games, "p0")
    for rating in ratings.table:
        elo = rating.elo
        assert elo.low <= elo.high
        assert math.isnan(elo.value) or elo.low <= elo.value <= elo.high
        assert not (math.isinf(elo.value) and math.isinf(elo.low) and math.isinf(elo.high))
    json.dumps(ratings.to_json(), allow_nan=False)


def test_difference_of_players_without_a_rating_is_unknown():
    ratings = fit(random_games(10) + paired("ace", "p1", [(1, 1)] * 6), "p0")
    assert math.isnan(ratings.difference("ace", "p1").value)
    assert all(math.isnan(chance) for chance in ratings.chances_of_white("ace", "p0"))


def test_json_has_null_where_a_number_is_not_finite():
    told = fit(paired("a", "b", [(1, 1)] * 5), "b").to_json()
    text = json.dumps(told, allow_nan=False)
    first = json.loads(text)["players"][0]
    assert (first["player"], first["elo"], first["elo_high"]) == ("a", None, None)
    assert first["elo_low"] == pytest.approx(elo_difference(0.05 ** 0.2), abs=1e-3)
    assert told["anchor"] == "b"


# Bad input


def test_names_the_players_that_are_cut_off():
    games = paired("a", "b", [(1, -1)] * 3) + paired("c", "d", [(1, -1)] * 3)
    with pytest.raises(RatingError, match="from the anchor 'a' to c, d;"):
        fit(games, "a")


def test_refuses_an_anchor_without_games():
    with pytest.raises(RatingError, match="anchor 'random' has played no game"):
        fit_ratings(Crosstable.from_games(paired("a", "b", [(1, -1)])))


def test_refuses_an_unknown_player():
    ratings = fit(paired("a", "b", [(1, -1)] * 3), "a")
    with pytest.raises(RatingError, match="'c' is not rated; rated are a, b"):
        ratings.of("c")


@pytest.mark.parametrize(
    ("option", "value"),
    [("confidence", 0.0), ("confidence", 1.0), ("confidence", math.nan), ("num_resamples", 0)],
)
def test_refuses_numbers_out_of_range(option, value):
    with pytest.raises(ConfigError, match=f"{option} must be"):
        fit(paired("a", "b", [(1, -1)] * 3), "a", **{option: value})
