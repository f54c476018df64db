import numpy as np
import pytest
from subtraction_game import SubtractionGame

from chess_snn.evaluation import PAIR_SCORES, MatchResult, pair_counts


def test_openings_are_counted_by_their_mean_score():
    scores = [(0, 0), (0.5, 0), (0, 0.5), (1, 0), (0.5, 0.5), (0, 1), (1, 0.5), (1, 1), (1, 1)]
    num_games = 2 * len(scores)
    result = MatchResult(
        spec=SubtractionGame().spec, player_a="a", player_b="b",
        opening_keys=tuple(map(str, range(len(scores)))),
        opening_positions=tuple(map(str, range(len(scores)))),
        opening_index=np.repeat(np.arange(len(scores), dtype=np.int32), 2),
        a_is_white=np.tile([True, False], len(scores)),
        scores_a=np.array(scores, np.float32).ravel(),
        terminations=np.ones(num_games, np.uint8), plies=np.ones(num_games, np.int32),
        actions=np.zeros(num_games, np.int16),
    )
    counts = pair_counts(result)
    assert counts.tolist() == [1, 2, 3, 1, 2]
    assert counts @ PAIR_SCORES / counts.sum() == pytest.approx(result.score)
