"""Positions to begin at: some plies into a random game, or into one that only one side can play.

Uniformly random moves are here too, for every game.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from chess_snn.errors import ConfigError
from chess_snn.games.base import NO_ACTION, ONGOING, Game, GameBatch
from chess_snn.games.minimax import best_actions
from chess_snn.jit import kernel
from chess_snn.rng import random_word, random_words
from chess_snn.types import Int16Array, Int32Array, UInt64Array

_MAX_ATTEMPTS: Final = 100
# Counters beyond any ply, so that one key serves all purposes.
_RETRY_COUNTER: Final = np.uint64(1) << np.uint64(32)
_CHANCE_COUNTER: Final = np.uint64(1) << np.uint64(33)
_SIDE_SHIFT: Final = np.uint64(63)
"""The highest bit of a game's key says which side of a mismatch is the strong one."""


Chooser = Callable[[Game, GameBatch, UInt64Array, Int32Array], Int16Array]
"""Mover until a game starts: gives an action for each row of a batch, none of which has ended,
from its key and ply."""


def random_starts(game: Game, keys: UInt64Array, num_plies: Int32Array) -> UInt64Array:
    """uint64[n, W]: positions ``num_plies`` int32[n] uniformly random plies into the game.

    None of them has ended: a game that ends on the way is played again with a key derived from its
    own. Row i depends on ``keys[i]`` (uint64[n]) and ``num_plies[i]`` alone. The states keep
    castling rights, clocks and the like; the history of earlier positions is not returned, and
    ``Game.reset`` starts without any.

    Raises:
        ConfigError: a game ended early in every one of 100 attempts.
    """
    return _starts(game, keys, num_plies, _random_actions)


def greedy_actions(
    game: Game, batch: GameBatch, keys: UInt64Array, plies: Int32Array
) -> Int16Array:
    """Whatever the heuristic likes best one ply on, at random among equals."""
    return random_legal_actions(best_actions(game, batch, depth=1), keys, plies)


def mismatched_starts(
    game: Game, keys: UInt64Array, num_plies: Int32Array, strong: Chooser = greedy_actions
) -> UInt64Array:
    """Like :func:`random_starts`, but one side, either one, is played by ``strong``.

    The other plays at random, so that the strong side soon has a lead that it would have to turn
    into a win. For games of two players without chance.
    """
    return _starts(game, keys, num_plies, partial(_mismatched_actions, strong))


def _starts(
    game: Game, keys: UInt64Array, num_plies: Int32Array, choose: Chooser
) -> UInt64Array:
    keys = keys.copy()
    starts = np.empty((len(keys), game.spec.state_words), dtype=np.uint64)
    pending = np.arange(len(keys))
    for _ in range(_MAX_ATTEMPTS):
        batch = _play(game, keys[pending], num_plies[pending], choose)
        alive = batch.termination == ONGOING
        starts[pending[alive]] = batch.state[alive]
        pending = pending[~alive]
        if not len(pending):
            return starts
        keys[pending] = _draw(keys[pending], _RETRY_COUNTER)
    raise ConfigError(
        f"{_MAX_ATTEMPTS} games in a row ended within {num_plies[pending].min()} plies; ask for "
        "fewer plies"
    )


def _play(
    game: Game, keys: UInt64Array, num_plies: Int32Array, choose: Chooser
) -> GameBatch:
    """Games after ``num_plies`` plies each, or ended before."""
    batch = game.allocate(len(keys))
    game.reset(batch, np.arange(len(keys)), game.initial_states(keys))
    for ply in range(int(num_plies.max(initial=0))):
        rows = np.flatnonzero((num_plies > ply) & (batch.termination == ONGOING))
        if not len(rows):
            break
        plies = np.full(len(rows), ply, dtype=np.int32)
        actions = np.full(len(keys), NO_ACTION, dtype=np.int16)
        actions[rows] = choose(game, batch.take(rows), keys[rows], plies)
        chance = None
        if game.spec.is_stochastic:
            chance = _draw(keys, _CHANCE_COUNTER + np.uint64(ply))
        game.step(batch, actions, chance)
    return batch


def _random_actions(
    game: Game, batch: GameBatch, keys: UInt64Array, plies: Int32Array
) -> Int16Array:
    return random_legal_actions(batch, keys, plies)


def _mismatched_actions(
    strong: Chooser, game: Game, batch: GameBatch, keys: UInt64Array, plies: Int32Array
) -> Int16Array:
    actions = random_legal_actions(batch, keys, plies)
    rows = np.flatnonzero(game.side_to_move(batch.state) == keys >> _SIDE_SHIFT)
    if len(rows):
        actions[rows] = strong(game, batch.take(rows), keys[rows], plies[rows])
    return actions


def _draw(keys: UInt64Array, counter: np.uint64) -> UInt64Array:
    """uint64[n]: draw ``counter`` of each key's stream."""
    return random_words(keys, np.full_like(keys, counter))


def random_legal_actions(batch: GameBatch, keys: UInt64Array, plies: Int32Array) -> Int16Array:
    """int16[G]: a uniformly drawn legal action of each game, NO_ACTION where the game has ended.

    The draw of a game is a function of its key (``keys`` uint64[G]), its ply (``plies`` int32[G])
    and its legal list alone.
    """
    actions = np.empty(len(batch), dtype=np.int16)
    _draw_actions(batch.legal_actions, batch.num_legal, keys, plies, actions)
    return actions


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
