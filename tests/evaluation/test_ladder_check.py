"""The check of a ladder: its distribution is exact, it seldom cries wolf, and it sees changes."""

import itertools
from collections import Counter

import numpy as np
import pytest
from simulated_ladder import pair_results, simulated_results

from chess_snn.errors import RatingError
from chess_snn.evaluation.ladder import check_results
from chess_snn.evaluation.ladder.check import points_distribution

ELOS = {"random": 0, "b": 150, "c": 280, "d": 420, "e": 600, "f": 700}


@pytest.mark.parametrize("pairs", [(1, 2, 0, 3, 1), (0, 0, 4, 0, 0), (3, 0, 0, 0, 3)])
@pytest.mark.parametrize("num_drawn", [1, 2, 4])
def test_every_choice_is_equally_likely(pairs, num_drawn):
    points = [kind for kind, count in enumerate(pairs) for _ in range(count)]
    choices = Counter(map(sum, itertools.combinations(points, num_drawn)))
    expected = [choices[total] / choices.total() for total in range(4 * num_drawn + 1)]
    np.testing.assert_allclose(points_distribution(np.array(pairs), num_drawn), expected)


def test_what_is_like_the_ladder_seldom_fails():
    stream = np.random.default_rng(1)
    failed = 0
    for _ in range(300):
        ladder, played = simulated_results(ELOS, 40, stream), simulated_results(ELOS, 4, stream)
        failed += not all(row.is_within for row in check_results(ladder, played))
    assert failed <= 26, "5 % are 15, and three standard deviations more 26"


def test_a_player_that_has_changed_is_seen():
    stream = np.random.default_rng(2)
    ladder = simulated_results(ELOS, 80, stream)
    played = simulated_results(ELOS | {"d": 80}, 12, stream)
    rows = {(row.player, row.opponent): row for row in check_results(ladder, played)}
    assert not rows["d", None].is_within
    assert rows["d", None].score < rows["d", None].low
    assert rows["random", None].is_within


def test_players_first_then_pairings_each_with_its_scores():
    ladder = [pair_results("a", 0, "b", 0, 50, np.random.default_rng(3))]
    (a, b, both) = check_results(ladder, ladder)
    assert (a.player, a.opponent, b.player, both.opponent) == ("a", None, "b", "b")
    assert a.score == pytest.approx(a.ladder_score)
    assert a.score == pytest.approx(1 - b.score)
    assert a.low < a.score < a.high
    assert b.low == pytest.approx(1 - a.high)
    assert (both.score, both.num_pairs) == (a.score, 50)


def test_all_pairs_alike_leave_no_room():
    won = pair_results("a", 9000, "b", 0, 30, np.random.default_rng(0))
    (row, *_) = check_results([won], [won])
    assert (row.low, row.high, row.score) == (1.0, 1.0, 1.0)
    assert row.is_within


def test_what_is_not_on_the_ladder_cannot_be_checked():
    stream = np.random.default_rng(0)
    ladder = [pair_results("a", 0, "b", 0, 5, stream)]
    with pytest.raises(RatingError, match="c against a"):
        check_results(ladder, [pair_results("c", 0, "a", 0, 5, stream)])
    with pytest.raises(RatingError, match="a against b|b against a"):
        check_results(ladder, [pair_results("a", 0, "b", 0, 0, stream)])
