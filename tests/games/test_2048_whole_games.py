"""Games in one kernel are the games that the protocol plays."""

import numpy as np

from chess_snn.games import get_game
from chess_snn.games.sampling import random_legal_actions
from chess_snn.games.twenty48.expectimax import line_values
from chess_snn.games.twenty48.layout import slide_table
from chess_snn.games.twenty48.whole_games import (
    CHANCE_COUNTER,
    play_planned_games,
    play_random_games,
)
from chess_snn.rng import random_words

GAME = get_game("2048")
NUM_GAMES = 50


def games_of_the_protocol(choose):
    """(scores, lengths) of games whose actions ``choose(batch, keys, plies)`` gives."""
    batch, keys = GAME.allocate(NUM_GAMES), np.arange(NUM_GAMES, dtype=np.uint64)
    GAME.reset(batch, np.arange(NUM_GAMES), GAME.initial_states(keys))
    points = np.zeros(NUM_GAMES)
    while (alive := batch.termination == 0).any():
        chance = random_words(keys, CHANCE_COUNTER + batch.ply.astype(np.uint64))
        GAME.step(batch, choose(batch, keys, batch.ply), chance)
        points += np.where(alive, batch.reward, 0)
    return points * GAME.spec.score_unit, batch.ply


def arrays():
    return np.arange(NUM_GAMES, dtype=np.uint64), *np.empty((2, NUM_GAMES), np.int64)


def test_random_games_are_those_of_the_protocol():
    keys, scores, lengths = arrays()
    play_random_games(keys, scores, lengths, slide_table())
    expected_scores, expected_lengths = games_of_the_protocol(random_legal_actions)
    np.testing.assert_array_equal(scores, expected_scores)
    np.testing.assert_array_equal(lengths, expected_lengths)


def test_planned_games_are_those_of_the_protocol():
    keys, scores, lengths = arrays()
    play_planned_games(keys, 1, scores, lengths, slide_table(), line_values())
    expected_scores, expected_lengths = games_of_the_protocol(
        lambda batch, _keys, _plies: GAME.planned_actions(batch.state, 1)
    )
    np.testing.assert_array_equal(scores, expected_scores)
    np.testing.assert_array_equal(lengths, expected_lengths)


def test_random_play_scores_what_is_known_of_it():
    """1,108 ± 10 over another implementation's games (plain C)."""
    num_games = 20_000
    keys = np.arange(num_games, dtype=np.uint64)
    scores, lengths = np.empty((2, num_games), np.int64)
    play_random_games(keys, scores, lengths, slide_table())
    assert 1_080 < scores.mean() < 1_120
    assert 117 < lengths.mean() < 121
