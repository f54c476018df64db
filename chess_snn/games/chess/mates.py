"""Mate in one, found by the rules: the moves that may give check are made, the others need not be.

A move checks by the piece that arrives, or by a slider behind the piece that leaves. Promotion, en
passant and castling change more than two squares or a piece's kind, and are always tried.
"""

import numpy as np

from chess_snn.games.base import NO_ACTION
from chess_snn.games.bits import ONE, ZERO, count_trailing_zeros
from chess_snn.games.chess.layout import (
    BISHOP,
    KING,
    KNIGHT,
    MAX_LEGAL,
    NO_PIECE,
    NO_SQUARE,
    PAWN,
    QUEEN,
    ROOK,
    STATE_WORDS,
)
from chess_snn.games.chess.movegen import generate
from chess_snn.games.chess.moves import decode, is_castling, make_move, promotion
from chess_snn.games.chess.rows import code_at, ep_view, load_view
from chess_snn.games.chess.tables import (
    BETWEEN,
    KNIGHT_ATTACKS,
    bishop_attacks,
    pawn_attacks_down,
    rook_attacks,
)
from chess_snn.jit import kernel
from chess_snn.types import Int16Array, Int32Array, UInt64Array


@kernel
def find_mates(
    states: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array, mates: Int16Array
) -> None:
    """Fill ``mates`` int16[B] with the first action of each list that mates, or ``NO_ACTION``.

    ``states`` uint64[B, 6] are settled, ``legal_actions`` int16[B, M] and ``num_legal`` int32[B]
    theirs.
    """
    after = np.empty(STATE_WORDS, np.uint64)
    replies = np.empty(MAX_LEGAL, np.int16)
    for b in range(len(states)):
        mates[b] = _find_mate(states[b], legal_actions[b], num_legal[b], after, replies)


@kernel
def _find_mate(
    row: UInt64Array, legal: Int16Array, num_legal: int, after: UInt64Array, replies: Int16Array
) -> int:
    code0, code1, code2, own = load_view(row)
    occupied = code0 | code1 | code2
    kings = code1 & code2
    king = count_trailing_zeros(kings & ~own)
    straight, diagonal = rook_attacks(king, occupied), bishop_attacks(king, occupied)
    by_knight, by_pawn = KNIGHT_ATTACKS[king], pawn_attacks_down(ONE << king)
    uncoverers = _uncoverers(
        king, own, occupied, code0 & (code1 | code2) & own, code2 & ~code1 & own
    )
    ep = ep_view(row)
    for j in range(num_legal):
        origin, target, underpromotion = decode(legal[j])
        arrives = ONE << target
        moved = code_at(code0, code1, code2, origin)
        may_check = uncoverers & ONE << origin != ZERO
        if moved == PAWN:
            promotes = promotion(moved, target, underpromotion) != NO_PIECE
            is_special = promotes or (ep != NO_SQUARE and target == ep)
            may_check |= is_special or by_pawn & arrives != ZERO
        elif moved == KING:
            may_check |= is_castling(moved, origin, target)
        elif moved == KNIGHT:
            may_check |= by_knight & arrives != ZERO
        else:
            if moved in (ROOK, QUEEN):
                may_check |= straight & arrives != ZERO
            if moved in (BISHOP, QUEEN):
                may_check |= diagonal & arrives != ZERO
        if may_check:
            make_move(row, after, legal[j])
            num_replies, in_check, _ = generate(after, replies)
            if in_check and num_replies == ZERO:
                return int(legal[j])
    return NO_ACTION


@kernel
def _uncoverers(
    king: np.uint64, own: np.uint64, occupied: np.uint64, diagonal: np.uint64,
    orthogonal: np.uint64,
) -> np.uint64:
    """Own pieces that alone stand between the enemy's king and an own slider."""
    theirs = occupied ^ own
    snipers = (
        rook_attacks(king, theirs) & orthogonal | bishop_attacks(king, theirs) & diagonal
    )
    uncoverers = ZERO
    while snipers != ZERO:
        between = BETWEEN[king, count_trailing_zeros(snipers)] & occupied
        if between & (between - ONE) == ZERO:
            uncoverers |= between & own
        snipers &= snipers - ONE
    return uncoverers
