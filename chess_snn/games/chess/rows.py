"""Reading and writing a state row from the side to move's point of view.

A *view* is a row's boards with rank 1 on the side to move's end: the words as they are for white,
byte-swapped for black. Everything below move generation and move making sees views only, so there
is one case to get right instead of two.

A Zobrist key is the XOR of one word for every piece on its square, for the castling rights, for
black to move, and for the file of a legal en passant capture. Moves update it; only rows that come
from nowhere need it from scratch.
"""

from typing import Final

import numpy as np

from chess_snn.games.bits import ONE, ZERO, count_trailing_zeros, swap_bytes
from chess_snn.games.chess.layout import (
    BLACK_BIT,
    CASTLING_MASK,
    CASTLING_PAIR,
    CASTLING_SHIFT,
    CLOCK_MASK,
    CLOCK_SHIFT,
    CODE0,
    CODE1,
    CODE2,
    EP_MASK,
    EP_SHIFT,
    FILE_OF_SQUARE,
    KEY,
    META,
    NO_SQUARE,
    VERTICAL_FLIP,
    WHITE,
)
from chess_snn.games.chess.tables import (
    ZOBRIST_BLACK,
    ZOBRIST_CASTLING,
    ZOBRIST_EP_FILE,
    ZOBRIST_PIECE,
)
from chess_snn.jit import kernel
from chess_snn.types import UInt64Array

_CODE_BIT_1: Final = np.uint64(1)
_CODE_BIT_2: Final = np.uint64(2)


@kernel
def black_to_move(row: UInt64Array) -> bool:
    """Return whether black is to move."""
    return bool(row[META] & BLACK_BIT)


@kernel
def load_view(row: UInt64Array) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """(code0, code1, code2, own): the boards and the side to move's squares, in its view."""
    code0, code1, code2, white = row[CODE0], row[CODE1], row[CODE2], row[WHITE]
    if not black_to_move(row):
        return code0, code1, code2, white
    black = (code0 | code1 | code2) ^ white
    return swap_bytes(code0), swap_bytes(code1), swap_bytes(code2), swap_bytes(black)


@kernel
def store_view(
    row: UInt64Array, black: bool, code0: np.uint64, code1: np.uint64, code2: np.uint64,
    own: np.uint64,
) -> None:
    """Write the boards that :func:`load_view` would read if ``black`` were to move or not."""
    if black:
        code0, code1, code2 = swap_bytes(code0), swap_bytes(code1), swap_bytes(code2)
        own = (code0 | code1 | code2) ^ swap_bytes(own)
    row[CODE0], row[CODE1], row[CODE2], row[WHITE] = code0, code1, code2, own


@kernel
def code_at(
    code0: np.uint64, code1: np.uint64, code2: np.uint64, square: np.uint64
) -> np.uint64:
    """The code of the piece on ``square``, NO_PIECE where there is none."""
    return (
        code0 >> square & ONE
        | (code1 >> square & ONE) << _CODE_BIT_1
        | (code2 >> square & ONE) << _CODE_BIT_2
    )


@kernel
def swap_sides(rights: np.uint64) -> np.uint64:
    """Castling rights (4 bits) as the other side sees them."""
    return ((rights >> CASTLING_PAIR) | (rights << CASTLING_PAIR)) & CASTLING_MASK


@kernel
def castling_view(row: UInt64Array) -> np.uint64:
    """Castling rights (4 bits): own king side, own queen side, theirs likewise."""
    rights: np.uint64 = row[META] >> CASTLING_SHIFT & CASTLING_MASK
    return swap_sides(rights) if black_to_move(row) else rights


@kernel
def ep_view(row: UInt64Array) -> np.uint64:
    """The en passant square in the side to move's view, or NO_SQUARE."""
    square: np.uint64 = row[META] >> EP_SHIFT & EP_MASK
    if square != NO_SQUARE and black_to_move(row):
        return square ^ VERTICAL_FLIP
    return square


@kernel
def halfmove_clock(row: UInt64Array) -> np.uint64:
    """Plies since the last capture or pawn move, at most 255."""
    clock: np.uint64 = row[META] >> CLOCK_SHIFT & CLOCK_MASK
    return clock


@kernel
def compute_key(row: UInt64Array) -> np.uint64:
    """The key of ``row`` uint64[>= 5], whose en passant square can be captured on if it has one."""
    code0, code1, code2, white = row[CODE0], row[CODE1], row[CODE2], row[WHITE]
    key: np.uint64 = ZOBRIST_CASTLING[row[META] >> CASTLING_SHIFT & CASTLING_MASK] ^ _ep_word(row)
    if black_to_move(row):
        key ^= ZOBRIST_BLACK
    occupied = code0 | code1 | code2
    while occupied != ZERO:
        square = count_trailing_zeros(occupied)
        is_black = white >> square & ONE ^ ONE
        key ^= ZOBRIST_PIECE[is_black, code_at(code0, code1, code2, square), square]
        occupied &= occupied - ONE
    return key


@kernel
def key_without_ep(row: UInt64Array) -> np.uint64:
    """The key of a settled row as if nothing could be captured en passant."""
    key: np.uint64 = row[KEY] ^ _ep_word(row)
    return key


@kernel
def _ep_word(row: UInt64Array) -> np.uint64:
    ep = row[META] >> EP_SHIFT & EP_MASK
    if ep == NO_SQUARE:
        return ZERO
    word: np.uint64 = ZOBRIST_EP_FILE[ep & FILE_OF_SQUARE]
    return word
