"""Start positions of matches: distinct, reproducible, each played by both sides."""

import numpy as np

from chess_snn.config import check_range
from chess_snn.errors import ConfigError
from chess_snn.games.base import Game
from chess_snn.games.sampling import random_starts
from chess_snn.rng import generator
from chess_snn.types import UInt64Array

_MAX_ROUNDS = 64
"""Rounds of drawing before giving up; a round draws twice as many starts as are wanted."""


def random_openings(game: Game, num_openings: int, num_plies: int, seed: int) -> UInt64Array:
    """Distinct positions ``num_plies`` uniformly random half-moves after the initial one.

    A longer list with the same seed begins with the shorter one.

    Args:
        game: whose positions they are.
        num_openings: how many, >= 1.
        num_plies: half-moves, >= 0.
        seed: the same seed gives the same openings.

    Returns:
        uint64[num_openings, W]: state rows, all different, none of an ended game.

    Raises:
        ConfigError: an argument is out of range, or there are not that many positions.
    """
    check_range("evaluation.num_openings", num_openings, ge=1)
    check_range("evaluation.opening_plies", num_plies, ge=0)
    stream = generator(seed, "openings")
    openings = np.empty((0, game.spec.state_words), dtype=np.uint64)
    for _ in range(_MAX_ROUNDS):
        keys = stream.integers(0, 2**64, size=2 * num_openings, dtype=np.uint64)
        drawn = random_starts(game, keys, np.full(len(keys), num_plies, dtype=np.int32))
        openings = distinct_states(np.concatenate([openings, drawn]))
        if len(openings) >= num_openings:
            return openings[:num_openings]
    raise ConfigError(
        f"found {len(openings)} distinct positions {num_plies} plies after the start of "
        f"{game.spec.name}, evaluation.num_openings asks for {num_openings}; raise "
        "evaluation.opening_plies or ask for fewer"
    )


def distinct_states(states: UInt64Array) -> UInt64Array:
    """``states`` uint64[n, W] without repetitions, in order of first appearance."""
    _, first = np.unique(states, axis=0, return_index=True)
    distinct: UInt64Array = states[np.sort(first)]
    return distinct
