"""Operations on one board, a ``uint64`` with 4 bits a cell: slide, spawn, turn round.

``slides`` is :func:`chess_snn.games.twenty48.layout.slide_table` throughout.
"""

from typing import Final

import numpy as np

from chess_snn.games.bits import ONE, ZERO, count_trailing_zeros, population_count
from chess_snn.games.twenty48.layout import (
    FOUR_PROBABILITY,
    LEFT_SHIFT,
    NUM_ACTIONS,
    POINTS_SHIFT,
    RIGHT_SHIFT,
    SIDE,
)
from chess_snn.jit import kernel
from chess_snn.types import UInt64Array

ROW_BITS: Final = 16
ROW_MASK: Final = np.uint64(0xFFFF)
CELL_SHIFT: Final = np.uint64(2)
"""4 * cell == cell << CELL_SHIFT."""

_LOW_BITS: Final = np.uint64(0x1111111111111111)
_SHIFT_1, _SHIFT_2 = np.uint64(1), np.uint64(2)
_SHIFT_4, _SHIFT_8, _SHIFT_12 = np.uint64(4), np.uint64(8), np.uint64(12)
_SHIFT_16, _SHIFT_24, _SHIFT_32 = np.uint64(16), np.uint64(24), np.uint64(32)
_HALF: Final = np.uint64(0xFFFFFFFF)
_FOUR_BELOW: Final = np.uint64(round(FOUR_PROBABILITY * 2**32))

_IN_PLACE: Final = np.uint64(0xF0F00F0FF0F00F0F)
_TO_UPPER: Final = np.uint64(0x0000F0F00000F0F0)
_TO_LOWER: Final = np.uint64(0x0F0F00000F0F0000)
_BLOCKS_IN_PLACE: Final = np.uint64(0xFF00FF0000FF00FF)
_BLOCK_TO_UPPER: Final = np.uint64(0x00000000FF00FF00)
_BLOCK_TO_LOWER: Final = np.uint64(0x00FF00FF00000000)

_ODD_CELLS: Final = np.uint64(0x0F0F0F0F0F0F0F0F)
_ODD_PAIRS: Final = np.uint64(0x00FF00FF00FF00FF)
_ODD_ROWS: Final = np.uint64(0x0000FFFF0000FFFF)

_MIRROR, _FLIP, _TRANSPOSE = np.uint64(1), np.uint64(2), np.uint64(4)
"""Bits of a symmetry: swap left and right, then top and bottom, then rows and columns."""
NUM_SYMMETRIES: Final = 8


@kernel
def transpose(board: np.uint64) -> np.uint64:
    """Rows become columns: cells of each 2x2 block first, then the blocks."""
    board = (
        board & _IN_PLACE | (board & _TO_UPPER) << _SHIFT_12 | (board & _TO_LOWER) >> _SHIFT_12
    )
    return (
        board & _BLOCKS_IN_PLACE
        | (board & _BLOCK_TO_UPPER) << _SHIFT_24
        | (board & _BLOCK_TO_LOWER) >> _SHIFT_24
    )


@kernel
def view_board(board: np.uint64, symmetry: np.uint64) -> np.uint64:
    """``board`` in view ``symmetry`` of [0, 8); 0 is the board itself."""
    if symmetry & _MIRROR != ZERO:
        board = (board & _ODD_CELLS) << _SHIFT_4 | board >> _SHIFT_4 & _ODD_CELLS
        board = (board & _ODD_PAIRS) << _SHIFT_8 | board >> _SHIFT_8 & _ODD_PAIRS
    if symmetry & _FLIP != ZERO:
        board = (board & _ODD_ROWS) << _SHIFT_16 | board >> _SHIFT_16 & _ODD_ROWS
        board = board << _SHIFT_32 | board >> _SHIFT_32
    return transpose(board) if symmetry & _TRANSPOSE != ZERO else board


def _view_of_action(action: int, symmetry: int) -> int:
    is_vertical = action & 1
    if symmetry >> is_vertical & 1:
        action ^= 2
    return action ^ 1 if symmetry & int(_TRANSPOSE) else action


VIEWED_ACTION: Final = np.array(
    [[_view_of_action(a, s) for a in range(NUM_ACTIONS)] for s in range(NUM_SYMMETRIES)],
    dtype=np.int16,
)
"""int16[8, 4]: what each action is called in each view."""


@kernel
def slide(board: np.uint64, action: int, slides: UInt64Array) -> tuple[np.uint64, np.uint64]:
    """The board after ``action`` 0..3 (the same one if that is illegal), and the merged points."""
    part = RIGHT_SHIFT if action & 2 else LEFT_SHIFT
    rows = transpose(board) if action & 1 else board
    slid, points = ZERO, ZERO
    for row in range(SIDE):
        shift = np.uint64(ROW_BITS * row)
        entry = slides[rows >> shift & ROW_MASK]
        slid |= (entry >> part & ROW_MASK) << shift
        points += entry >> POINTS_SHIFT
    return transpose(slid) if action & 1 else slid, points


@kernel
def legal_mask(board: np.uint64, slides: UInt64Array) -> np.uint64:
    """Bit a is set where action a is legal, i.e. changes the board."""
    columns = transpose(board)
    mask = ZERO
    for row in range(SIDE):
        shift = np.uint64(ROW_BITS * row)
        mask |= _movable(board >> shift & ROW_MASK, slides)
        mask |= _movable(columns >> shift & ROW_MASK, slides) << _SHIFT_1
    return mask


@kernel
def _movable(row: np.uint64, slides: UInt64Array) -> np.uint64:
    """Bit 0 where the row can slide left, bit 2 where it can slide right."""
    entry = slides[row]
    mask = ZERO
    if entry >> LEFT_SHIFT & ROW_MASK != row:
        mask |= ONE
    if entry >> RIGHT_SHIFT & ROW_MASK != row:
        mask |= ONE << _SHIFT_2
    return mask


@kernel
def empty_cells(board: np.uint64) -> np.uint64:
    """The lowest bit of each empty cell."""
    occupied = board | board >> _SHIFT_2
    occupied |= occupied >> _SHIFT_1
    return ~occupied & _LOW_BITS


@kernel
def draw_event(board: np.uint64, word: np.uint64) -> np.uint64:
    """The event that 64 random bits choose on a board with an empty cell.

    The upper half of the word chooses the cell (off the uniform by less than 2 ** -27), the lower
    half the tile.
    """
    empty = empty_cells(board)
    skipped = (word >> _SHIFT_32) * population_count(empty) >> _SHIFT_32
    for _ in range(skipped):
        empty &= empty - ONE
    cell = count_trailing_zeros(empty) >> CELL_SHIFT
    return cell << ONE | (ONE if word & _HALF < _FOUR_BELOW else ZERO)


@kernel
def spawn(board: np.uint64, event: np.uint64) -> np.uint64:
    """The board with the tile of ``event`` in its cell, which was empty."""
    exponent = ONE + (event & ONE)
    return board | exponent << (event >> ONE << CELL_SHIFT)
