"""Ratings: closed forms, what any maximum satisfies, invariances, intervals, and sweeps."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_games import chances, simulated_table
from simulated_ratings import CASES, Case, simulate

from chess_snn.errors import ConfigError, RatingError
from chess_snn.evaluation.ratings.crosstable import Crosstable, RatedGame
from chess_snn.evaluation.ratings.fit import fit_ratings
from chess_snn.evaluation.scores import elo_difference

IMAGINED = 1 / 3
"""Wins, draws and losses that the prior adds to those of two players alone."""


def games_of(first, second, *by_colour):
    """Games with ``first`` white (wins, draws, losses), then with ``second``; an opening each."""
    games = []
    for white, black, counts in zip((first, second), (second, first), by_colour, strict=True):
        outcomes = np.repeat([1, 0, -1], counts).tolist()
        games += [RatedGame(white, black, outcome, f"{white}{number}")
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
    return fit_ratings(Crosstable.from_games(games), anchor, **options)


def elo_of(ratings):
    return {rating.player: rating.elo.value for rating in ratings.table}


# Closed forms


@pytest.mark.parametrize(("wins", "losses"), [(76, 24), (1, 3), (999, 1), (5, 5), (8, 0)])
def test_two_players_without_draws_are_the_logistic_formula(wins, losses):
    ratings = fit(games_of("a", "b", (wins, 0, losses), (losses, 0, wins)), "b")
    won, lost = 2 * wins + IMAGINED, 2 * losses + IMAGINED
    expected = elo_difference(won / (won + lost))
    assert ratings.of("a").elo.value == pytest.approx(expected, abs=1e-8)
    assert ratings.colour_advantage.value == pytest.approx(0.0, abs=1e-8)
    odds = IMAGINED / math.sqrt(won * lost)
    assert ratings.draw_rate.value == pytest.approx(odds / (2 + odds), abs=1e-10)


def test_two_players_with_draws_are_as_their_frequencies():
    ratings = fit(games_of("a", "b", (30, 50, 20), (20, 50, 30)), "b")
    counts = np.array([60, 100, 40]) + IMAGINED
    win, draw, loss = counts / counts.sum()
    assert ratings.of("a").elo.value == pytest.approx(400 * math.log10(win / loss), abs=1e-8)
    odds = draw / math.sqrt(win * loss)
    assert ratings.draw_rate.value == pytest.approx(odds / (2 + odds), abs=1e-10)


def test_two_players_with_a_colour_advantage_are_two_odds():
    """a scores 600 : 200 with white and 300 : 500 with black."""
    ratings = fit(games_of("a", "b", (600, 0, 200), (500, 0, 300)), "b")
    with_white, with_black = 400 * math.log10(600 / 200), 400 * math.log10(300 / 500)
    assert ratings.of("a").elo.value == pytest.approx((with_white + with_black) / 2, abs=0.5)
    assert ratings.colour_advantage.value == pytest.approx((with_white - with_black) / 2, abs=0.5)


def with_imagined(table):
    """float[K, 2, 3]: the games, and half a game of each player, spread as the prior spreads it."""
    totals = table.totals()
    games = totals.sum(axis=(1, 2))
    of_player = np.zeros(len(table.players))
    for pairing, count in zip(table.pairings, games, strict=True):
        of_player[pairing] += count
    imagined = [
        0.5 * count * (1 / of_player[pairing]).sum()
        for pairing, count in zip(table.pairings, games, strict=True)
    ]
    return totals + np.array(imagined)[:, None, None] / 6


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_at_the_maximum_what_is_expected_is_what_happened(seed):
    """The likelihood equations: every player's points, white's points, and the draws."""
    table = simulated_table(
        [0, 120, 200, 350], 25, stream=np.random.default_rng(seed), span=3
    )
    ratings = fit_ratings(table, "p0")
    elos = [ratings.of(name).elo.value for name in table.players]
    points, expected_points = np.zeros(4), np.zeros(4)
    draws = expected_draws = colours = expected_colours = 0.0
    for pairing, by_colour in zip(table.pairings, with_imagined(table), strict=True):
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
            for pairing, by_colour in zip(table.pairings, with_imagined(table), strict=True)
            for (white, black), counts in zip((pairing, pairing[::-1]), by_colour, strict=True)
        )

    found = optimize.minimize(cost, np.zeros(5), method="BFGS", options={"gtol": 1e-7}).x
    ratings = fit_ratings(table, "p0")
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
        np.testing.assert_array_equal(again.covariance, first.covariance)


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
    few, many = fit(games, "p0"), fit(more, "p0")
    assert elo_of(many) == pytest.approx(elo_of(few), abs=5)
    for name in ("p1", "p2", "p3"):
        assert few.of(name).elo.width == pytest.approx(
            math.sqrt(10) * many.of(name).elo.width, rel=0.1
        )


def test_repeated_games_from_one_opening_narrow_nothing():
    """Deterministic players play the same game again; that is not evidence."""
    games = random_games(8)
    once, twice = fit(games, "p0"), fit(games + games, "p0")
    assert elo_of(twice) == pytest.approx(elo_of(once), abs=3)
    assert twice.of("p3").elo.width == pytest.approx(once.of("p3").elo.width, rel=0.05)


# Intervals


def test_the_two_games_of_an_opening_may_depend_on_each_other():
    """In every opening the side to move first wins both, or loses both: a pair is always even."""
    ratings = fit(paired("a", "b", [(1, -1)] * 150 + [(-1, 1)] * 100), "b")
    independent = fit(games_of("a", "b", (150, 0, 100), (150, 0, 100)), "b")
    elo, colour = ratings.of("a").elo, ratings.colour_advantage
    assert elo.width < 0.4 * independent.of("a").elo.width
    assert colour.width > 1.3 * independent.colour_advantage.width


def test_a_higher_confidence_is_a_wider_interval_about_the_same_rating():
    narrow, wide = (
        fit(random_games(9), "p0", confidence=level).of("p2").elo for level in (0.68, 0.95)
    )
    assert wide.value == narrow.value
    assert wide.width == pytest.approx(narrow.width * 1.95996 / 0.99446, rel=1e-4)


def test_intervals_hold_the_true_ratings():
    found = simulate(Case((0, 150, 300, 500), 30, 2), 100, seed=11)
    assert found.lowest >= 0.89
    assert found.coverage >= 0.93
    assert found.shared >= 0.90


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_intervals_of_many_tables_hold_the_true_ratings(case):
    found = simulate(case, 500)
    # Two players 1,000 points apart are the exception: see decision 29.
    assert found.lowest >= (0.9 if case.elos == (0, 1000) else 0.925)
    assert found.shared >= 0.925


# Sweeps


@pytest.mark.parametrize("num_openings", [1, 3, 40])
def test_a_clean_sweep_is_bounded_on_one_side(num_openings):
    ratings = fit(paired("a", "b", [(1, 1)] * num_openings), "b")
    elo = ratings.of("a").elo
    won = 2 * num_openings + IMAGINED
    assert elo.value == pytest.approx(400 * math.log10(won / IMAGINED))
    assert elo.high == math.inf
    loser = fit(paired("a", "b", [(1, 1)] * num_openings), "a").of("b").elo
    assert (loser.value, loser.low) == pytest.approx((-elo.value, -math.inf))
    assert loser.high == pytest.approx(-elo.low)


@pytest.mark.parametrize("num_openings", [3, 10, 40, 200])
def test_the_bound_of_a_sweep_is_near_the_exact_one(num_openings):
    """Between those of games that depend wholly on their opening, and of independent ones."""
    elo = fit(paired("a", "b", [(1, 1)] * num_openings), "b").of("a").elo
    by_openings, by_games = (
        elo_difference(0.05 ** (1 / number)) for number in (num_openings, 2 * num_openings)
    )
    assert by_openings - 60 < elo.low < by_games


def test_players_who_won_or_lost_everything_hardly_move_the_others():
    games = random_games(10)
    sweeps = (paired("ace", "p1", [(1, 1)] * 6) + paired("ace", "p3", [(1, 1)] * 6)
              + paired("dud", "p0", [(-1, -1)] * 6) + paired("dud", "ace", [(-1, -1)] * 2))
    alone, together = fit(games, "p0"), fit(games + sweeps, "p0")
    for name in ("p1", "p2", "p3"):
        one, other = alone.of(name).elo, together.of(name).elo
        assert other.value == pytest.approx(one.value, abs=0.1 * one.width)
        assert other.width == pytest.approx(one.width, rel=0.1)
    assert (together.table[0].player, together.table[-1].player) == ("ace", "dud")
    ace, dud = together.of("ace").elo, together.of("dud").elo
    assert (ace.high, dud.low) == (math.inf, -math.inf)
    assert together.of("p3").elo.value < ace.low < math.inf
    assert -math.inf < dud.high < 0


def test_a_sweep_of_somebody_who_swept_is_farther_away():
    games = paired("b", "c", [(1, 1)] * 10) + paired("a", "b", [(1, 1)] * 10)
    ratings = fit(games, "c")
    assert [rating.player for rating in ratings.table] == ["a", "b", "c"]
    assert ratings.of("a").elo.low > ratings.of("b").elo.low + 100
    assert ratings.of("a").elo.high == ratings.of("b").elo.high == math.inf


def test_draws_without_a_loss_bound_both_sides():
    elo = fit(paired("a", "b", [(1, 0)] * 5 + [(0, 1)] * 5), "b").of("a").elo
    assert 0 < elo.low < elo.value < elo.high < 2000


@pytest.mark.parametrize(
    "games",
    [paired("a", "b", [(0, 0)] * 8), games_of("a", "b", (5, 0, 5), (0, 0, 0))],
    ids=["only draws", "one colour only"],
)
def test_games_that_favour_nobody_give_equal_ratings(games):
    elo = fit(games, "b").of("a").elo
    assert elo.value == pytest.approx(0.0, abs=1e-6)
    assert elo.low == pytest.approx(-elo.high)
    assert 50 < elo.high < 2000


def test_two_who_both_beat_a_third_have_no_bounds():
    elo = fit(paired("a", "x", [(1, 1)] * 4) + paired("b", "x", [(1, 1)] * 4), "b").of("a").elo
    assert elo.value == pytest.approx(0.0, abs=1e-6)
    assert (elo.low, elo.high) == (-math.inf, math.inf)


@settings(max_examples=30)
@given(st.integers(0, 100_000), st.integers(2, 5), st.integers(1, 12))
def test_any_few_games_give_a_finite_rating_within_its_bounds(seed, num_players, num_games):
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
        assert math.isfinite(elo.value)
        assert elo.low <= elo.value <= elo.high
        assert rating.player == "p0" or elo.width > 50
    json.dumps(ratings.to_json(), allow_nan=False)


# Bad input


def test_names_the_players_that_are_cut_off():
    games = paired("a", "b", [(1, -1)] * 3) + paired("c", "d", [(1, -1)] * 3)
    with pytest.raises(RatingError, match="c, d"):
        fit(games, "a")


def test_refuses_an_anchor_without_games():
    with pytest.raises(RatingError, match="'random'"):
        fit_ratings(Crosstable.from_games(paired("a", "b", [(1, -1)])))


def test_refuses_an_unknown_player():
    ratings = fit(paired("a", "b", [(1, -1)] * 3), "a")
    with pytest.raises(RatingError, match="'c'"):
        ratings.of("c")


@pytest.mark.parametrize("confidence", [0.0, 1.0, math.nan])
def test_refuses_a_confidence_out_of_range(confidence):
    with pytest.raises(ConfigError):
        fit(paired("a", "b", [(1, -1)] * 3), "a", confidence=confidence)
