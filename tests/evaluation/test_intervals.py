import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.errors import ConfigError
from chess_snn.evaluation import wilson_interval

NUM_PAIRS = 50
scores = st.floats(0.0, 1.0)
counts = st.integers(1, 5000)
confidences = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])


def test_published_example():
    # 15 of 148 (Newcombe 1998, Statistics in Medicine 17, table I, method 3)
    # and 81 of 263, in the same table.
    assert wilson_interval(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(15 / 148, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)


def test_ends_are_roots_of_wilsons_equation():
    score, num_trials, z = 0.3, 40, 1.959963984540054
    for end in wilson_interval(score, num_trials):
        assert abs(score - end) == pytest.approx(z * math.sqrt(end * (1 - end) / num_trials))


@given(scores, counts, confidences)
def test_contains_the_score_and_stays_within_0_and_1(score, num_trials, confidence):
    low, high = wilson_interval(score, num_trials, confidence)
    assert -1e-12 <= low <= score + 1e-12
    assert score - 1e-12 <= high <= 1 + 1e-12


@given(scores, counts, confidences)
def test_colour_flip_mirrors_the_interval(score, num_trials, confidence):
    low, high = wilson_interval(score, num_trials, confidence)
    mirrored = wilson_interval(1.0 - score, num_trials, confidence)
    if 1.0 - (1.0 - score) == score:
        assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(st.integers(6, 500), confidences, st.data())
def test_a_better_score_never_has_a_lower_bound(num_pairs, confidence, data):
    quarters = sorted(data.draw(st.tuples(*[st.integers(0, 4 * num_pairs)] * 2)))
    worse, better = (
        wilson_interval(quarter / (4 * num_pairs), num_pairs, confidence) for quarter in quarters
    )
    assert worse[0] <= better[0] + 1e-12
    assert worse[1] <= better[1] + 1e-12


@given(scores, counts)
def test_more_games_or_less_confidence_narrow_it(score, num_trials):
    def width(n, confidence):
        low, high = wilson_interval(score, n, confidence)
        return high - low

    assert width(2 * num_trials, 0.95) < width(num_trials, 0.95)
    assert width(num_trials, 0.8) < width(num_trials, 0.95)


@pytest.mark.parametrize("num_trials", [1, 3, 50])
def test_a_clean_sweep_has_the_exact_one_sided_bound(num_trials):
    low, high = wilson_interval(1.0, num_trials)
    assert high == 1.0
    assert low**num_trials == pytest.approx(0.05)  # a true score of `low` sweeps 5 % of the time
    assert wilson_interval(0.0, num_trials) == pytest.approx((0.0, 1.0 - low))


@pytest.mark.parametrize(
    ("win", "draw", "white_edge"),
    [(0.5, 0.0, 0.0), (0.2, 0.6, 0.1), (0.1, 0.2, 0.05), (0.7, 0.2, 0.1), (0.45, 0.1, 0.4)],
)
def test_covers_the_true_score_of_paired_games(win, draw, white_edge):
    """A pair's opening favours white by an edge that is its own, so its two games correlate."""
    stream = np.random.default_rng(17)
    covered, repetitions = 0, 1000
    for _ in range(repetitions):
        edges = stream.uniform(-white_edge, white_edge, NUM_PAIRS)
        rolls = stream.random((2, NUM_PAIRS))
        wins = win + np.stack([edges, -edges])
        pair_scores = np.mean((rolls < wins) + 0.5 * ((rolls >= wins) & (rolls < wins + draw)), 0)
        low, high = wilson_interval(float(np.mean(pair_scores)), NUM_PAIRS)
        covered += low <= win + draw / 2 <= high
    assert covered >= 0.93 * repetitions


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((-0.1, 10), "score"), ((1.1, 10), "score"), ((float("nan"), 10), "score"),
     ((0.5, 0), "num_trials"), ((0.5, 10, 0.0), "confidence"), ((0.5, 10, 1.0), "confidence")],
)
def test_refuses_what_is_out_of_range(arguments, name):
    with pytest.raises(ConfigError, match=f"{name} must be"):
        wilson_interval(*arguments)
