"""Attack sets.

Sliders go by hyperbola quintessence (``o ^ (o - 2s)``): subtraction carries through the empty
squares of a line up to the first blocker, and reversing the bytes gives the other half of a file
or a diagonal. A rank, which byte reversal leaves in order, comes from a table. "Up" is towards
rank 8, where the side to move's pawns go.
"""

from typing import Final

import numpy as np

from chess_snn.games.bits import ONE, ZERO, swap_bytes
from chess_snn.games.chess.layout import (
    BISHOP,
    FILE_OF_SQUARE,
    KING,
    KNIGHT,
    PAWN,
    QUEEN,
    ROOK,
)
from chess_snn.games.chess.tables import (
    ANTIDIAGONAL,
    DIAGONAL,
    FILE,
    KING_ATTACKS,
    KNIGHT_ATTACKS,
    LINES,
    RANK_ATTACKS,
)
from chess_snn.jit import kernel

_NOT_FILE_A: Final = np.uint64(0xFEFEFEFEFEFEFEFE)
_NOT_FILE_H: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_UP_LEFT: Final = np.uint64(7)
_UP_RIGHT: Final = np.uint64(9)
_RANK_START: Final = np.uint64(56)
_INNER_RANK_MASK: Final = np.uint64(63)


@kernel
def _line_attacks(slider: np.uint64, occupied: np.uint64, line: np.uint64) -> np.uint64:
    forward = occupied & line
    backward = swap_bytes(forward)
    forward -= slider
    backward -= swap_bytes(slider)
    return (forward ^ swap_bytes(backward)) & line


@kernel
def bishop_attacks(square: np.uint64, occupied: np.uint64) -> np.uint64:
    """Squares that a bishop on ``square`` attacks, the first blocker of each ray included."""
    slider = ONE << square
    return _line_attacks(slider, occupied, LINES[square, DIAGONAL]) | _line_attacks(
        slider, occupied, LINES[square, ANTIDIAGONAL]
    )


@kernel
def rook_attacks(square: np.uint64, occupied: np.uint64) -> np.uint64:
    """Squares that a rook on ``square`` attacks, the first blocker of each ray included."""
    rank_start = square & _RANK_START
    inner = (occupied >> (rank_start + ONE)) & _INNER_RANK_MASK
    along_rank: np.uint64 = RANK_ATTACKS[inner, square & FILE_OF_SQUARE] << rank_start
    return _line_attacks(ONE << square, occupied, LINES[square, FILE]) | along_rank


@kernel
def up_left(pawns: np.uint64) -> np.uint64:
    """Squares that upward ``pawns`` attack towards the a-file."""
    return (pawns & _NOT_FILE_A) << _UP_LEFT


@kernel
def up_right(pawns: np.uint64) -> np.uint64:
    """Squares that upward ``pawns`` attack towards the h-file."""
    return (pawns & _NOT_FILE_H) << _UP_RIGHT


@kernel
def pawn_attacks_up(pawns: np.uint64) -> np.uint64:
    """Squares that upward ``pawns`` attack."""
    return up_left(pawns) | up_right(pawns)


@kernel
def pawn_attacks_down(pawns: np.uint64) -> np.uint64:
    """Squares that downward ``pawns`` attack."""
    return ((pawns & _NOT_FILE_A) >> _UP_RIGHT) | ((pawns & _NOT_FILE_H) >> _UP_LEFT)


@kernel
def piece_attacks(piece: np.uint64, square: np.uint64, occupied: np.uint64) -> np.uint64:
    """Squares that a piece, given by its code, attacks from ``square``: a pawn's are upwards."""
    attacked: np.uint64 = ZERO
    if piece == PAWN:
        attacked = pawn_attacks_up(ONE << square)
    elif piece == KNIGHT:
        attacked = KNIGHT_ATTACKS[square]
    elif piece == BISHOP:
        attacked = bishop_attacks(square, occupied)
    elif piece == ROOK:
        attacked = rook_attacks(square, occupied)
    elif piece == KING:
        attacked = KING_ATTACKS[square]
    elif piece == QUEEN:
        attacked = bishop_attacks(square, occupied) | rook_attacks(square, occupied)
    return attacked
