"""Verdicts over seeds: coverage of their intervals, and error rates of repeated looks."""

import math

import numpy as np
import pytest

from chess_snn.experiment.verdict import ERROR_RATE, over_seeds, student_quantile

NUM_WORLDS = 4000
GAMES = 200
SPREAD_ELO = 100.0
"""Standard deviation between seeds; two seeds of the preset cpu were 263 Elo apart."""
MOST_SEEDS = 8


def score_of(elo):
    return 1 / (1 + 10 ** (-elo / 400))


def differences(mean_elo, spread=SPREAD_ELO, num_seeds=MOST_SEEDS, seed=0):
    """float64[worlds, seeds], scores above one half of matches; and their true mean."""
    rng = np.random.default_rng(seed)
    true = score_of(mean_elo + spread * rng.standard_normal((NUM_WORLDS, num_seeds)))
    many = score_of(mean_elo + spread * rng.standard_normal(200_000)).mean()
    return rng.binomial(GAMES, true) / GAMES - 0.5, many - 0.5


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99, 1 - 0.05 / 7])
def test_the_quantile_is_students(confidence):
    assert student_quantile(confidence, 1) == pytest.approx(math.tan(math.pi * confidence / 2))
    assert student_quantile(confidence, 2) == pytest.approx(
        confidence * math.sqrt(2 / (1 - confidence**2)), rel=1e-6
    )
    stats = pytest.importorskip("scipy.stats")
    for degrees in (3, 4, 7, 30, 200):
        expected = stats.t.ppf(0.5 + confidence / 2, degrees)
        assert student_quantile(confidence, degrees) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("mean_elo", [0.0, 80.0])
@pytest.mark.parametrize("num_seeds", [2, 3, 4, 8])
def test_the_interval_holds_the_truth_in_95_of_100_worlds(num_seeds, mean_elo):
    found, truth = differences(mean_elo, num_seeds=num_seeds)
    verdicts = [over_seeds(world, [0.03] * num_seeds) for world in found]
    coverage = np.mean([verdict.low <= truth <= verdict.high for verdict in verdicts])
    assert 0.94 <= coverage <= 0.97


def looked_at_again_and_again(worlds):
    """The words of each world's first verdict that is decided, or of its last one."""
    for world in worlds:
        for number in range(1, MOST_SEEDS + 1):
            verdict = over_seeds(world[:number], [0.03] * number, looks=MOST_SEEDS - 1)
            if verdict.words != "not decided":
                break
        yield verdict.words


def test_until_decided_and_race_err_in_5_of_100_worlds_at_most():
    words = list(looked_at_again_and_again(differences(0.0)[0]))
    assert np.mean([each != "not decided" for each in words]) <= ERROR_RATE
    assert np.mean([each == "worse" for each in words]) <= ERROR_RATE


def test_a_large_difference_is_found_with_fewer_seeds():
    words = list(looked_at_again_and_again(differences(250.0)[0]))
    assert np.mean([each == "better" for each in words]) > 0.9


def test_one_seed_decides_nothing():
    verdict = over_seeds([0.4], [0.01])
    assert (verdict.words, verdict.low, verdict.more_seeds) == ("not decided", -math.inf, None)


def test_the_seeds_that_are_missing_would_decide_it():
    verdict = over_seeds([0.1, 0.0, 0.12], [0.03] * 3)
    assert verdict.words == "not decided"
    more = [0.1, 0.0, 0.12] * 8
    number = verdict.num_seeds + verdict.more_seeds
    spread = np.std(more[:3], ddof=1)
    assert student_quantile(0.95, number - 1) * spread / math.sqrt(number) < verdict.mean
    assert student_quantile(0.95, number - 2) * spread / math.sqrt(number - 1) >= verdict.mean
    assert str(verdict.more_seeds) in str(verdict)


def test_equal_differences_keep_the_error_of_their_matches():
    verdict = over_seeds([0.5, 0.5], [0.02, 0.02])
    assert verdict.low < 0.5 < verdict.high
    assert verdict.words == "better"
