"""Uniform random play."""

import numpy as np

from chess_snn.games import get_game
from chess_snn.games.base import NO_ACTION
from chess_snn.games.sampling import random_legal_actions

GAME = get_game("chess")


def keys(count, seed=0):
    return np.arange(seed, seed + count, dtype=np.uint64)


def plies(count, ply):
    return np.full(count, ply, dtype=np.int32)


def test_every_legal_action_is_equally_likely():
    num_games = 20_000
    batch = GAME.allocate(1).take(np.zeros(num_games, dtype=np.int64))
    actions = random_legal_actions(batch, keys(num_games), plies(num_games, 0))
    legal = batch.legal_actions[0, :20]
    counts = np.array([np.count_nonzero(actions == action) for action in legal])
    assert counts.sum() == num_games
    expected = num_games / 20
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    assert chi_squared < 43.8  # 99.9 % quantile at 19 degrees of freedom


def test_draw_depends_on_key_and_ply_alone():
    batch = GAME.allocate(50)
    first = random_legal_actions(batch, keys(50), plies(50, 4))
    order = np.random.default_rng(1).permutation(50)
    again = random_legal_actions(batch.take(order), keys(50)[order], plies(50, 4))
    np.testing.assert_array_equal(again, first[order])
    assert (random_legal_actions(batch, keys(50), plies(50, 5)) != first).any()


def test_ended_games_get_no_action():
    batch = GAME.allocate(2)
    mated = GAME.parse_state("rnb1kbnr/pppp1ppp/8/4p3/5PPq/8/PPPPP2P/RNBQKBNR w KQkq - 1 3")
    GAME.reset(batch, np.array([1]), mated[None])
    actions = random_legal_actions(batch, keys(2), plies(2, 0))
    assert actions[0] >= 0
    assert actions[1] == NO_ACTION
