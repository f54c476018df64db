"""A pairing of the ladder keeps of its games all that ratings need."""

import numpy as np
import pytest
from made_games import made_match

from benchmarks.ladder import pairing_json
from chess_snn.evaluation.ladder.ladder import PairResults
from chess_snn.evaluation.ratings.crosstable import Crosstable, match_games


def match_of(scores_white, scores_black):
    """A match of a against b; its scores by opening, with white and with black."""
    return made_match(np.stack([scores_white, scores_black], axis=1), plies=3)


@pytest.fixture
def random_match():
    stream = np.random.default_rng(5)
    return match_of(*stream.choice([0.0, 0.5, 1.0], size=(2, 200), p=[0.2, 0.3, 0.5]))


def test_the_same_crosstable_as_from_the_games_themselves(random_match):
    expected = Crosstable.from_games(match_games(random_match))
    found = Crosstable.from_games(PairResults.from_json(pairing_json(random_match)).games())
    assert found.players == expected.players
    for name in ("pairings", "pairing_of", "results", "num_openings"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_an_opening_with_a_void_game_is_left_out():
    body = pairing_json(match_of([1.0, np.nan, 0.0], [0.5, 1.0, 0.0]))
    assert body["pairs"] == [[0, 1, 0], [0, 0, 0], [0, 0, 1]]
