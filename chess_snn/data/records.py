"""Played games as columns: what self-play emits, shards store and the replay window serves.

On the disk offsets become lengths, and values, surprises and weights float16: that is 2^-11 of
their size, far below the noise of a search. Weights are divided by their sum again on reading.

Dimensions: n games, N positions in all, R record words, E entries of all sparse policy targets.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from chess_snn.games.base import ONGOING, GameSpec
from chess_snn.types import (
    Float32Array,
    Int8Array,
    Int16Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)

START_KINDS: Final = ("ordinary", "practice", "restart", "mismatch")
"""Start of a game: at the game's beginning (after a few random plies), at a simple position that
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


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """One array of a shard."""

    dtype: type[np.generic]
    dimensions: tuple[str, ...]
    """n is ``game``, N ``position``, R ``word`` and E ``target``."""
    description: str
    """Text for readers that have Zarr alone."""


def _column(dtype: type[np.generic], dimensions: str, description: str) -> StoredColumn:
    return StoredColumn(dtype, tuple(dimensions.split()), description)


STORED_COLUMNS: Final[Mapping[str, StoredColumn]] = {
    "states": _column(np.uint64, "position word", "before the action, as words of the game"),
    "actions": _column(np.int16, "position", "number of the action that was played"),
    "values_stm": _column(np.float16, "position", "root value, for the side to move"),
    "surprises": _column(np.float16, "position", "how far the search moved the policy, in nats"),
    "target_lengths": _column(np.uint16, "position", "number of entries of the policy target"),
    "target_actions": _column(np.int16, "target", "action of an entry of a policy target"),
    "target_weights": _column(np.float16, "target", "weight of the entry; 1 in all a position"),
    "game_lengths": _column(np.int32, "game", "number of positions"),
    "outcomes_white": _column(np.int8, "game", "1: first player won, 0: drawn, -1: second won"),
    "terminations": _column(np.uint8, "game", "rule that ended the game; 0: truncated, resigned"),
    "cut_values_white": _column(np.float16, "game", "value of a truncated game, first player's"),
    "start_kinds": _column(np.uint8, "game", f"beginning: 0 to 3 for {', '.join(START_KINDS)}"),
}
"""The stored columns, one array each."""

_SMALLEST_WEIGHT: Final = np.finfo(np.float16).smallest_subnormal
"""A positive weight must stay positive in float16."""
_WEIGHT_SUM_TOLERANCE: Final = 2e-3
_MOST_SURPRISE: Final = float(np.finfo(np.float16).max)


def to_columns(records: GameRecords) -> dict[str, NDArray[Any]]:
    """The stored columns of ``records``."""
    columns = {field.name: getattr(records, field.name) for field in fields(records)} | {
        "target_lengths": np.diff(records.target_offsets),
        "game_lengths": np.diff(records.game_offsets),
        "target_weights": np.maximum(records.target_weights, _SMALLEST_WEIGHT),
    }
    return {name: columns[name].astype(stored.dtype) for name, stored in STORED_COLUMNS.items()}


def from_columns(columns: Mapping[str, NDArray[Any]]) -> GameRecords:
    """The records behind stored ``columns``.

    Raises:
        ValueError: the columns contradict each other or what is true of records.
    """
    for name, column in STORED_COLUMNS.items():
        if (found := columns[name].dtype) != column.dtype:
            raise ValueError(f"{name} must have type {np.dtype(column.dtype)}, found {found}")
    stored: dict[str, NDArray[Any]] = {
        name: column.astype(np.float32) if column.dtype == np.float16 else column
        for name, column in columns.items()
    }
    target_lengths = stored.pop("target_lengths")
    records = GameRecords(
        target_offsets=offsets(target_lengths), game_offsets=offsets(stored.pop("game_lengths")),
        **stored,
    )
    check_records(records)
    sums: Float32Array = np.repeat(_sums(records), target_lengths)
    return replace(records, target_weights=records.target_weights / sums)


def check_records(records: GameRecords) -> None:
    """Check what must be true of every set of records.

    Raises:
        ValueError: naming the first column that is wrong.
    """
    # Each check may rely on those before it.
    for fault in chain(_shape_faults(records), _position_faults(records), _game_faults(records)):
        raise ValueError(fault)


def spec_faults(spec: GameSpec, records: GameRecords) -> Iterator[str]:
    """Describe the fault of sound ``records`` as those of the game ``spec``."""
    for name, limit in {
        "actions": spec.num_actions,
        "target_actions": spec.num_actions,
        "terminations": len(spec.terminations),
    }.items():
        if (code := getattr(records, name).max()) >= limit:
            yield f"{name} must be < {limit}, found {code}"
    least, most = spec.value_range
    for value in (records.values_stm.min(), records.values_stm.max()):
        if not least <= value <= most:
            yield f"values_stm must be in [{least:g}, {most:g}], found {value:g}"


def _shape_faults(records: GameRecords) -> Iterator[str]:
    for field in fields(records):
        wanted, text = (2, "2 dimensions") if field.name == "states" else (1, "1 dimension")
        if (found := getattr(records, field.name).ndim) != wanted:
            yield f"{field.name} must have {text}, found {found}"
    n, N, E = records.num_games, records.num_positions, len(records.target_actions)
    if n == 0:
        yield "there must be at least one game"
    for name, length in {
        "states": N, "values_stm": N, "surprises": N, "target_offsets": N + 1,
        "target_weights": E, "game_offsets": n + 1, "terminations": n, "cut_values_white": n,
        "start_kinds": n,
    }.items():
        if (found := len(getattr(records, name))) != length:
            yield f"{name} must have {length} rows, found {found}"
    for name, end in {"game_offsets": N, "target_offsets": E}.items():
        column = getattr(records, name)
        if column[0] != 0 or column[-1] != end or not np.all(column[1:] > column[:-1]):
            yield f"{name} must rise strictly from 0 to {end}"


def _position_faults(records: GameRecords) -> Iterator[str]:
    for name in ("actions", "target_actions"):
        if getattr(records, name).min() < 0:
            yield f"{name} must be >= 0, found {getattr(records, name).min()}"
    if not np.all(np.isfinite(records.values_stm)):
        yield "values_stm must be finite"
    if not np.all((records.surprises >= 0) & (records.surprises <= _MOST_SURPRISE)):
        yield f"surprises must be finite and in [0, {_MOST_SURPRISE:g}]"
    if not np.all(records.target_weights > 0):
        yield "target_weights must be positive"
    if not np.all(np.abs(_sums(records) - 1) <= _WEIGHT_SUM_TOLERANCE):
        yield "target_weights must sum to 1 in each position"


def _game_faults(records: GameRecords) -> Iterator[str]:
    if not np.all(np.abs(records.outcomes_white) <= 1):
        yield "outcomes_white must be -1, 0 or 1"
    if not np.all(np.abs(records.cut_values_white) <= 1):
        yield "cut_values_white must be finite and in [-1, 1]"
    is_cut = (records.terminations == ONGOING) & (records.outcomes_white == 0)
    if np.any(records.cut_values_white[~is_cut]):
        yield "cut_values_white must be 0 for a game that was not truncated"
    if records.start_kinds.max() >= len(START_KINDS):
        yield f"start_kinds must be < {len(START_KINDS)}, found {records.start_kinds.max()}"


def _sums(records: GameRecords) -> Float32Array:
    """float32[N]: the sum of each position's weights."""
    sums: Float32Array = np.add.reduceat(records.target_weights, records.target_offsets[:-1])
    return sums
