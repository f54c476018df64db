"""2048: moves, chance and whole games, against slow readings of the rules."""

from itertools import pairwise

import numpy as np
import pytest
import twenty48_oracle as oracle

from benchmarks.env import (
    CHANCE_COUNTER,
    play_planned_games,
    play_random_games,
)
from chess_snn.games import get_game
from chess_snn.games.base import NO_ACTION
from chess_snn.games.starts import random_legal_actions
from chess_snn.games.twenty48 import expectimax
from chess_snn.games.twenty48.expectimax import line_values
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


# How tiles come: the drawn ones against their exact probabilities, with fixed seeds.


NUM_DRAWS = 200_000
UNLIKELY = 3.1
"""Deviate that one choice of seeds in a thousand exceeds with the right distribution."""


def normal_deviate(counts, expected, num_fitted=0):
    """Result of a chi-squared test, as a standard normal number (Wilson & Hilferty 1931)."""
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = counts.size - 1 - num_fitted
    variance = 2 / (9 * freedom)
    return ((statistic / freedom) ** (1 / 3) - 1 + variance) / variance**0.5


def draws(text, action):
    """Event of each draw, and the probability of each event by the rules, at a position."""
    one = GAME.allocate(1)
    GAME.reset(one, np.array([0]), GAME.parse_state(text)[None])
    batch = one.take(np.zeros(NUM_DRAWS, np.int64))
    words = random_words(np.arange(NUM_DRAWS, dtype=np.uint64), np.zeros(NUM_DRAWS, np.uint64))
    actions = np.full(NUM_DRAWS, GAME.parse_action(one.state[0], action), np.int16)
    GAME.step(batch, actions, words)
    GAME.step(one, actions[:1])
    new = batch.state[:, BOARD] ^ one.state[0, BOARD]
    bits = np.log2(new.astype(np.float64)).astype(int)
    assert (new == 1 << bits.astype(np.uint64)).all(), "one new tile, a 2 or a 4"
    events = bits // 4 * 2 + bits % 4
    exact = oracle.events(oracle.from_word(one.state[0, BOARD]))
    listed = one.legal_actions[0, : one.num_legal[0]]
    return events, listed, np.array([exact[event][0] for event in listed.tolist()])


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("2 . . 4/. . . ./. . . ./. . . .", "left"),
        ("2 4 8 16/4 8 16 2/. . . ./64 2 4 8", "up"),
        ("2 4 8 16/4 8 16 2/2 32 8 4/64 2 4 4", "right"),
    ],
)
def test_cells_and_tiles_come_with_their_exact_probabilities(text, action):
    events, listed, probabilities = draws(text, action)
    counts = np.bincount(events, minlength=32)
    assert counts.sum() == counts[listed].sum(), "only empty cells"
    expected = probabilities * NUM_DRAWS
    assert normal_deviate(counts[listed], expected) < UNLIKELY


def test_initial_states_have_two_tiles_of_the_same_distribution():
    states = GAME.initial_states(np.arange(NUM_DRAWS, dtype=np.uint64))
    assert not states[:, NATURE].any()
    exponents = states[:, BOARD, None] >> np.arange(0, 64, 4, dtype=np.uint64) & np.uint64(15)
    assert (np.count_nonzero(exponents, axis=1) == 2).all()
    cells = np.count_nonzero(exponents, axis=0)
    assert normal_deviate(cells, cells.mean()) < UNLIKELY
    num_fours = np.bincount(np.count_nonzero(exponents == 2, axis=1), minlength=3)
    expected = NUM_DRAWS * np.array([0.81, 0.18, 0.01])
    assert normal_deviate(num_fours, expected) < UNLIKELY


def test_an_initial_state_depends_on_its_own_seed_alone():
    seeds = np.random.default_rng(1).integers(0, 2**64, 50, dtype=np.uint64)
    states = GAME.initial_states(seeds)
    np.testing.assert_array_equal(GAME.initial_states(seeds[::-1]), states[::-1])
    np.testing.assert_array_equal(GAME.initial_states(seeds[7:8]), states[7:8])


# Games in one kernel are the games that the protocol plays.


NUM_GAMES = 50


def games_of_the_protocol(choose, num_games=NUM_GAMES):
    """(scores, lengths) of games whose actions ``choose(batch, keys, plies)`` gives."""
    batch, keys = GAME.allocate(num_games), np.arange(num_games, dtype=np.uint64)
    GAME.reset(batch, np.arange(num_games), GAME.initial_states(keys))
    points = np.zeros(num_games)
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


# The planning player and its heuristic against slow readings, and how well it plays.


def slow_heuristic(board):
    """The formula of :mod:`chess_snn.games.twenty48.expectimax`, cell by cell."""
    total = 0.0
    for line in (*board, *zip(*board, strict=True)):
        exponents = [tile.bit_length() - 1 if tile else 0 for tile in line]
        powers = [e**expectimax.DISORDER_POWER for e in exponents]
        steps = [b - a for a, b in pairwise(powers)]
        ascents = sum(s for s in steps if s > 0), sum(-s for s in steps if s < 0)
        pairs = sum(a == b and 0 < a < 32768 for a, b in pairwise(line))
        total += (
            expectimax.BASE
            + expectimax.EMPTY * line.count(0)
            + expectimax.PAIRS * pairs
            - expectimax.DISORDER * min(ascents)
            - expectimax.MASS * sum(e**expectimax.MASS_POWER for e in exponents)
        )
    return total


def boards_of_play(num_games, stride):
    """States uint64[n, 2] met every ``stride`` moves while expectimax:1 plays."""
    batch, keys = GAME.allocate(num_games), np.arange(num_games, dtype=np.uint64)
    GAME.reset(batch, np.arange(num_games), GAME.initial_states(keys))
    met = []
    for ply in range(10_000):
        alive = batch.termination == 0
        if not alive.any():
            return np.concatenate(met)
        if ply % stride == 0:
            met.append(batch.state[alive])
        chance = random_words(keys, np.full(num_games, ply, np.uint64))
        GAME.step(batch, GAME.planned_actions(batch.state, 1), chance)
    raise AssertionError("a game goes on and on")


def test_heuristic_is_the_formula():
    states = boards_of_play(20, 40)
    expected = [slow_heuristic(oracle.from_word(word)) for word in states[:, BOARD]]
    np.testing.assert_allclose(GAME.heuristic_stm(states), expected, rtol=1e-5)


@pytest.mark.parametrize(("depth", "stride"), [(1, 10), (2, 150)])
def test_planned_actions_are_the_best_of_a_slow_expectimax(depth, stride):
    states = boards_of_play(8, stride)
    assert len(states) >= 16
    actions = GAME.planned_actions(states, depth)
    assert actions.dtype == np.int16
    for state, action in zip(states, actions.tolist(), strict=True):
        values = oracle.expectimax(oracle.from_word(state[BOARD]), depth, slow_heuristic)
        assert values[action] == pytest.approx(max(values.values()), rel=1e-6)


def test_depth_3_looks_past_two_events():
    board = [[2, 4, 8, 2], [4, 64, 16, 4], [2, 16, 8, 2], [4, 2, 4, 2]]
    values = oracle.expectimax(board, 3, slow_heuristic)
    state = np.array([[oracle.to_word(board), 0]], np.uint64)
    action = int(GAME.planned_actions(state, 3)[0])
    assert values[action] == pytest.approx(max(values.values()), rel=1e-6)


def test_nothing_is_planned_where_the_player_does_not_move():
    full = GAME.parse_state("/".join(["2 4 2 4", "4 2 4 2"] * 2))
    after = GAME.parse_state("2 . . ./. . . ./. . . ./. . . 2 +")
    assert GAME.planned_actions(np.stack([full, after]), 2).tolist() == [NO_ACTION] * 2


def test_one_move_more_plays_much_better():
    for depth, num_games, least in ((1, 100, 3_500), (2, 40, 30_000)):
        scores, _ = games_of_the_protocol(
            lambda batch, _keys, _plies, depth=depth: GAME.planned_actions(batch.state, depth),
            num_games,
        )
        assert scores.mean() > least
