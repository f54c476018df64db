"""Played games as columns: what self-play emits, shards store and the replay window serves.

Dimensions: n games, N positions in all, R record words, E entries of all sparse policy targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from chess_snn.types import (
    Float32Array,
    Int8Array,
    Int16Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)

START_KINDS: Final = ("ordinary", "practice", "restart", "mismatch")
"""Where a game began: at the game's beginning (after a few random plies), at a simple position that
one side should win, in the middle of an earlier game, or where one side had played for material
against random moves."""


@dataclass(frozen=True, slots=True)
class GameRecords:
    """n whole games, one after the other; positions of a game are in playing order."""

    states: UInt64Array
    """uint64[N, R]: each position before its action was played."""
    actions: Int16Array
    """int16[N]: the action played."""
    values_stm: Float32Array
    """float32[N] in ``GameSpec.value_range``: root value when it was played, for the side
    to move."""
    surprises: Float32Array
    """float32[N] >= 0, nats: how far the search moved the network's policy; 0 without a tree."""
    target_offsets: Int64Array
    """int64[N + 1]: the policy target of position i is entries offsets[i] to offsets[i + 1]."""
    target_actions: Int16Array
    """int16[E]: legal actions with a positive weight."""
    target_weights: Float32Array
    """float32[E]: they sum to 1 a position. A game played without search has the one played
    action with weight 1."""
    game_offsets: Int64Array
    """int64[n + 1]: the positions of game k are game_offsets[k] to game_offsets[k + 1]."""
    outcomes_white: Int8Array
    """int8[n]: +1 the first player won, 0 drawn or truncated, -1 the second won; 0 in a game with
    returns, which follow from the rules."""
    terminations: UInt8Array
    """uint8[n]: why it ended; ``ONGOING`` (0) if the game was truncated or, with an outcome, if one
    side resigned."""
    cut_values_white: Float32Array
    """float32[n] in [-1, 1]: what a truncated game counts as in training, first player's view; 0
    for every other game, and in a game with returns."""
    start_kinds: UInt8Array
    """uint8[n]: index into ``START_KINDS``."""

    @property
    def num_games(self) -> int:
        """Number of games, n."""
        return len(self.outcomes_white)

    @property
    def num_positions(self) -> int:
        """Number of positions, N."""
        return len(self.actions)


def offsets(lengths: NDArray[np.integer[Any]]) -> Int64Array:
    """int64[n + 1]: where each run of ``lengths`` int[n] starts, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def concatenate(parts: Sequence[GameRecords]) -> GameRecords:
    """The games of all ``parts``, in order; ``parts`` must not be empty."""
    joined: dict[str, np.ndarray] = {}
    for field in fields(GameRecords):
        columns = [getattr(part, field.name) for part in parts]
        if field.name.endswith("_offsets"):
            ends = np.cumsum([0, *(column[-1] for column in columns)])
            shifted = [column[1:] + end for column, end in zip(columns, ends, strict=False)]
            joined[field.name] = np.concatenate([np.zeros(1, np.int64), *shifted])
        else:
            joined[field.name] = np.concatenate(columns)
    return GameRecords(**joined)
