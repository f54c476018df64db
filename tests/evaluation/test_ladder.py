import numpy as np
import pytest

from chess_snn.errors import ConfigError
from chess_snn.evaluation import (
    GreedyPlayer,
    RandomPlayer,
    evaluate_against,
    make_player,
    mean_score,
    play_match,
    random_openings,
)


def test_one_match_an_opponent_in_order(chess_game):
    openings = random_openings(chess_game, 6, 4, seed=0)
    opponents = [make_player(chess_game, name) for name in ("random", "minimax:1")]
    calls = []
    results = evaluate_against(
        chess_game, GreedyPlayer(chess_game), opponents, openings, seed=5, max_plies=80,
        on_progress=lambda *call: calls.append(call),
    )
    assert [result.player_b for result in results] == ["random", "minimax:1"]
    assert {result.player_a for result in results} == {"greedy"}
    assert calls == sorted(calls)
    assert {total for _, total in calls} == {24}
    alone = play_match(
        chess_game, GreedyPlayer(chess_game), opponents[1], openings, seed=5, max_plies=80
    )
    np.testing.assert_array_equal(results[1].scores_a, alone.scores_a)
    np.testing.assert_array_equal(results[1].plies, alone.plies)
    assert mean_score(results) == pytest.approx((results[0].score + results[1].score) / 2)


def test_no_opponent_has_no_mean(chess_game):
    openings = random_openings(chess_game, 1, 0, seed=0)
    results = evaluate_against(chess_game, RandomPlayer(), [], openings, seed=0)
    assert results == []
    with pytest.raises(ConfigError, match="no match was played"):
        mean_score(results)
