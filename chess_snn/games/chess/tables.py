"""Attack sets; attack and castling tables and Zobrist words, built once at import.

Sliders go by hyperbola quintessence (``o ^ (o - 2s)``): subtraction carries through the empty
squares of a line up to the first blocker, and reversing the bytes gives the other half of a file
or a diagonal. A rank, which byte reversal leaves in order, comes from a table. "Up" is towards
rank 8, where the side to move's pawns go.

The tables are frozen into kernels by :mod:`chess_snn.jit`. Sets of squares are ``uint64``.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from chess_snn.games.bits import ONE, ZERO, swap_bytes
from chess_snn.games.chess.actions import (
    KNIGHT_JUMPS,
    OFF_BOARD,
    QUEEN_DIRECTIONS,
    offset_square,
)
from chess_snn.games.chess.layout import (
    BISHOP,
    FILE_OF_SQUARE,
    KING,
    KNIGHT,
    PAWN,
    QUEEN,
    ROOK,
)
from chess_snn.jit import kernel
from chess_snn.types import UInt64Array

FILE: Final = 0
DIAGONAL: Final = 1
ANTIDIAGONAL: Final = 2
"""Columns of LINES. Ranks are not among them: byte reversal cannot turn a rank round."""

_LINE_STEPS: Final = ((0, 1), (1, 1), (1, -1))
_ZOBRIST_SEED: Final = 0xC4E55
_NUM_CODES: Final = 7


def _set_of(squares: Iterable[int]) -> int:
    return sum(1 << square for square in squares if square != OFF_BOARD)


def _ray(square: int, file_step: int, rank_step: int) -> list[int]:
    """The squares met when walking from ``square`` to the edge of the board."""
    walk = (offset_square(square, file_step * n, rank_step * n) for n in range(1, 8))
    return [target for target in walk if target != OFF_BOARD]


def _leaper_table(jumps: Iterable[tuple[int, int]]) -> UInt64Array:
    jumps = tuple(jumps)
    return np.array(
        [_set_of(offset_square(square, *jump) for jump in jumps) for square in range(64)],
        dtype=np.uint64,
    )


def _line_table() -> UInt64Array:
    return np.array(
        [
            [_set_of(_ray(s, file, rank) + _ray(s, -file, -rank)) for file, rank in _LINE_STEPS]
            for s in range(64)
        ],
        dtype=np.uint64,
    )


def _rank_table() -> UInt64Array:
    """uint64[64, 8]: attacks along a rank, by occupancy of its six inner squares and by file."""
    table = np.zeros((64, 8), dtype=np.uint64)
    for inner in range(64):
        for file in range(8):
            for step in (-1, 1):
                for target in _ray(file, step, 0):
                    table[inner, file] |= np.uint64(1 << target)
                    if inner << 1 & 1 << target:
                        break
    return table


def _between_table() -> UInt64Array:
    """uint64[64, 64]: the squares strictly between two that a queen's move connects, else none."""
    table = np.zeros((64, 64), dtype=np.uint64)
    for origin in range(64):
        for file_step, rank_step in QUEEN_DIRECTIONS:
            ray = _ray(origin, file_step, rank_step)
            for distance, target in enumerate(ray):
                table[origin, target] = _set_of(ray[:distance])
    return table


def _castling_kept_table() -> UInt64Array:
    """uint64[64]: the rights that survive a move from or to a square, mover's view."""
    lost = {4: 0b0011, 7: 0b0001, 0: 0b0010, 60: 0b1100, 63: 0b0100, 56: 0b1000}
    return np.array([0b1111 & ~lost.get(square, 0) for square in range(64)], dtype=np.uint64)


KNIGHT_ATTACKS: Final = _leaper_table(KNIGHT_JUMPS)
KING_ATTACKS: Final = _leaper_table(QUEEN_DIRECTIONS)
LINES: Final = _line_table()
"""uint64[64, 3]: the file, diagonal and antidiagonal through a square, without the square."""
RANK_ATTACKS: Final = _rank_table()
BETWEEN: Final = _between_table()
CASTLING_KEPT: Final = _castling_kept_table()

# random_raw is the bit generator's own output, which numpy never changes: keys are the same on
# every machine and under every version.
_words = np.random.PCG64(_ZOBRIST_SEED).random_raw(2 * _NUM_CODES * 64 + 16 + 8 + 1)
_pieces, _castling, _ep_file, _black = np.split(
    _words.astype(np.uint64), np.cumsum([2 * _NUM_CODES * 64, 16, 8])
)

ZOBRIST_PIECE: Final = _pieces.reshape(2, _NUM_CODES, 64)
"""uint64[2, 7, 64]: by colour (1 is black), piece code and square; 0 for code 0, no piece."""
ZOBRIST_PIECE[:, 0, :] = 0
ZOBRIST_CASTLING: Final = _castling
"""uint64[16]: by castling rights, white's view."""
ZOBRIST_EP_FILE: Final = _ep_file
"""uint64[8]: by file of a legal en passant capture."""
ZOBRIST_BLACK: Final = np.uint64(_black[0])
"""Present where black is to move."""


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
