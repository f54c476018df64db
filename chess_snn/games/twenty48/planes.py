"""Binary input planes of a position, its largest tile, and its eight views.

A plane is one ``uint64``: bit s is cell s. Plane e, from 0 to 15, holds the cells whose exponent is
e (plane 0: the empty ones); the last plane is all ones in an afterstate.
"""

from typing import Final

import numpy as np

from chess_snn.games.bits import ONE, ZERO
from chess_snn.games.twenty48.boards import VIEWED_ACTION, view_board
from chess_snn.games.twenty48.layout import (
    BOARD,
    MAX_EXPONENT,
    NATURE,
    NATURE_MOVES,
    NUM_ACTIONS,
    NUM_CELLS,
)
from chess_snn.jit import kernel
from chess_snn.types import Int16Array, Int64Array, UInt8Array, UInt64Array

_NATURE_PLANE: Final = MAX_EXPONENT + 1
NUM_PLANES: Final = _NATURE_PLANE + 1
_ALL: Final = np.uint64((1 << NUM_CELLS) - 1)
_EXPONENT_MASK: Final = np.uint64(MAX_EXPONENT)


@kernel
def write_planes(states: UInt64Array, planes: UInt64Array) -> None:
    """Fill ``planes`` uint64[B, 17] from ``states`` uint64[B, 2]."""
    for i in range(len(states)):
        planes[i] = ZERO
        board = states[i, BOARD]
        for cell in range(NUM_CELLS):
            exponent = board >> np.uint64(4 * cell) & _EXPONENT_MASK
            planes[i, exponent] |= ONE << np.uint64(cell)
        if states[i, NATURE] == NATURE_MOVES:
            planes[i, _NATURE_PLANE] = _ALL


@kernel
def write_largest_tiles(states: UInt64Array, tiles: Int64Array) -> None:
    """Fill ``tiles`` int64[B] from ``states`` uint64[B, 2]; 0 on an empty board."""
    for i in range(len(states)):
        largest = ZERO
        for cell in range(NUM_CELLS):
            largest = max(largest, states[i, BOARD] >> np.uint64(4 * cell) & _EXPONENT_MASK)
        tiles[i] = ONE << largest if largest != ZERO else ZERO


@kernel
def view_rows(states: UInt64Array, actions: Int16Array, symmetries: UInt8Array) -> None:
    """Put ``states`` uint64[B, 2] and ``actions`` int16[B, K] into the views uint8[B] in place."""
    for i in range(len(states)):
        states[i, BOARD] = view_board(states[i, BOARD], np.uint64(symmetries[i]))
        for j in range(actions.shape[1]):
            if 0 <= actions[i, j] < NUM_ACTIONS:
                actions[i, j] = VIEWED_ACTION[symmetries[i], actions[i, j]]
