"""The state row of 2048: what its two words hold, and how actions and events are numbered.

BOARD holds 4 bits a cell, the exponent of the tile: 0 where the cell is empty, 1 for a 2, 15 for a
32768. Cell ``s`` is row * 4 + column and occupies bits 4s to 4s + 3, so a row is 16 bits, and its
leftmost cell the lowest 4::

    row 1 |  0  1  2  3
    row 2 |  4  5  6  7
    row 3 |  8  9 10 11
    row 4 | 12 13 14 15
          +------------
             a  b  c  d

NATURE is 0 where the player is to move and 1 in an *afterstate*, where a tile is still to come.

Actions are 0 left, 1 up, 2 right, 3 down. The events of an afterstate are 2 * cell + k: a 2 (k = 0)
or a 4 (k = 1) appears in that empty cell.

Two 32768 do not merge, because 4 bits cannot hold a 65536; a game that comes so far goes on with
two tiles that block each other.
"""

from functools import cache
from typing import Final

import numpy as np

from chess_snn.types import Int64Array, UInt64Array

BOARD: Final = 0
NATURE: Final = 1
STATE_WORDS: Final = 2

SIDE: Final = 4
"""Rows of the board, and cells of a row."""
NUM_CELLS: Final = SIDE * SIDE
MAX_EXPONENT: Final = 15
"""Exponent of the largest tile, 32768."""

ACTION_NAMES: Final = ("left", "up", "right", "down")
NUM_ACTIONS: Final = len(ACTION_NAMES)
MAX_LEGAL: Final = 2 * NUM_CELLS

FOUR_PROBABILITY: Final = 0.1
"""Probability that the next tile is a 4; else it is a 2."""
SCORE_UNIT: Final = 1024.0
"""Points of the score, i.e. the sum of the merged tiles, that a reward of 1 stands for."""

ONGOING: Final = 0
NO_MOVES: Final = 1
TERMINATIONS: Final = ("ongoing", "no_moves")

PLAYER_MOVES: Final = np.uint64(0)
NATURE_MOVES: Final = np.uint64(1)
"""Values of the word NATURE."""
NUM_ROWS: Final = 1 << 4 * SIDE
LEFT_SHIFT: Final = np.uint64(0)
RIGHT_SHIFT: Final = np.uint64(16)
POINTS_SHIFT: Final = np.uint64(32)
"""First bit of each part of an entry."""


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
