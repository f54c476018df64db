"""How likely one player of a match is the better one, from the scores of its pairs of games."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.evaluation.comparison import (
    likelihood_of_superiority,
    probability_of_positive_sum,
)
from chess_snn.evaluation.scores import PAIR_SCORES

some_counts = st.lists(st.integers(0, 300), min_size=5, max_size=5).map(np.array)


def first_is_larger(a, b):
    """P(G_a > G_b) of gamma variables with whole shapes: of a + b - 1 fair coins, at most a - 1."""
    coins = a + b - 1
    return sum(math.comb(coins, heads) for heads in range(a)) / 2**coins


@pytest.mark.parametrize(
    ("a", "b"), [(1, 1), (3, 1), (1, 9), (20, 30), (120, 80), (400, 401), (2000, 1)]
)
def test_two_terms_are_the_binomial_sum(a, b):
    """Wins, draws and losses have the usual closed form, in which draws do not count."""
    told = probability_of_positive_sum(np.array([1.0, -1.0]), np.array([a, b]))
    assert told == pytest.approx(first_is_larger(a, b), abs=1e-8)
    with_draws = probability_of_positive_sum(np.array([0.5, 0.0, -0.5]), np.array([a, 77, b]))
    assert with_draws == pytest.approx(told, abs=1e-8)


def test_unequal_terms_are_the_integral_of_their_densities():
    """P(2 X > Y) of exponential variables is 2 / 3."""
    told = probability_of_positive_sum(np.array([2.0, -1.0]), np.array([1.0, 1.0]))
    assert told == pytest.approx(2 / 3, abs=1e-8)


@pytest.mark.parametrize(
    "counts", [[0, 0, 0, 0, 0], [0, 1, 3, 2, 1], [10, 30, 50, 35, 15], [4, 0, 9, 0, 0]]
)
def test_is_the_share_of_the_posterior_above_one_half(counts):
    chances = np.random.default_rng(3).dirichlet(np.array(counts) + 1.0, size=200_000)
    share = np.mean(chances @ PAIR_SCORES > 0.5)
    assert likelihood_of_superiority(np.array(counts)) == pytest.approx(share, abs=0.005)


@given(some_counts)
def test_the_opponents_is_one_minus_it(counts):
    told = likelihood_of_superiority(counts)
    assert 0.0 <= told <= 1.0
    assert likelihood_of_superiority(counts[::-1]) == pytest.approx(1 - told, abs=1e-8)


@given(some_counts, st.integers(0, 3))
def test_a_better_pair_makes_superiority_likelier(counts, score):
    worse, better = counts.copy(), counts.copy()
    worse[score] += 1
    better[score + 1] += 1
    assert likelihood_of_superiority(better) >= likelihood_of_superiority(worse) - 1e-8


def test_is_as_often_right_as_it_says():
    """Matches have true chances from the prior: among those at x, x are superior."""
    stream = np.random.default_rng(9)
    chances = stream.dirichlet(np.ones(5), size=1500)
    told = np.array([
        likelihood_of_superiority(stream.multinomial(12, row)) for row in chances
    ])
    is_better = chances @ PAIR_SCORES > 0.5
    for low, high in ((0.0, 0.2), (0.2, 0.8), (0.8, 1.0)):
        rows = (told >= low) & (told <= high)
        error = 0.5 / math.sqrt(rows.sum())
        assert is_better[rows].mean() == pytest.approx(told[rows].mean(), abs=3 * error)
