import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_games import chances

from chess_snn.evaluation.elo import ELO_PER_NAT
from chess_snn.evaluation.ratings.davidson import (
    COLOUR,
    LOG_DRAW,
    derivatives,
    log_likelihood,
    log_probabilities,
)

PAIRINGS = np.array([[0, 1], [0, 3], [1, 2], [2, 3]])
NUM_PLAYERS = 4


def drawn_problem(seed, batch=3):
    stream = np.random.default_rng(seed)
    theta = stream.normal(size=(batch, NUM_PLAYERS + 2))
    counts = stream.integers(0, 6, size=(batch, len(PAIRINGS), 2, 3)).astype(np.float64)
    return theta, counts


@given(st.floats(-900, 900), st.floats(-900, 900), st.floats(-100, 100), st.floats(0.0, 0.95))
def test_chances_are_those_of_the_formula(elo_white, elo_black, colour, draw_rate):
    advantage = (elo_white - elo_black + colour) / ELO_PER_NAT
    with np.errstate(divide="ignore"):
        log_draw = np.log(np.float64(2 * draw_rate / (1 - draw_rate)))
    told = np.exp(log_probabilities(np.float64(advantage), log_draw))
    assert told == pytest.approx(chances(elo_white, elo_black, colour, draw_rate), rel=1e-9)


def test_chances_at_any_distance_are_finite_and_sum_to_one():
    advantage = np.array([-1e4, -800.0, 0.0, 800.0, 1e4])
    for log_draw in (-np.inf, 0.0, 500.0):
        told = np.exp(log_probabilities(advantage, np.float64(log_draw)))
        assert told.sum(axis=-1) == pytest.approx(1.0)


def test_likelihood_is_the_sum_over_games():
    theta, counts = drawn_problem(1, batch=1)
    total = 0.0
    for (first, second), by_colour in zip(PAIRINGS, counts[0], strict=True):
        seats = ((first, second), (second, first))
        for (white, black), outcomes in zip(seats, by_colour, strict=True):
            advantage = theta[0, white] + theta[0, COLOUR] - theta[0, black]
            total += outcomes @ log_probabilities(advantage, theta[0, LOG_DRAW])
    assert log_likelihood(theta, counts, PAIRINGS) == pytest.approx([total])


def test_a_draw_that_cannot_happen_costs_everything_and_its_absence_nothing():
    theta, counts = drawn_problem(2, batch=2)
    theta[:, LOG_DRAW] = -np.inf
    counts[0, :, :, 1] = 0
    likelihood = log_likelihood(theta, counts, PAIRINGS)
    assert np.isfinite(likelihood[0])
    assert likelihood[1] == -np.inf


@pytest.mark.parametrize("seed", range(3))
def test_gradient_and_information_are_those_of_finite_differences(seed):
    theta, counts = drawn_problem(seed)
    gradient, information = derivatives(theta, counts, PAIRINGS)
    width = 1e-5
    for column in range(theta.shape[1]):
        above, below = theta.copy(), theta.copy()
        above[:, column] += width
        below[:, column] -= width
        slope = log_likelihood(above, counts, PAIRINGS) - log_likelihood(below, counts, PAIRINGS)
        assert gradient[:, column] == pytest.approx(slope / (2 * width), abs=1e-6)
        bend = (derivatives(above, counts, PAIRINGS)[0] - derivatives(below, counts, PAIRINGS)[0])
        assert -information[:, column] == pytest.approx(bend / (2 * width), abs=1e-6)


@given(st.integers(0, 10_000))
def test_second_derivatives_are_negative_definite_apart_from_a_shift(seed):
    theta, counts = drawn_problem(seed)
    _, information = derivatives(theta, counts + 1.0, PAIRINGS)
    assert np.linalg.eigvalsh(information).min() >= -1e-9
    # All ratings moved by as much change nothing; with one held, there is nothing flat left.
    shift = np.r_[np.ones(NUM_PLAYERS), 0.0, 0.0]
    assert information @ shift == pytest.approx(np.zeros((3, NUM_PLAYERS + 2)), abs=1e-9)
    assert np.linalg.eigvalsh(information[:, 1:, 1:]).min() > 1e-3
