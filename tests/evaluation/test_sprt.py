"""The test of promotion: published and closed values, and its error rates in simulation."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_pairs import pair_chances
from simulated_promotion import CONFIG, LEARNING, facts_of, simulate

from chess_snn.campaign.configuration.settings import PromotionSettings
from chess_snn.campaign.strength.gating_match import decide
from chess_snn.campaign.strength.match_schedule import player_name
from chess_snn.campaign.strength.ratings import RatedCampaign
from chess_snn.errors import ConfigError
from chess_snn.evaluation.comparison import (
    ERROR_RATE,
    SPRT_BOUND,
    log_likelihood_ratio,
    sprt,
)
from chess_snn.evaluation.ratings.crosstable import Crosstable, RatedGame
from chess_snn.evaluation.ratings.fit import fit_ratings
from chess_snn.evaluation.scores import PAIR_SCORES, logistic_score

pair_counts = st.lists(st.integers(0, 200), min_size=5, max_size=5).map(np.array)
seen_counts = st.lists(st.integers(20, 60), min_size=5, max_size=5).map(np.array)


# Values


def test_published_example():
    """A finished test of a public framework, its row "Logistic (exact)"; bounds 0 and 0.50391."""
    counts = np.array([13, 37, 50, 25, 3])
    llr = log_likelihood_ratio(counts, 0.0, 2.716)
    assert llr == pytest.approx(-0.53772, abs=2e-4)


@pytest.mark.parametrize(("wins", "losses"), [(30, 20), (200, 150), (5, 40)])
def test_without_anything_between_it_is_the_ratio_of_two_coins(wins, losses):
    low, high = logistic_score(-10), logistic_score(60)
    expected = wins * math.log(high / low) + losses * math.log((1 - high) / (1 - low))
    llr = log_likelihood_ratio(np.array([losses, 0, 0, 0, wins]), -10, 60)
    assert llr == pytest.approx(expected, abs=0.02)  # scores not seen count a thousandth each


def test_for_close_hypotheses_it_is_the_one_of_a_normal_mean():
    counts = np.array([200, 800, 1500, 900, 240])
    total = counts.sum()
    mean = counts @ PAIR_SCORES / total
    variance = counts @ (PAIR_SCORES - mean) ** 2 / total
    low, high = logistic_score(0), logistic_score(8)
    expected = total * (high - low) * (2 * mean - low - high) / (2 * variance)
    assert log_likelihood_ratio(counts, 0, 8) == pytest.approx(expected, rel=0.02)


@given(pair_counts)
def test_the_opponents_view_mirrors_it(counts):
    ratio = log_likelihood_ratio(counts, 0, 20)
    assert log_likelihood_ratio(counts[::-1], -20, 0) == pytest.approx(-ratio, abs=1e-6)


@given(seen_counts, st.integers(0, 3))
def test_a_better_pair_speaks_more_for_the_candidate(counts, score):
    """It does near the hypotheses, within a standard deviation; not with two pairs alone."""
    worse, better = counts.copy(), counts.copy()
    worse[score] += 1
    better[score + 1] += 1
    assert log_likelihood_ratio(better, 0, 20) > log_likelihood_ratio(worse, 0, 20)


def test_many_tests_at_once_are_each_by_itself():
    counts = np.random.default_rng(1).integers(0, 50, size=(6, 7, 5))
    ratios = log_likelihood_ratio(counts, 0, 20)
    assert ratios.shape == (6, 7)
    assert ratios[2, 3] == pytest.approx(float(log_likelihood_ratio(counts[2, 3], 0, 20)))


# States


def test_no_pairs_decide_nothing():
    result = sprt(np.zeros(5, np.int64), 0, 20)
    assert (result.state, result.llr) == ("continue", 0.0)


@pytest.mark.parametrize(
    ("counts", "state"),
    [([10, 30, 50, 40, 20], "continue"), ([0, 20, 100, 120, 90], "accept"),
     ([90, 120, 100, 20, 0], "reject"), ([0, 0, 0, 0, 60], "accept"), ([60, 0, 0, 0, 0], "reject"),
     ([0, 0, 0, 60, 0], "accept"), ([0, 60, 0, 0, 0], "reject"), ([0, 0, 60, 0, 0], "reject"),
     ([0, 0, 5, 0, 0], "continue"), ([0, 0, 0, 0, 3], "continue"), ([3, 0, 0, 0, 0], "continue")],
)
def test_states(counts, state):
    result = sprt(np.array(counts), 0, 20)
    assert result.state == state
    assert (abs(result.llr) < SPRT_BOUND) == (state == "continue")
    json.dumps(asdict(result), allow_nan=False)


# Error rates


def test_the_error_rate_bounds_each_end_by_itself():
    """By Ville's inequality a true `elo0` reaches a ratio of 1 / p with probability p."""
    assert pytest.approx(math.log(20)) == SPRT_BOUND


def accepted_share(true_chances, elo0, elo1, *, num_tests, pairs_each, stream):
    """Share of tests that accept; all go on until they end."""
    counts = np.zeros((num_tests, 5), np.int64)
    accepted, running = 0, np.arange(num_tests)
    while len(running):
        counts[running] += stream.multinomial(pairs_each, true_chances, size=len(running))
        ratios = log_likelihood_ratio(counts[running], elo0, elo1)
        accepted += np.count_nonzero(ratios >= SPRT_BOUND)
        running = running[np.abs(ratios) < SPRT_BOUND]
    return accepted / num_tests


def check_error_rates(elo0, elo1, draw_rate, opening_edge, *, num_tests, pairs_each):
    stream = np.random.default_rng(6)
    false_accepts, accepts = (
        accepted_share(pair_chances(elo, draw_rate, opening_edge), elo0, elo1,
                       num_tests=num_tests, pairs_each=pairs_each, stream=stream)
        for elo in (elo0, elo1)
    )
    assert false_accepts <= ERROR_RATE
    assert 1 - accepts <= ERROR_RATE


@pytest.mark.parametrize(
    ("elo0", "elo1", "draw_rate", "opening_edge"),
    [(0, 20, 0.3, 80), (0, 60, 0.1, 0), (-20, 40, 0.6, 150), (0, 150, 0.3, 0)],
)
def test_error_rates_are_within_their_bounds(elo0, elo1, draw_rate, opening_edge):
    check_error_rates(elo0, elo1, draw_rate, opening_edge, num_tests=800, pairs_each=10)


@pytest.mark.slow
@pytest.mark.parametrize("draw_rate", [0.05, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("opening_edge", [0, 150])
@pytest.mark.parametrize("elo1", [20, 50, 150])
def test_error_rates_of_many_tests_are_within_their_bounds(elo1, draw_rate, opening_edge):
    check_error_rates(0, elo1, draw_rate, opening_edge, num_tests=10_000, pairs_each=5)


# Bad input


@pytest.mark.parametrize(
    ("values", "message"),
    [({"elo0": math.nan}, "promotion.elo0"), ({"elo1": 2000}, "promotion.elo1"),
     ({"elo0": 20, "elo1": 20}, "promotion.elo1")],
)
def test_refuses_settings_out_of_range(values, message):
    with pytest.raises(ConfigError, match=message):
        PromotionSettings(**values)


# The rule of promotion, in simulated campaigns and on the games of a real one.


README_GATES = [[1, 1, 11, 3, 0], [0, 0, 13, 2, 1], [0, 0, 11, 5, 0]]
"""Pairs of generations 2, 3 and 4 of the README's campaign against generation 1, which remained
champion though it was the worst of them."""


def rated(games) -> RatedCampaign:
    return RatedCampaign(fit_ratings(Crosstable.from_games(games), "random"), (), tuple(games))


def games(a, b, wins, draws, losses):
    """Alternating colours, each two games from one opening."""
    outcomes = [1] * wins + [0] * draws + [-1] * losses
    return [
        RatedGame(a, b, outcome, f"{a}{b}{number // 2}") if number % 2
        else RatedGame(b, a, -outcome, f"{a}{b}{number // 2}")
        for number, outcome in enumerate(outcomes)
    ]


def name(generation):
    return player_name(generation, CONFIG.evaluation.simulations)


@pytest.mark.parametrize("pairs", README_GATES)
def test_a_campaign_kept_its_worst_network_as_champion_bug(pairs):
    assert decide(CONFIG, facts_of(4, 1, pairs), None).verdict == "accept"


def test_a_candidate_that_lost_more_games_than_it_won_is_rejected():
    facts = decide(CONFIG, facts_of(2, 1, [1, 4, 11, 3, 0]), None)
    assert (facts.verdict, facts.elo_ahead) == ("reject", None)


def test_games_against_others_count():
    """Level with the champion in the gating match, and far better against everybody else."""
    gating_match = games(name(2), name(1), 8, 16, 8)
    champion = games(name(1), "random", 15, 20, 15)
    better = games(name(2), "random", 30, 20, 0)
    facts = decide(CONFIG, facts_of(2, 1, [0, 4, 8, 4, 0]), rated(gating_match + champion + better))
    assert facts.verdict == "accept"
    assert facts.elo_ahead_low < facts.elo_ahead < facts.elo_ahead_high
    assert facts.elo_ahead > 50
    assert facts.games_rated == 32 + 50 + 50
    worse = games(name(2), "random", 5, 20, 25)
    assert decide(CONFIG, facts, rated(gating_match + champion + worse)).verdict == "reject"


LOST = [8, 1, 18, 1, 4]
"""Pairs of a match of 64 games, 27-2-35."""


def test_a_lost_match_blocks_a_candidate_that_is_hardly_ahead_bug():
    """A campaign of an hour accepted one after 27-2-35, because it was 13 points ahead."""
    match = games(name(2), name(1), 27, 2, 35)
    champion = games(name(1), "random", 60, 40, 0)
    others = champion + games(name(2), "random", 80, 20, 0)
    facts = decide(CONFIG, facts_of(90, 84, LOST), None)
    assert facts.verdict == "reject"
    facts = decide(CONFIG, facts_of(2, 1, LOST), rated(match + others))
    assert facts.elo_ahead > 0 > facts.elo_ahead_low
    assert facts.verdict == "reject"
    hardly_lost = decide(CONFIG, facts_of(2, 1, [5, 0, 23, 0, 4]), rated(match + others))
    assert (hardly_lost.score < 0.5, hardly_lost.verdict) == (True, "accept")


def test_other_games_can_outweigh_a_lost_match():
    match = games(name(2), name(1), 27, 2, 35)
    others = games(name(1), "random", 100, 0, 300) + games(name(2), "random", 300, 0, 100)
    facts = decide(CONFIG, facts_of(2, 1, LOST), rated(match + others))
    assert facts.elo_ahead_low > 0
    assert facts.verdict == "accept"


def test_who_lost_every_game_of_the_gate_is_rejected():
    sweep = games(name(1), "random", 5, 20, 5) + games(name(2), name(1), 0, 0, 20)
    facts = decide(CONFIG, facts_of(2, 1, [10, 0, 0, 0, 0]), rated(sweep))
    assert facts.verdict == "reject"
    assert (facts.elo_ahead < facts.elo_ahead_high < 0, facts.elo_ahead_low) == (True, None)


def test_games_of_another_search_budget_do_not_count():
    better = games(name(2), "random", 30, 20, 0) + games(name(1), "random", 15, 20, 15)
    facts = facts_of(2, 1, [0, 9, 7, 0, 0], simulations=CONFIG.evaluation.simulations + 1)
    assert decide(CONFIG, facts, rated(better)).verdict == "reject"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["20 a generation", "25 a generation, loses 200 in the middle"])
def test_the_champion_is_near_the_best_network(kind):
    found, former = (simulate(kind, 0.8, 12, 9, seed=1, rule=rule) for rule in ("now", "test"))
    assert found.regret < 0.5 * former.regret
    assert found.far_behind < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("draw_rate", [0.3, 0.8])
@pytest.mark.parametrize("kind", LEARNING)
def test_the_champion_is_near_the_best_network_whatever_is_learnt(kind, draw_rate):
    found = simulate(kind, draw_rate, 30, 16, seed=2)
    # One refused candidate is far behind where a generation gains 54 points.
    assert found.far_behind < (0.3 if kind == "270 in 6 generations" else 0.15)
    former = simulate(kind, draw_rate, 30, 16, seed=2, rule="test")
    if "then -8" not in kind:
        assert found.regret < min(30.0, former.regret)
