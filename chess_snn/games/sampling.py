"""Uniform random play of any game: random players, benchmarks."""

import numpy as np

from chess_snn.games.base import NO_ACTION, GameBatch
from chess_snn.jit import kernel
from chess_snn.rng import random_word
from chess_snn.types import Int16Array, Int32Array, UInt64Array


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
