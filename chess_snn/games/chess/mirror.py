"""Positions and actions seen in a mirror that swaps the a-file with the h-file.

Castling is the only rule that knows left from right: without castling rights the mirrored game is
the same game, so training may look at either. Colours and ranks stay as they are.
"""

from typing import Final

import numpy as np

from chess_snn.games.bits import ZERO
from chess_snn.games.chess.actions import MIRRORED_ACTION
from chess_snn.games.chess.keys import compute_key
from chess_snn.games.chess.layout import (
    CASTLING_MASK,
    CASTLING_SHIFT,
    CODE0,
    CODE1,
    CODE2,
    EP_MASK,
    EP_SHIFT,
    HORIZONTAL_FLIP,
    KEY,
    META,
    NO_SQUARE,
    WHITE,
)
from chess_snn.jit import kernel
from chess_snn.types import Int16Array, UInt8Array, UInt64Array

_SHIFT_1, _SHIFT_2, _SHIFT_4 = np.uint64(1), np.uint64(2), np.uint64(4)
_EVEN_FILES: Final = np.uint64(0x5555555555555555)
_EVEN_PAIRS: Final = np.uint64(0x3333333333333333)
_QUEEN_SIDE: Final = np.uint64(0x0F0F0F0F0F0F0F0F)


@kernel
def mirror_rows(states: UInt64Array, actions: Int16Array, is_mirrored: UInt8Array) -> None:
    """Mirror the chosen rows of ``states`` uint64[B, >= 5] and ``actions`` int16[B, K] in place.

    ``is_mirrored`` uint8[B] chooses. Rows with castling rights stay as they are, and negative
    actions do. The keys of settled rows that carry one become those of the mirrored positions.
    """
    for i in range(len(states)):
        row = states[i]
        if not is_mirrored[i] or row[META] >> CASTLING_SHIFT & CASTLING_MASK != ZERO:
            continue
        for word in (CODE0, CODE1, CODE2, WHITE):
            row[word] = mirror_squares(row[word])
        if row[META] >> EP_SHIFT & EP_MASK != NO_SQUARE:
            row[META] ^= HORIZONTAL_FLIP << EP_SHIFT
        if len(row) > KEY:
            row[KEY] = compute_key(row)
        for j in range(actions.shape[1]):
            if actions[i, j] >= 0:
                actions[i, j] = MIRRORED_ACTION[actions[i, j]]


@kernel
def mirror_squares(squares: np.uint64) -> np.uint64:
    """A set of squares with the order of its files reversed."""
    squares = (squares >> _SHIFT_1) & _EVEN_FILES | (squares & _EVEN_FILES) << _SHIFT_1
    squares = (squares >> _SHIFT_2) & _EVEN_PAIRS | (squares & _EVEN_PAIRS) << _SHIFT_2
    return (squares >> _SHIFT_4) & _QUEEN_SIDE | (squares & _QUEEN_SIDE) << _SHIFT_4
