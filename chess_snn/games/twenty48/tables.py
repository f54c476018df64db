"""What sliding does to each of the 65,536 rows, looked up instead of computed.

An entry packs the row after a slide to the left, after a slide to the right, and the points of the
merges. The points are the same both ways: a run of n equal tiles merges n // 2 times. A slide is
illegal where it leaves the row as it was.
"""

from functools import cache
from typing import Final

import numpy as np

from chess_snn.games.twenty48.layout import MAX_EXPONENT, SIDE
from chess_snn.types import Int64Array, UInt64Array

NUM_ROWS: Final = 1 << 4 * SIDE
LEFT_SHIFT: Final = np.uint64(0)
RIGHT_SHIFT: Final = np.uint64(16)
POINTS_SHIFT: Final = np.uint64(32)
"""Where the parts of an entry begin."""


@cache
def slide_table() -> UInt64Array:
    """uint64[65536]: the entry of each row, the same array every time.

    Built at the first call, in about 30 ms. Kernels get it as an argument: frozen into them, as
    small tables are, it would be compiled into each one.
    """
    rows = row_cells()
    left, points = _slide_left(rows)
    right, _ = _slide_left(rows[:, ::-1])
    entries = (
        _packed(left) << int(LEFT_SHIFT)
        | _packed(right[:, ::-1]) << int(RIGHT_SHIFT)
        | points << int(POINTS_SHIFT)
    )
    return entries.astype(np.uint64)


def row_cells() -> Int64Array:
    """int64[65536, 4]: the exponents of every row, from left to right."""
    return np.arange(NUM_ROWS)[:, None] >> 4 * np.arange(SIDE) & MAX_EXPONENT


def _slide_left(rows: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Rows int64[n, 4] after the slide, and the points int64[n] of their merges."""
    cells = _without_gaps(rows)
    points = np.zeros(len(cells), dtype=np.int64)
    for i in range(SIDE - 1):
        here, right = cells[:, i], cells[:, i + 1]
        merges = (here == right) & (here > 0) & (here < MAX_EXPONENT)
        here[merges] += 1
        right[merges] = 0
        points[merges] += 1 << here[merges]
    return _without_gaps(cells), points


def _without_gaps(rows: Int64Array) -> Int64Array:
    """A copy of the rows with their tiles moved to the left, in the same order."""
    order = np.argsort(rows == 0, axis=1, kind="stable")
    return np.take_along_axis(rows, order, axis=1)


def _packed(rows: Int64Array) -> Int64Array:
    """int64[n]: 16 bits a row, of the exponents int64[n, 4]."""
    packed: Int64Array = (rows << 4 * np.arange(SIDE)).sum(axis=1)
    return packed
