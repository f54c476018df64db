"""When and why a game ends. Draws that a player may claim are claimed at once."""

from typing import Final

import numpy as np

from chess_snn.games.bits import ONE, ZERO
from chess_snn.games.chess.layout import (
    CHECKMATE,
    CODE0,
    CODE1,
    CODE2,
    FIFTY_MOVES,
    HISTORY_LENGTH,
    INSUFFICIENT_MATERIAL,
    ONGOING,
    STALEMATE,
    THREEFOLD_REPETITION,
)
from chess_snn.games.chess.rows import halfmove_clock
from chess_snn.jit import kernel
from chess_snn.types import UInt64Array

_DARK_SQUARES: Final = np.uint64(0xAA55AA55AA55AA55)
_FIFTY_MOVES_CLOCK: Final = np.uint64(100)
_EARLIER_FOR_THREEFOLD: Final = np.uint64(2)
_SHORTEST_REPETITION: Final = np.uint64(4)
_SAME_SIDE: Final = np.uint64(2)
_RING: Final = np.uint64(HISTORY_LENGTH)
_LONGEST_REPETITION: Final = np.uint64(HISTORY_LENGTH - 2)
"""Games end long before the clock is there, but those played elsewhere may go on."""


@kernel
def remember(history: UInt64Array, ply: np.uint64, key: np.uint64) -> None:
    """Enter ``key`` into ``history`` uint64[128], the ring that ``GameBatch`` describes."""
    history[ply % _RING] = key


@kernel
def count_earlier(
    history: UInt64Array, ply: np.uint64, clock: np.uint64, key: np.uint64
) -> np.uint64:
    """Count how often ``key`` stands in ``history`` uint64[128] before ``ply``, same side to move.

    Looks back over the plies since the reset, and no further than the last capture or pawn move.
    """
    earlier = ZERO
    distance = _SHORTEST_REPETITION
    farthest = min(clock, ply, _LONGEST_REPETITION)
    while distance <= farthest:
        if history[(ply - distance) % _RING] == key:
            earlier += ONE
        distance += _SAME_SIDE
    return earlier


@kernel
def has_insufficient_material(row: UInt64Array) -> bool:
    """Return whether neither side can mate: bare kings, one minor piece, bishops of one shade."""
    code0, code1, code2 = row[CODE0], row[CODE1], row[CODE2]
    bishops = code0 & code1
    knights = code1 & ~(code0 | code2)
    kings = code1 & code2
    minors = bishops | knights
    if (code0 | code1 | code2) != kings | minors:
        return False
    if minors & (minors - ONE) == ZERO:
        return True
    one_shade = bishops & _DARK_SQUARES == ZERO or bishops & ~_DARK_SQUARES == ZERO
    return bool(knights == ZERO and one_shade)


@kernel
def termination_code(
    row: UInt64Array, num_legal: np.uint64, in_check: bool, num_earlier: np.uint64
) -> int:
    """Index into TERMINATIONS; where several reasons hold, the order is python-chess's."""
    if num_legal == ZERO and in_check:
        return CHECKMATE
    if has_insufficient_material(row):
        return INSUFFICIENT_MATERIAL
    if num_legal == ZERO:
        return STALEMATE
    if halfmove_clock(row) >= _FIFTY_MOVES_CLOCK:
        return FIFTY_MOVES
    if num_earlier >= _EARLIER_FOR_THREEFOLD:
        return THREEFOLD_REPETITION
    return ONGOING
