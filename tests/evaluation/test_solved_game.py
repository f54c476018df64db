"""The tree search itself solves a small game, from a network that knows nothing of it."""

import numpy as np
import pytest
from subtraction_game import SubtractionGame
from uniform_evaluator import UniformEvaluator

from chess_snn.search import SearchSettings, make_tree_search

HEAPS = np.arange(1, 13, dtype=np.uint64)
SIMULATIONS = 2000


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_every_position_of_a_solved_game_is_played_perfectly(kind):
    """Without ``finds_wins``, which looks for a win at once by the rules."""
    game, count = SubtractionGame(), len(HEAPS)
    batch = game.allocate(count)
    game.reset(batch, np.arange(count), HEAPS[:, None])
    search = make_tree_search(
        game, UniformEvaluator(), SearchSettings(kind=kind, finds_wins=False),
        simulations=SIMULATIONS, num_games=count,
    )
    result = search.run(
        batch, HEAPS, np.zeros(count, np.int32), np.zeros(count, np.float32)
    )
    is_won = HEAPS % 4 > 0
    np.testing.assert_array_equal(result.actions[is_won] + 1, HEAPS[is_won] % 4)
    assert (result.values_stm[is_won] > 0).all()
    assert (result.values_stm[~is_won] < 0).all()
