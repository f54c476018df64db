"""The planning player and its heuristic against slow readings, and how well it plays."""

from itertools import pairwise

import numpy as np
import pytest
import twenty48_oracle as oracle

from chess_snn.games import get_game
from chess_snn.games.base import NO_ACTION
from chess_snn.games.twenty48 import expectimax
from chess_snn.games.twenty48.layout import BOARD
from chess_snn.rng import random_words

GAME = get_game("2048")


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


def test_heuristic_is_the_same_in_every_view():
    states = boards_of_play(20, 40)
    expected = GAME.heuristic_stm(states)
    for view in range(GAME.spec.num_symmetries):
        views = np.full(len(states), view, np.uint8)
        viewed, _ = GAME.transform(states, np.empty((len(states), 0), np.int16), views)
        np.testing.assert_allclose(GAME.heuristic_stm(viewed), expected, rtol=1e-5)


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


def mean_score(depth, num_games):
    batch, keys = GAME.allocate(num_games), np.arange(num_games, dtype=np.uint64)
    GAME.reset(batch, np.arange(num_games), GAME.initial_states(keys))
    score, ply = np.zeros(num_games), 0
    while (alive := batch.termination == 0).any():
        chance = random_words(keys, np.full(num_games, ply, np.uint64))
        GAME.step(batch, GAME.planned_actions(batch.state, depth), chance)
        score += np.where(alive, batch.reward, 0)
        ply += 1
    return GAME.spec.score_unit * score.mean()


def test_one_move_more_plays_much_better():
    assert mean_score(1, 100) > 3_500
    assert mean_score(2, 40) > 30_000
