"""Standard algebraic notation against the legal list of a position, in both directions.

A move that was read is one *word*, an ``int``, in absolute squares; what it leaves open is 0::

    bits  0-5    square it goes to
    bits  6-8    piece code, 0 where only squares are named (e2e4)
    bits  9-12   file it comes from, 1 to 8
    bits 13-16   rank it comes from, 1 to 8
    bits 17-19   piece code of the promotion
    bits 20-21   KING_SIDE or QUEEN_SIDE castling; everything else is then 0
    bit  22      a null move, which is never legal

What is written is the export format of the PGN standard (1994, section 8.2.3), check marks apart:
those follow from the next position.
"""

from typing import Final

import numpy as np

from chess_snn.games.bits import ONE, ZERO
from chess_snn.games.chess.actions import ACTION_OF
from chess_snn.games.chess.layout import (
    FILE_OF_SQUARE,
    KING,
    NO_PIECE,
    PAWN,
    VERTICAL_FLIP,
)
from chess_snn.games.chess.moves import decode, is_castling, promotion
from chess_snn.games.chess.rows import black_to_move, code_at, load_view
from chess_snn.jit import copy_row, kernel
from chess_snn.types import Int16Array, UInt8Array, UInt64Array

PIECE_SHIFT: Final = 6
FILE_SHIFT: Final = 9
RANK_SHIFT: Final = 13
PROMOTION_SHIFT: Final = 17
CASTLING_SHIFT: Final = 20
KING_SIDE: Final = 1
QUEEN_SIDE: Final = 2
NULL_MOVE: Final = 1 << 22

ILLEGAL: Final = -1
"""Instead of an action: no legal move fits."""
AMBIGUOUS: Final = -2
"""Instead of an action: several legal moves fit."""

LONGEST_SAN: Final = 8
"""Bytes of the longest move, such as ``Qa1xb2`` or ``axb8=Q``, with its check mark."""

_SQUARE_MASK: Final = 63
_PIECE_MASK: Final = 7
_LINE_MASK: Final = 15
_CASTLING_MASK: Final = 3
_FILE_A: Final = np.uint64(0x0101010101010101)
_RANK_1: Final = np.uint64(0xFF)
_RANK_SHIFT: Final = np.uint64(3)
_E1: Final = np.uint64(4)
_KING_SIDE_ACTION: Final = int(ACTION_OF[4, 6])
_QUEEN_SIDE_ACTION: Final = int(ACTION_OF[4, 2])

_LETTERS: Final = np.frombuffer(b" PNBRQK", dtype=np.uint8)
"""Letter of each piece code."""
_LOWER_A, _DIGIT_1 = np.uint8(ord("a")), np.uint8(ord("1"))
_CAPTURE, _PROMOTES = np.uint8(ord("x")), np.uint8(ord("="))
_CASTLES: Final = np.frombuffer(b"O-O-O", dtype=np.uint8)
_KING_SIDE_LENGTH: Final = 3


@kernel
def find_action(row: UInt64Array, legal: Int16Array, num_legal: int, word: int) -> int:
    """The one action among the first ``num_legal`` of ``legal`` int16[224] that ``word`` means.

    Args:
        row: uint64[>= 5], the position.
        legal: int16[224], its legal actions.
        num_legal: how many they are.
        word: a move that was read.

    Returns:
        The action; ILLEGAL or AMBIGUOUS where it is not exactly one.
    """
    if word & NULL_MOVE:
        return ILLEGAL
    code0, code1, code2, own = load_view(row)
    castling = (word >> CASTLING_SHIFT) & _CASTLING_MASK
    if castling:
        if code_at(code0, code1, code2, _E1) != KING or own >> _E1 & ONE == ZERO:
            return ILLEGAL
        wanted = _KING_SIDE_ACTION if castling == KING_SIDE else _QUEEN_SIDE_ACTION
        return wanted if _is_listed(legal, num_legal, wanted) else ILLEGAL
    flip = VERTICAL_FLIP if black_to_move(row) else ZERO
    target = np.uint64(word & _SQUARE_MASK) ^ flip
    piece = np.uint64((word >> PIECE_SHIFT) & _PIECE_MASK)
    wanted_promotion = np.uint64((word >> PROMOTION_SHIFT) & _PIECE_MASK)
    origins = own & _origins(word, flip)
    found = ILLEGAL
    for i in range(num_legal):
        origin, reached, underpromotion = decode(legal[i])
        if reached != target or origins >> origin & ONE == ZERO:
            continue
        moved = code_at(code0, code1, code2, origin)
        if piece != NO_PIECE and (moved != piece or is_castling(moved, origin, target)):
            continue
        if promotion(moved, target, underpromotion) != wanted_promotion:
            continue
        if found != ILLEGAL:
            return AMBIGUOUS
        found = int(legal[i])
    return found


@kernel
def _is_listed(legal: Int16Array, num_legal: int, action: int) -> bool:
    is_listed = False
    for i in range(num_legal):
        is_listed |= legal[i] == action
    return is_listed


@kernel
def _origins(word: int, flip: np.uint64) -> np.uint64:
    """The squares that ``word`` allows as origin, in the side to move's view."""
    file = (word >> FILE_SHIFT) & _LINE_MASK
    rank = (word >> RANK_SHIFT) & _LINE_MASK
    squares = ~ZERO
    if file:
        squares &= _FILE_A << np.uint64(file - 1)
    if rank:
        first = np.uint64((rank - 1) * 8) ^ flip
        squares &= _RANK_1 << first
    return squares


@kernel
def write_san(
    row: UInt64Array, legal: Int16Array, num_legal: int, action: int, buffer: UInt8Array, at: int
) -> int:
    """Write ``action``, any number, at ``row`` uint64[>= 5] into ``buffer`` from ``at`` on.

    Returns:
        Where it ends, at most LONGEST_SAN behind ``at``; ``at`` where the action is not in the
        first ``num_legal`` of ``legal`` int16[224].
    """
    if not _is_listed(legal, num_legal, action):
        return at
    code0, code1, code2, _ = load_view(row)
    flip = VERTICAL_FLIP if black_to_move(row) else ZERO
    origin, target, underpromotion = decode(action)
    moved = code_at(code0, code1, code2, origin)
    same_file = same_rank = rivals = False
    for i in range(num_legal):
        rival, reached, _ = decode(legal[i])
        if reached != target or rival == origin:
            continue
        if code_at(code0, code1, code2, rival) == moved:
            rivals = True
            same_file |= rival & FILE_OF_SQUARE == origin & FILE_OF_SQUARE
            same_rank |= rival >> _RANK_SHIFT == origin >> _RANK_SHIFT
    if is_castling(moved, origin, target):
        length = _KING_SIDE_LENGTH if target > origin else len(_CASTLES)
        copy_row(_CASTLES[:length], buffer[at:])
        return at + length
    is_pawn = moved == PAWN
    leaves_file = origin & FILE_OF_SQUARE != target & FILE_OF_SQUARE
    is_capture = (code0 | code1 | code2) >> target & ONE != ZERO or (is_pawn and leaves_file)
    if not is_pawn:
        buffer[at] = _LETTERS[moved]
        at += 1
    # The file where it tells the rivals apart, else the rank where that does, else both.
    if (is_pawn and leaves_file) or (not is_pawn and rivals and (not same_file or same_rank)):
        buffer[at] = _LOWER_A + np.uint8(origin & FILE_OF_SQUARE)
        at += 1
    if not is_pawn and same_file:
        buffer[at] = _DIGIT_1 + np.uint8((origin ^ flip) >> _RANK_SHIFT)
        at += 1
    if is_capture:
        buffer[at] = _CAPTURE
        at += 1
    buffer[at] = _LOWER_A + np.uint8(target & FILE_OF_SQUARE)
    buffer[at + 1] = _DIGIT_1 + np.uint8((target ^ flip) >> _RANK_SHIFT)
    at += 2
    promoted = promotion(moved, target, underpromotion)
    if promoted != NO_PIECE:
        buffer[at] = _PROMOTES
        buffer[at + 1] = _LETTERS[promoted]
        at += 2
    return at
