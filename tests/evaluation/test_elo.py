import math

import pytest

from chess_snn.errors import ConfigError
from chess_snn.evaluation import elo_difference, logistic_score


@pytest.mark.parametrize(("score", "elo"), [(0.5, 0), (10 / 11, 400), (100 / 101, 800)])
def test_ten_to_one_is_400_points(score, elo):
    assert elo_difference(score) == pytest.approx(elo)
    assert elo_difference(1 - score) == pytest.approx(-elo)


def test_a_clean_sweep_has_no_finite_difference():
    assert elo_difference(1.0) == math.inf
    assert elo_difference(0.0) == -math.inf


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
