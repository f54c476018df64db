"""Meaning of an action, and making it on a state row, whose Zobrist key is kept on the way.

Squares are a view of the side to move (:mod:`chess_snn.games.chess.rows`).
"""

from typing import Final

import numpy as np

from chess_snn.games.bits import ONE, ZERO
from chess_snn.games.chess.actions import (
    DECODED_ACTION,
    ORIGIN_MASK,
    TARGET_MASK,
    TARGET_SHIFT,
    UNDERPROMOTION_SHIFT,
)
from chess_snn.games.chess.layout import (
    BLACK_BIT,
    CASTLING_MASK,
    CASTLING_SHIFT,
    CLOCK_MASK,
    CLOCK_SHIFT,
    EP_SHIFT,
    FULLMOVE_MASK,
    FULLMOVE_SHIFT,
    KEY,
    KING,
    META,
    NO_PIECE,
    NO_SQUARE,
    PAWN,
    QUEEN,
    ROOK,
    VERTICAL_FLIP,
)
from chess_snn.games.chess.rows import (
    black_to_move,
    castling_view,
    code_at,
    ep_view,
    halfmove_clock,
    key_without_ep,
    load_view,
    store_view,
    swap_sides,
)
from chess_snn.games.chess.tables import (
    CASTLING_KEPT,
    ZOBRIST_BLACK,
    ZOBRIST_CASTLING,
    ZOBRIST_PIECE,
)
from chess_snn.jit import kernel
from chess_snn.types import UInt64Array

_UP: Final = np.uint64(8)
_DOUBLE_PUSH: Final = np.uint64(16)
_CASTLING_STEP: Final = np.uint64(2)
_FIRST_OF_RANK_8: Final = np.uint64(56)
_CODE_BIT_1: Final = np.uint64(1)
_CODE_BIT_2: Final = np.uint64(2)

_H1, _F1, _A1, _D1 = np.uint64(7), np.uint64(5), np.uint64(0), np.uint64(3)


@kernel
def decode(action: int) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Origin, target, and the piece of an underpromotion or NO_PIECE, of an action on the board."""
    decoded = np.uint64(DECODED_ACTION[action])
    target = (decoded >> TARGET_SHIFT) & TARGET_MASK
    return decoded & ORIGIN_MASK, target, decoded >> UNDERPROMOTION_SHIFT


@kernel
def promotion(moved: np.uint64, target: np.uint64, underpromotion: np.uint64) -> np.uint64:
    """The piece that ``moved`` becomes on ``target``, NO_PIECE where nothing is promoted."""
    if moved != PAWN or target < _FIRST_OF_RANK_8:
        return NO_PIECE
    return QUEEN if underpromotion == NO_PIECE else underpromotion


@kernel
def is_castling(moved: np.uint64, origin: np.uint64, target: np.uint64) -> bool:
    """Return whether ``moved`` is a king that castles; to the h-file if ``target`` is larger."""
    if moved != KING:
        return False
    return bool(origin + _CASTLING_STEP == target or target + _CASTLING_STEP == origin)


@kernel
def make_move(before: UInt64Array, after: UInt64Array, action: int) -> None:
    """Write into ``after`` uint64[6] the position that a legal ``action`` leads to.

    ``before`` and ``after`` may be the same row. The result is not settled yet: META names the
    square that a double push skipped whether or not it can be captured on, KEY knows nothing of
    en passant, and the repetition count is 0.
    """
    code0, code1, code2, own = load_view(before)
    black = before[META] & BLACK_BIT
    flip = VERTICAL_FLIP if black != ZERO else ZERO
    origin, target, underpromotion = decode(action)
    moved = code_at(code0, code1, code2, origin)
    captured = code_at(code0, code1, code2, target)
    promoted = promotion(moved, target, underpromotion)
    placed = moved if promoted == NO_PIECE else promoted

    key = (
        key_without_ep(before)
        ^ ZOBRIST_PIECE[black, moved, origin ^ flip]
        ^ ZOBRIST_PIECE[black, placed, target ^ flip]
        ^ ZOBRIST_PIECE[black ^ ONE, captured, target ^ flip]
    )
    emptied = ONE << origin | ONE << target
    code0 = code0 & ~emptied | (placed & ONE) << target
    code1 = code1 & ~emptied | (placed >> _CODE_BIT_1 & ONE) << target
    code2 = code2 & ~emptied | (placed >> _CODE_BIT_2) << target
    own = own & ~emptied | ONE << target

    ep = NO_SQUARE
    if moved == PAWN:
        if target == ep_view(before):
            victim = target - _UP
            code0 ^= ONE << victim
            key ^= ZOBRIST_PIECE[black ^ ONE, PAWN, victim ^ flip]
        elif target - origin == _DOUBLE_PUSH:
            ep = (origin + _UP) ^ flip
    elif is_castling(moved, origin, target):
        rook_from, rook_to = _castling_rook(origin, target)
        rook_path = ONE << rook_from ^ ONE << rook_to
        code2 ^= rook_path
        own ^= rook_path
        key ^= (
            ZOBRIST_PIECE[black, ROOK, rook_from ^ flip]
            ^ ZOBRIST_PIECE[black, ROOK, rook_to ^ flip]
        )

    store_view(after, black != ZERO, code0, code1, code2, own)
    is_reversible = moved != PAWN and captured == NO_PIECE
    _store_meta_and_key(before, after, key, origin, target, ep, is_reversible)


@kernel
def _castling_rook(origin: np.uint64, target: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Squares that the rook comes from and goes to when the king castles so."""
    if target > origin:
        return _H1, _F1
    return _A1, _D1


@kernel
def _store_meta_and_key(
    before: UInt64Array, after: UInt64Array, key: np.uint64, origin: np.uint64,
    target: np.uint64, ep: np.uint64, is_reversible: bool,
) -> None:
    """Everything of META and KEY but the boards' part; ``ep`` is absolute, squares are a view."""
    meta = before[META]
    black = black_to_move(before)
    rights = castling_view(before) & CASTLING_KEPT[origin] & CASTLING_KEPT[target]
    if black:
        rights = swap_sides(rights)
    clock = min(halfmove_clock(before) + ONE, CLOCK_MASK) if is_reversible else ZERO
    fullmove = meta >> FULLMOVE_SHIFT & FULLMOVE_MASK
    if black:
        fullmove = min(fullmove + ONE, FULLMOVE_MASK)
    old_rights = meta >> CASTLING_SHIFT & CASTLING_MASK
    after[KEY] = key ^ ZOBRIST_CASTLING[old_rights] ^ ZOBRIST_CASTLING[rights] ^ ZOBRIST_BLACK
    after[META] = (
        (meta & BLACK_BIT ^ BLACK_BIT)
        | rights << CASTLING_SHIFT
        | ep << EP_SHIFT
        | clock << CLOCK_SHIFT
        | fullmove << FULLMOVE_SHIFT
    )
