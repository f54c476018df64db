"""Slides, legality and scores against slow readings of the rules."""

import numpy as np
import pytest
import twenty48_oracle as oracle

from chess_snn.games import get_game
from chess_snn.games.sampling import random_legal_actions
from chess_snn.games.twenty48.layout import BOARD, NATURE, slide_table
from chess_snn.rng import random_words

GAME = get_game("2048")
NUM_RANDOM = 20_000


def after_moves(words, action):
    """(boards, points, were they legal) after ``action`` on boards uint64[n]."""
    states = np.zeros((len(words), 2), np.uint64)
    states[:, BOARD] = words
    batch = GAME.allocate(len(words))
    GAME.reset(batch, np.arange(len(words)), states)
    is_legal = batch.lists(np.full(len(words), action, np.int16))
    GAME.step(batch, np.where(is_legal, action, -1).astype(np.int16))
    assert (batch.state[is_legal, NATURE] == 1).all()
    return batch.state[:, BOARD], (batch.reward * 1024).astype(np.int64), is_legal


def random_boards(num_boards):
    """Boards of random tiles, half of them with few kinds, so that much merges."""
    rng = np.random.default_rng(4)
    exponents = rng.integers(0, rng.integers(2, 17, num_boards)[:, None], (num_boards, 16))
    return (exponents.astype(np.uint64) << np.arange(0, 64, 4, dtype=np.uint64)).sum(
        axis=1, dtype=np.uint64
    )


def test_all_rows_slide_both_ways_as_read_slowly():
    for row, entry in enumerate(slide_table().tolist()):
        tiles = oracle.from_word(row)[0]
        left, points = oracle.slide_row_left(tiles)
        right, right_points = oracle.slide_row_left(tiles[::-1])
        blank = [[0] * 4] * 3
        expected = (
            oracle.to_word([left, *blank]), oracle.to_word([right[::-1], *blank]), points
        )
        assert right_points == points
        assert (entry & 0xFFFF, entry >> 16 & 0xFFFF, entry >> 32) == expected, tiles


@pytest.mark.parametrize("action", range(4))
def test_random_positions_move_as_read_slowly(action):
    words = random_boards(NUM_RANDOM)
    boards, points, is_legal = after_moves(words, action)
    for i, word in enumerate(words):
        board = oracle.from_word(word)
        expected, expected_points = oracle.move(board, oracle.ACTIONS[action])
        assert is_legal[i] == (expected != board)
        assert int(boards[i]) == oracle.to_word(expected)
        assert points[i] == (expected_points if is_legal[i] else 0)


def test_games_end_where_no_move_is_left():
    words = random_boards(NUM_RANDOM)
    states = np.zeros((NUM_RANDOM, 2), np.uint64)
    states[:, BOARD] = words
    batch = GAME.allocate(NUM_RANDOM)
    GAME.reset(batch, np.arange(NUM_RANDOM), states)
    legal = [oracle.legal_actions(oracle.from_word(word)) for word in words]
    assert batch.termination.tolist() == [int(not actions) for actions in legal]
    assert batch.termination.any()
    for row, actions in enumerate(legal):
        assert batch.legal_actions[row, : batch.num_legal[row]].tolist() == actions


def test_two_of_the_largest_tile_do_not_merge():
    state = GAME.parse_state("32768 32768 . 2/. . . ./. . . ./. . . .")[None]
    batch = GAME.allocate(1)
    GAME.reset(batch, np.array([0]), state)
    GAME.step(batch, np.array([0], np.int16))
    assert GAME.format_state(batch.state[0]).startswith("32768 32768 2 ./")
    assert batch.reward[0] == 0


def test_events_lead_to_the_boards_that_the_slow_reading_lists():
    batch = GAME.allocate(64)
    keys = np.arange(64, dtype=np.uint64)
    GAME.reset(batch, np.arange(64), GAME.initial_states(keys))
    for ply in range(60):
        plies = np.full(64, ply, np.int32)
        actions = random_legal_actions(batch, keys, plies)
        if ply == 59:
            GAME.step(batch, actions)
        else:
            GAME.step(batch, actions, random_words(keys, plies.astype(np.uint64)))
    alive = np.flatnonzero(batch.state[:, NATURE])
    assert len(alive) > 20
    probabilities = GAME.event_probabilities(batch.state)
    for row in alive:
        expected = oracle.events(oracle.from_word(batch.state[row, BOARD]))
        events = batch.legal_actions[row, : batch.num_legal[row]].tolist()
        assert events == sorted(expected)
        for column, event in enumerate(events):
            probability, child = expected[event]
            assert probabilities[row, column] == pytest.approx(probability)
            one = batch.take(np.array([row]))
            GAME.step(one, np.array([event], np.int16))
            assert one.state[0].tolist() == [oracle.to_word(child), 0]
