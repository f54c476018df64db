import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_games import chances

from chess_snn.evaluation.ratings.davidson import (
    COLOUR,
    LOG_DRAW,
    gathered_matrix,
    gathered_vector,
    information,
    log_likelihood,
    log_probabilities,
    score,
)
from chess_snn.evaluation.scores import ELO_PER_NAT

PAIRINGS = np.array([[0, 1], [0, 3], [1, 2], [2, 3]])
NUM_PLAYERS = 4


def drawn_problem(seed):
    stream = np.random.default_rng(seed)
    theta = stream.normal(size=NUM_PLAYERS + 2)
    counts = stream.integers(0, 6, size=(len(PAIRINGS), 2, 3)).astype(np.float64)
    return theta, counts


def gradient_of(theta, counts):
    return gathered_vector(score(theta, counts, PAIRINGS), PAIRINGS, NUM_PLAYERS)


def information_of(theta, counts):
    return gathered_matrix(information(theta, counts, PAIRINGS), PAIRINGS, NUM_PLAYERS)


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
    theta, counts = drawn_problem(1)
    total = 0.0
    for (first, second), by_colour in zip(PAIRINGS, counts, strict=True):
        seats = ((first, second), (second, first))
        for (white, black), outcomes in zip(seats, by_colour, strict=True):
            advantage = theta[white] + theta[COLOUR] - theta[black]
            total += outcomes @ log_probabilities(advantage, theta[LOG_DRAW])
    assert log_likelihood(theta, counts, PAIRINGS) == pytest.approx(total)


@pytest.mark.parametrize("seed", range(3))
def test_gradient_and_information_are_those_of_finite_differences(seed):
    theta, counts = drawn_problem(seed)
    width = 1e-5
    for column in range(len(theta)):
        above, below = theta.copy(), theta.copy()
        above[column] += width
        below[column] -= width
        slope = log_likelihood(above, counts, PAIRINGS) - log_likelihood(below, counts, PAIRINGS)
        assert gradient_of(theta, counts)[column] == pytest.approx(slope / (2 * width), abs=1e-6)
        bend = gradient_of(above, counts) - gradient_of(below, counts)
        assert -information_of(theta, counts)[:, column] == pytest.approx(
            bend / (2 * width), abs=1e-6
        )


@given(st.integers(0, 10_000))
def test_second_derivatives_are_negative_definite_apart_from_a_shift(seed):
    theta, counts = drawn_problem(seed)
    matrix = information_of(theta, counts + 1.0)
    assert np.linalg.eigvalsh(matrix).min() >= -1e-9
    # All ratings moved by as much change nothing; with one held, there is nothing flat left.
    shift = np.r_[np.ones(NUM_PLAYERS), 0.0, 0.0]
    assert matrix @ shift == pytest.approx(np.zeros(NUM_PLAYERS + 2), abs=1e-9)
    assert np.linalg.eigvalsh(matrix[1:, 1:]).min() > 1e-3
