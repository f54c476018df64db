"""Zobrist keys of state rows: from scratch, and without their en passant part.

A key is the XOR of one word for every piece on its square, for the castling rights, for black to
move, and for the file of a legal en passant capture. Moves update it; only rows that come from
nowhere need it from scratch.
"""

import numpy as np

from chess_snn.games.bits import ONE, ZERO, count_trailing_zeros
from chess_snn.games.chess.layout import (
    CASTLING_MASK,
    CASTLING_SHIFT,
    CODE0,
    CODE1,
    CODE2,
    EP_MASK,
    EP_SHIFT,
    FILE_OF_SQUARE,
    KEY,
    META,
    NO_SQUARE,
    WHITE,
)
from chess_snn.games.chess.rows import black_to_move, code_at
from chess_snn.games.chess.tables import (
    ZOBRIST_BLACK,
    ZOBRIST_CASTLING,
    ZOBRIST_EP_FILE,
    ZOBRIST_PIECE,
)
from chess_snn.jit import kernel
from chess_snn.types import UInt64Array


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
