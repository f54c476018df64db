"""Random streams of games: every game has its own, whoever plays it and beside which others.

Dimensions: n games.
"""

import numpy as np

from chess_snn.jit import kernel
from chess_snn.rng import derive_seed, random_unit, random_words
from chess_snn.types import Float64Array, UInt64Array


def game_streams(
    seed: int, purpose: str, num_games: int, first_game: int = 0
) -> UInt64Array:
    """uint64[n]: the key of each game's stream for ``purpose``, which ``seed`` names too.

    The games are number ``first_game`` and the following ones.
    """
    key = np.full(num_games, derive_seed(seed, purpose), np.uint64)
    return random_words(key, first_game + np.arange(num_games, dtype=np.uint64))


def first_units(keys: UInt64Array) -> Float64Array:
    """float64[n] in (0, 1): draw 0 of each of the streams ``keys`` uint64[n]."""
    units = np.empty(len(keys), np.float64)
    _fill_units(keys, units)
    return units


@kernel
def _fill_units(keys: UInt64Array, units: Float64Array) -> None:
    for i in range(len(keys)):
        units[i] = random_unit(keys[i], np.uint64(0))
