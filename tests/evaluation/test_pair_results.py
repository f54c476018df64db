"""A pairing of the ladder keeps of its games all that ratings need."""

import json

import numpy as np
import pytest
from made_games import made_match
from simulated_ladder import play_pairs

from chess_snn.evaluation.ladder.ladder import PairResults
from chess_snn.evaluation.ratings.crosstable import Crosstable, match_games
from chess_snn.evaluation.scores import pair_counts


def match_of(scores_white, scores_black):
    """A match of a against b; its scores by opening, with white and with black."""
    return made_match(np.stack([scores_white, scores_black], axis=1), plies=3)


@pytest.fixture
def random_match():
    stream = np.random.default_rng(5)
    return match_of(*stream.choice([0.0, 0.5, 1.0], size=(2, 200), p=[0.2, 0.3, 0.5]))


def test_by_outcome_with_each_colour():
    counts = PairResults.of_match(match_of([1.0, 1.0, 0.0, 0.5], [1.0, 0.0, 0.0, 0.0])).counts
    assert counts.tolist() == [[1, 0, 1], [0, 0, 1], [0, 0, 1]]


def test_pairs_are_those_of_the_match(random_match):
    results = PairResults.of_match(random_match)
    assert results.pentanomial.tolist() == pair_counts(random_match).tolist()
    assert results.score == pytest.approx(random_match.score)
    assert (results.num_pairs, results.plies) == (200, 1200)


def test_the_same_crosstable_as_from_the_games_themselves(random_match):
    expected = Crosstable.from_games(match_games(random_match))
    found = Crosstable.from_games(PairResults.of_match(random_match).games())
    assert found.players == expected.players
    for name in ("pairings", "pairing_of", "results", "num_openings"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_an_opening_with_a_void_game_is_left_out():
    results = PairResults.of_match(match_of([1.0, np.nan, 0.0], [0.5, 1.0, 0.0]))
    assert results.num_pairs == 2
    assert results.pentanomial.tolist() == [1, 0, 0, 1, 0]


def test_json_and_back():
    results = PairResults("a", "b", play_pairs(100, 0, 50, np.random.default_rng(0)), 4, 900)
    body = json.loads(json.dumps(results.to_json()))
    again = PairResults.from_json(body)
    assert again.counts.tolist() == results.counts.tolist()
    assert (again.player_a, again.truncated, again.plies) == ("a", 4, 900)
    assert sum(body["wdl_a_white"]) == sum(body["wdl_a_black"]) == 50


@pytest.mark.parametrize("pairs", [[[1, 0], [0, 1]], [[-1, 0, 0], [0, 0, 0], [0, 0, 0]], "x"])
def test_damage_is_found(pairs):
    body = {"player_a": "a", "player_b": "b", "pairs": pairs, "truncated": 0, "plies": 0}
    with pytest.raises(ValueError, match=r"pairs|invalid"):
        PairResults.from_json(body)
