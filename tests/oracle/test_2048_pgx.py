"""Moves of 2048 against pgx's."""

import numpy as np
import pytest

from chess_snn.games import get_game
from chess_snn.games.twenty48.layout import BOARD

pytestmark = pytest.mark.oracle

GAME = get_game("2048")
NUM_POSITIONS = 5_000
LARGEST = 14
"""pgx merges two 32768, for which a board of ours has no cell."""


def random_exponents():
    """int32[n, 16], half of the boards with few kinds of tiles, so that much merges."""
    rng = np.random.default_rng(5)
    kinds = rng.integers(2, LARGEST + 2, NUM_POSITIONS)
    return rng.integers(0, kinds[:, None], (NUM_POSITIONS, 16)).astype(np.int32)


def test_random_positions_move_as_in_pgx():
    reason = "pgx is not installed: the moves were NOT compared with it"
    theirs = pytest.importorskip("pgx.play2048", reason=reason)
    jax = pytest.importorskip("jax", reason=reason)
    exponents = random_exponents()
    states = np.zeros((NUM_POSITIONS, 2), np.uint64)
    shifts = np.arange(0, 64, 4, dtype=np.uint64)
    states[:, BOARD] = (exponents.astype(np.uint64) << shifts).sum(axis=1, dtype=np.uint64)
    batch = GAME.allocate(NUM_POSITIONS)
    GAME.reset(batch, np.arange(NUM_POSITIONS), states)
    legal = np.asarray(jax.vmap(theirs._legal_action_mask)(exponents.reshape(-1, 4, 4)))
    env = theirs.Play2048()
    start = env.init(jax.random.PRNGKey(0))
    step = jax.jit(jax.vmap(lambda board, action: env._step(
        start.replace(_board=board), action, jax.random.PRNGKey(0)
    ), in_axes=(0, None)))
    for action in range(4):
        chosen = np.full(NUM_POSITIONS, action, np.int16)
        is_legal = batch.lists(chosen)
        np.testing.assert_array_equal(is_legal, legal[:, action])
        after = batch.take(np.flatnonzero(is_legal))
        GAME.step(after, chosen[is_legal])
        cells = (after.state[:, BOARD, None] >> shifts & np.uint64(15)).astype(int)
        their_state = step(exponents, action)
        their_cells = np.asarray(their_state._board).reshape(-1, 16)[is_legal]
        is_new = (cells == 0) & (their_cells > 0)
        assert (is_new.sum(axis=1) == 1).all(), "theirs has one tile more, in an empty cell"
        np.testing.assert_array_equal(np.where(is_new, 0, their_cells), cells)
        points = np.asarray(their_state.rewards)[is_legal, 0]
        np.testing.assert_array_equal(after.reward * GAME.spec.score_unit, points)
