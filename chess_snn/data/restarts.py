"""Positions of earlier games to start new ones from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from chess_snn.config import check_range
from chess_snn.data.records import GameRecords
from chess_snn.data.shard import read_shard_of
from chess_snn.errors import UsageError
from chess_snn.games.base import GameSpec
from chess_snn.rng import generator
from chess_snn.types import UInt64Array

_FIRST_PLIES: Final = 8
"""Not restarted from: they are near the start that ordinary games have anyway."""
_LAST_PLIES: Final = 4
"""Not restarted from: the game is as good as over there."""


def restart_states(
    spec: GameSpec, shard_folders: Sequence[Path], value_limit: float, limit: int, seed: int
) -> UInt64Array:
    """Record rows uint64[m, R], m <= ``limit``, of positions that neither side had won.

    Args:
        spec: of the game.
        shard_folders: shards of one game, at least one; all of them are read.
        value_limit: positions with a larger root value, in size, are left out; as a share of the
            largest value that the game has, in [0, 1].
        limit: most rows; among more positions that qualify, it draws without replacement.
        seed: decides that draw, together with the order of the shards.

    Raises:
        CorruptDataError: a shard is damaged; it is named.
        UsageError: no shard, or one of another game.
        ConfigError: a limit out of its range.
    """
    check_range("restarts.value_limit", value_limit, ge=0, le=1)
    check_range("restarts.limit", limit, ge=1)
    if not shard_folders:
        raise UsageError("restarts need at least one shard, got none; play games first")
    most = value_limit * spec.value_limit
    states = np.concatenate([
        _contested_states(read_shard_of(spec, folder)[0], most) for folder in shard_folders
    ])
    if len(states) <= limit:
        return states
    chosen = generator(seed, "restarts").choice(len(states), size=limit, replace=False)
    return states[np.sort(chosen)]


def _contested_states(records: GameRecords, most: float) -> UInt64Array:
    lengths = np.diff(records.game_offsets)
    rows = np.arange(records.num_positions)
    ply = rows - np.repeat(records.game_offsets[:-1], lengths)
    plies_left = np.repeat(records.game_offsets[1:], lengths) - rows
    return records.states[
        (np.abs(records.values_stm) <= most)
        & (ply >= _FIRST_PLIES)
        & (plies_left > _LAST_PLIES)
    ]
