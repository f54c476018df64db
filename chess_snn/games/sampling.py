"""Uniform random play of any game: start positions, random players, benchmarks."""

from typing import Final

import numpy as np

from chess_snn.errors import ConfigError
from chess_snn.games.base import ONGOING, Game, GameBatch
from chess_snn.jit import kernel
from chess_snn.rng import random_word
from chess_snn.types import Int16Array, Int32Array, UInt64Array

NO_ACTION: Final = -1
"""In place of an action: leave that game alone."""

_MAX_ATTEMPTS: Final = 100
# Counters beyond any ply, so that one key serves three purposes.
_RETRY_COUNTER: Final = np.uint64(1) << np.uint64(32)
_CHANCE_COUNTER: Final = np.uint64(1) << np.uint64(33)


def random_legal_actions(batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
    """int16[G]: a uniformly drawn legal action of each game, -1 where the game has ended.

    The draw of a game is a function of its key (``keys`` uint64[G]), its ply (``plies`` int32[G])
    and its legal list alone.
    """
    actions = np.empty(len(batch), dtype=np.int16)
    _draw_actions(batch.legal_actions, batch.num_legal, keys, plies, actions)
    return actions


def random_starts(game: Game, keys: UInt64Array, num_plies: Int32Array) -> UInt64Array:
    """uint64[n, W]: positions ``num_plies`` int32[n] uniformly random plies into the game.

    None of them has ended: a game that ends on the way is played again with a key derived from its
    own. Row i depends on ``keys[i]`` (uint64[n]) and ``num_plies[i]`` alone. The states keep
    castling rights, clocks and the like; the history of earlier positions is not returned, and
    ``Game.reset`` starts without any.

    Raises:
        ConfigError: a game ended early in every one of 100 attempts.
    """
    keys = keys.copy()
    starts = np.empty((len(keys), game.spec.state_words), dtype=np.uint64)
    pending = np.arange(len(keys))
    for _ in range(_MAX_ATTEMPTS):
        batch = _play(game, keys[pending], num_plies[pending])
        alive = batch.termination == ONGOING
        starts[pending[alive]] = batch.state[alive]
        pending = pending[~alive]
        if not len(pending):
            return starts
        keys[pending] = _words(keys[pending], _RETRY_COUNTER)
    raise ConfigError(
        f"{_MAX_ATTEMPTS} random games in a row ended within {num_plies[pending].min()} plies; "
        "ask for fewer random plies"
    )


def _play(game: Game, keys: UInt64Array, num_plies: Int32Array) -> GameBatch:
    """Games after ``num_plies`` random plies each, or ended before."""
    batch = game.allocate(len(keys))
    game.reset(batch, np.arange(len(keys)), game.initial_states(keys))
    for ply in range(int(num_plies.max(initial=0))):
        actions = random_legal_actions(batch, keys, np.full(len(keys), ply, dtype=np.int32))
        actions[num_plies <= ply] = NO_ACTION
        if (actions == NO_ACTION).all():
            break
        chance = None
        if game.spec.is_stochastic:
            chance = _words(keys, _CHANCE_COUNTER + np.uint64(ply))
        game.step(batch, actions, chance)
    return batch


@kernel
def _draw_actions(
    legal_actions: Int16Array, num_legal: Int32Array, keys: UInt64Array, plies: Int32Array,
    actions: Int16Array,
) -> None:
    for g in range(len(keys)):
        if num_legal[g] == 0:
            actions[g] = NO_ACTION
        else:
            word = random_word(keys[g], np.uint64(plies[g]))
            actions[g] = legal_actions[g, word % np.uint64(num_legal[g])]


@kernel
def _words(keys: UInt64Array, counter: np.uint64) -> UInt64Array:
    """uint64[n]: draw ``counter`` of each key's stream."""
    words = np.empty_like(keys)
    for i in range(len(keys)):
        words[i] = random_word(keys[i], counter)
    return words
