import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_games import made_match
from simulated_pairs import SCORES, coverage, is_measurable, worlds

from chess_snn.errors import ConfigError
from chess_snn.evaluation.scores import (
    PAIR_SCORES,
    elo_difference,
    logistic_score,
    pair_counts,
    pair_interval,
)

confidences = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])
pairs = st.lists(st.integers(0, 200), min_size=5, max_size=5).map(np.array)


# Pairs of games


@pytest.mark.parametrize("num_pairs", [10, 32, 100, 400])
def test_holds_the_true_score_of_pairs_94_to_97_times_in_100(num_pairs):
    check_coverage(worlds(), num_pairs, num_matches=4000, lowest=0.94, highest=0.97)


@pytest.mark.slow
@pytest.mark.parametrize("num_pairs", range(4, 60, 3))
def test_holds_the_true_score_of_few_pairs(num_pairs):
    check_coverage(worlds(), num_pairs, num_matches=20_000, lowest=0.943, highest=0.97)


def check_coverage(chances_by_world, num_pairs, *, num_matches, lowest, highest):
    stream = np.random.default_rng(num_pairs)
    for world, chances in chances_by_world.items():
        held, _ = coverage(chances, num_pairs, num_matches, stream)
        assert held >= lowest, world
        if is_measurable(chances, num_pairs):
            assert held <= highest, world


def test_an_interval_of_pairs_is_as_wide_as_their_own_variance_has_it():
    counts = np.array([0, 2, 9, 5, 4])
    mean = counts @ PAIR_SCORES / 20
    error = math.sqrt(counts @ (PAIR_SCORES - mean) ** 2 / 19 / 20)
    low, high = pair_interval(counts)
    assert (low, high) == pytest.approx((mean - 2.09 * error, mean + 2.09 * error), abs=0.015)
    assert low > 0.5, "98 % superior: one half is outside"


@pytest.mark.parametrize("score", SCORES[1:-1])
def test_ends_have_the_likelihood_ratio_of_two_results(score):
    """With pairs won or lost only, the ratio is a coin's, which is known."""
    wins, num_pairs, limit = round(200 * score), 200, 1.9719**2  # Student's t, 200 degrees
    share = wins / num_pairs
    for end in pair_interval(np.array([num_pairs - wins, 0, 0, 0, wins])):
        ratio = wins * math.log(share / end) + (200 - wins) * math.log((1 - share) / (1 - end))
        assert 2 * ratio == pytest.approx(limit, abs=0.15)  # of pairs not seen, 0.02 each


@given(pairs, confidences)
def test_an_interval_of_pairs_contains_the_score(counts, confidence):
    low, high = pair_interval(counts, confidence)
    score = counts @ PAIR_SCORES / max(1, counts.sum())
    assert 0 <= low <= 1 >= high >= 0
    assert counts.sum() == 0 or low <= score <= high


@given(pairs, confidences)
def test_swapped_players_mirror_the_interval_of_pairs(counts, confidence):
    low, high = pair_interval(counts, confidence)
    assert pair_interval(counts[::-1], confidence) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(pairs.filter(lambda counts: counts.sum() > 1))
def test_more_pairs_or_less_confidence_narrow_the_interval(counts):
    def width(counts, confidence):
        low, high = pair_interval(counts, confidence)
        return high - low

    assert width(2 * counts, 0.95) < width(counts, 0.95)
    assert width(counts, 0.8) < width(counts, 0.95)


@pytest.mark.parametrize("num_pairs", [1, 3, 50])
def test_pairs_all_won_have_the_exact_one_sided_bound(num_pairs):
    low, high = pair_interval(np.array([0, 0, 0, 0, num_pairs]))
    assert high == 1.0
    assert low**num_pairs == pytest.approx(0.05)  # a true score of `low` sweeps 5 % of the time


def test_without_pairs_nothing_is_known():
    assert pair_interval(np.zeros(5, np.int64)) == (0.0, 1.0)


def test_many_intervals_at_once_are_the_same():
    stream = np.random.default_rng(3)
    counts = stream.integers(0, 30, (4, 7, 5))
    low, high = pair_interval(counts)
    assert low.shape == high.shape == (4, 7)
    assert (low[2, 3], high[2, 3]) == pair_interval(counts[2, 3])


@pytest.mark.parametrize(
    ("counts", "confidence", "message"),
    [([1, 2, 3], 0.95, "5 columns"), ([1, 2, 3, 4, 5], 1.0, "confidence")],
)
def test_refuses_what_are_no_pairs(counts, confidence, message):
    with pytest.raises(ConfigError, match=message):
        pair_interval(np.array(counts), confidence)


@pytest.mark.parametrize(
    ("score", "elo"), [(0.5, 0), (10 / 11, 400), (100 / 101, 800), (1.0, math.inf)]
)
def test_ten_to_one_is_400_points(score, elo):
    assert elo_difference(score) == pytest.approx(elo)
    assert elo_difference(1 - score) == pytest.approx(-elo)


@pytest.mark.parametrize("score", [-0.1, 1.1, math.nan])
def test_refuses_what_is_no_score(score):
    with pytest.raises(ConfigError, match="score"):
        elo_difference(score)


@pytest.mark.parametrize("score", [1e-9, 0.05, 0.5, 0.76, 1 - 1e-9])
def test_a_difference_gives_its_score_back(score):
    assert logistic_score(elo_difference(score)) == pytest.approx(score, rel=1e-9)


def test_a_huge_difference_is_a_score_of_0_or_1():
    assert logistic_score(1e6) == 1.0
    assert logistic_score(-1e6) == 0.0
    assert logistic_score(math.inf) == 1.0


def test_openings_are_counted_by_their_mean_score():
    scores = [(0, 0), (0.5, 0), (0, 0.5), (1, 0), (0.5, 0.5), (0, 1), (1, 0.5), (1, 1), (1, 1)]
    result = made_match(scores)
    counts = pair_counts(result)
    assert counts.tolist() == [1, 2, 3, 1, 2]
    assert counts @ PAIR_SCORES / counts.sum() == pytest.approx(result.score)
    with_void_games = made_match([*scores, (1, math.nan), (math.nan, 0)])
    assert pair_counts(with_void_games).tolist() == counts.tolist()
