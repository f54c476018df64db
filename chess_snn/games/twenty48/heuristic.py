"""A hand-made value of boards: the sum of one looked-up number for each row and each column.

The value of a line of exponents e is::

    BASE + EMPTY * (empty cells) + PAIRS * (neighbours that can merge)
         - DISORDER * (smaller of the climbs to the left and to the right)
         - MASS * sum of e ** MASS_POWER

where a climb is the sum of the rises of e ** DISORDER_POWER from one cell to the next. Ordered
lines keep large tiles together at an edge, and a line of few large tiles has less mass than one of
many. The unit is that of rewards; the number orders boards, but does not predict the score. The
weights come from a random search over the mean score of expectimax with two moves.
"""

from functools import cache
from typing import Final

import numpy as np

from chess_snn.games.twenty48.boards import ROW_BITS, ROW_MASK, transpose
from chess_snn.games.twenty48.layout import BOARD, MAX_EXPONENT, SIDE
from chess_snn.games.twenty48.tables import row_cells
from chess_snn.jit import kernel
from chess_snn.types import Float32Array, Float64Array, UInt64Array

BASE: Final = 900.0
EMPTY: Final = 5.8
PAIRS: Final = 13.0
DISORDER: Final = 1.4
DISORDER_POWER: Final = 2.15
MASS: Final = 0.072
MASS_POWER: Final = 3.28


@cache
def line_values() -> Float32Array:
    """float32[65536]: the value of each row, or of a column read from top to bottom.

    Built at the first call.
    """
    cells = row_cells()
    is_tile = cells > 0
    pairs = (cells[:, 1:] == cells[:, :-1]) & is_tile[:, 1:] & (cells[:, 1:] < MAX_EXPONENT)
    rises = np.diff(cells.astype(np.float64) ** DISORDER_POWER, axis=1)
    climbs = np.maximum(rises, 0).sum(axis=1), np.maximum(-rises, 0).sum(axis=1)
    values: Float64Array = (
        BASE
        + EMPTY * (~is_tile).sum(axis=1)
        + PAIRS * pairs.sum(axis=1)
        - DISORDER * np.minimum(*climbs)
        - MASS * (cells.astype(np.float64) ** MASS_POWER).sum(axis=1)
    )
    return values.astype(np.float32)


@kernel
def board_value(board: np.uint64, lines: Float32Array) -> np.float32:
    """The value of a board; ``lines`` is :func:`line_values`."""
    columns = transpose(board)
    value = np.float32(0.0)
    for row in range(SIDE):
        shift = np.uint64(ROW_BITS * row)
        value += lines[board >> shift & ROW_MASK] + lines[columns >> shift & ROW_MASK]
    return value


@kernel
def write_values(states: UInt64Array, values: Float32Array, lines: Float32Array) -> None:
    """Fill ``values`` float32[B] from ``states`` uint64[B, 2]."""
    for i in range(len(states)):
        values[i] = board_value(states[i, BOARD], lines)
