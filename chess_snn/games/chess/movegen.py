"""Strictly legal move generation, straight to action numbers.

Moves are generated in the side to move's view (:mod:`chess_snn.games.chess.rows`), so pawns go up
and castling happens on rank 1. Legality is decided by sets, never by making a move and looking
back, except for en passant, where two pieces leave a line at once.
"""

from typing import Final

import numpy as np

from chess_snn.games.bits import ONE, ZERO, count_trailing_zeros
from chess_snn.games.chess.actions import ACTION_OF, FIRST_UNDERPROMOTION_PLANE, NUM_PLANES
from chess_snn.games.chess.layout import NO_SQUARE, OWN_KING_SIDE, OWN_QUEEN_SIDE
from chess_snn.games.chess.rows import castling_view, ep_view, load_view
from chess_snn.games.chess.tables import (
    ANTIDIAGONAL,
    BETWEEN,
    DIAGONAL,
    FILE,
    KING_ATTACKS,
    KNIGHT_ATTACKS,
    LINES,
    bishop_attacks,
    pawn_attacks_down,
    pawn_attacks_up,
    rook_attacks,
    up_left,
    up_right,
)
from chess_snn.jit import kernel
from chess_snn.types import Int16Array, UInt64Array

_RANK_3: Final = np.uint64(0xFF0000)
_RANK_8: Final = np.uint64(0xFF00000000000000)
_PUSH: Final = np.uint64(8)
_DOUBLE_PUSH: Final = np.uint64(16)
_CAPTURE_LEFT: Final = np.uint64(7)
_CAPTURE_RIGHT: Final = np.uint64(9)

_E1, _G1, _C1 = np.uint64(4), np.uint64(6), np.uint64(2)
_F1_G1: Final = np.uint64(0x60)
_C1_D1: Final = np.uint64(0x0C)
_B1_C1_D1: Final = np.uint64(0x0E)

_PLANES: Final = np.uint64(NUM_PLANES)
_UNDERPROMOTION: Final = np.uint64(FIRST_UNDERPROMOTION_PLANE)
_THREE: Final = np.uint64(3)


@kernel
def generate(row: UInt64Array, legal: Int16Array) -> tuple[np.uint64, bool, bool]:
    """Write the legal actions of ``row`` uint64[6] into ``legal`` int16[224].

    The en passant square in ``row`` may be any square a pawn has just skipped.

    Returns:
        The number of legal actions, whether the side to move is in check, and whether one of the
        actions is an en passant capture.
    """
    code0, code1, code2, own = load_view(row)
    occupied = code0 | code1 | code2
    theirs = occupied ^ own
    pawns = code0 & ~(code1 | code2)
    knights = code1 & ~(code0 | code2)
    diagonal = code0 & (code1 | code2)
    orthogonal = code2 & ~code1
    kings = code1 & code2
    own_king = kings & own
    king = count_trailing_zeros(own_king)

    # The king is lifted off, so that it cannot hide behind itself when it steps along a line.
    attacked = _attacked(
        occupied ^ own_king, pawns & theirs, knights & theirs, diagonal & theirs,
        orthogonal & theirs, kings & theirs,
    )
    in_check = (attacked & own_king) != ZERO
    num = _emit(legal, ZERO, king, KING_ATTACKS[king] & ~own & ~attacked)

    num, pinned_straight, checkers, check_squares = _meet_snipers(
        legal, num, king, rook_attacks(king, theirs) & orthogonal & theirs, occupied,
        orthogonal, in_check,
    )
    num, pinned_diagonally, slider, line = _meet_snipers(
        legal, num, king, bishop_attacks(king, theirs) & diagonal & theirs, occupied,
        diagonal, in_check,
    )
    leapers = theirs & (KNIGHT_ATTACKS[king] & knights | pawn_attacks_up(own_king) & pawns)
    checkers |= slider | leapers
    check_squares |= line | leapers
    if checkers & (checkers - ONE) != ZERO:
        return num, True, False

    allowed = check_squares if in_check else ~own
    free = own & ~(pinned_straight | pinned_diagonally)
    num = _piece_moves(
        legal, num, knights & free, diagonal & free, orthogonal & free, occupied, allowed
    )
    pushers = pawns & (free | pinned_straight & LINES[king, FILE])
    num = _pawn_pushes(legal, num, pushers, ~occupied, allowed)
    king_diagonals = LINES[king, DIAGONAL] | LINES[king, ANTIDIAGONAL]
    num = _pawn_captures(
        legal, num, pawns & free, pawns & pinned_diagonally, king_diagonals, theirs & allowed
    )

    num_before_ep = num
    ep = ep_view(row)
    if ep != NO_SQUARE:
        num = _en_passant(
            legal, num, ep, king, pawns & own, occupied, diagonal & theirs, orthogonal & theirs
        )
    ep_is_legal = num != num_before_ep
    if not in_check:
        num = _castling(legal, num, castling_view(row), occupied, attacked)
    return num, in_check, ep_is_legal


@kernel
def _emit(legal: Int16Array, num: np.uint64, origin: np.uint64, targets: np.uint64) -> np.uint64:
    while targets != ZERO:
        legal[num] = ACTION_OF[origin, count_trailing_zeros(targets)]
        num += ONE
        targets &= targets - ONE
    return num


@kernel
def _attacked(
    occupied: np.uint64, pawns: np.uint64, knights: np.uint64, diagonal: np.uint64,
    orthogonal: np.uint64, king: np.uint64,
) -> np.uint64:
    """The squares that these pieces of the opponent attack."""
    attacked: np.uint64 = pawn_attacks_down(pawns) | KING_ATTACKS[count_trailing_zeros(king)]
    while knights != ZERO:
        attacked |= KNIGHT_ATTACKS[count_trailing_zeros(knights)]
        knights &= knights - ONE
    while diagonal != ZERO:
        attacked |= bishop_attacks(count_trailing_zeros(diagonal), occupied)
        diagonal &= diagonal - ONE
    while orthogonal != ZERO:
        attacked |= rook_attacks(count_trailing_zeros(orthogonal), occupied)
        orthogonal &= orthogonal - ONE
    return attacked


@kernel
def _meet_snipers(
    legal: Int16Array, num: np.uint64, king: np.uint64, snipers: np.uint64, occupied: np.uint64,
    sliders: np.uint64, in_check: bool,
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Sort out the sliders that see the king, or would if our own pieces were not there.

    A pinned piece that slides the same way (it is in ``sliders``) moves along its pin, and its
    moves are emitted here; in check it cannot move at all, for its pin and the check are
    different lines that meet only in the king.

    Returns:
        The new number of actions, pinned pieces, checking sliders, squares that stop them.
    """
    pinned = checkers = check_squares = ZERO
    while snipers != ZERO:
        sniper = count_trailing_zeros(snipers)
        between = BETWEEN[king, sniper]
        line = between | ONE << sniper
        blockers = between & occupied
        if blockers == ZERO:
            checkers |= ONE << sniper
            check_squares |= line
        elif blockers & (blockers - ONE) == ZERO:
            pinned |= blockers
            if blockers & sliders != ZERO and not in_check:
                num = _emit(legal, num, count_trailing_zeros(blockers), line ^ blockers)
        snipers &= snipers - ONE
    return num, pinned, checkers, check_squares


@kernel
def _piece_moves(
    legal: Int16Array, num: np.uint64, knights: np.uint64, diagonal: np.uint64,
    orthogonal: np.uint64, occupied: np.uint64, allowed: np.uint64,
) -> np.uint64:
    while knights != ZERO:
        square = count_trailing_zeros(knights)
        num = _emit(legal, num, square, KNIGHT_ATTACKS[square] & allowed)
        knights &= knights - ONE
    while diagonal != ZERO:
        square = count_trailing_zeros(diagonal)
        num = _emit(legal, num, square, bishop_attacks(square, occupied) & allowed)
        diagonal &= diagonal - ONE
    while orthogonal != ZERO:
        square = count_trailing_zeros(orthogonal)
        num = _emit(legal, num, square, rook_attacks(square, occupied) & allowed)
        orthogonal &= orthogonal - ONE
    return num


@kernel
def _emit_pawns(
    legal: Int16Array, num: np.uint64, targets: np.uint64, step: np.uint64
) -> np.uint64:
    """Pawn moves to ``targets`` from ``step`` squares below each, promotions included."""
    quiet = targets & ~_RANK_8
    while quiet != ZERO:
        target = count_trailing_zeros(quiet)
        legal[num] = ACTION_OF[target - step, target]
        num += ONE
        quiet &= quiet - ONE
    last = targets & _RANK_8
    while last != ZERO:
        target = count_trailing_zeros(last)
        origin = target - step
        to_knight = origin * _PLANES + _UNDERPROMOTION + (step - _CAPTURE_LEFT)
        legal[num] = ACTION_OF[origin, target]
        legal[num + ONE] = to_knight
        legal[num + ONE + ONE] = to_knight + _THREE
        legal[num + _THREE] = to_knight + _THREE + _THREE
        num += _THREE + ONE
        last &= last - ONE
    return num


@kernel
def _pawn_pushes(
    legal: Int16Array, num: np.uint64, pawns: np.uint64, empty: np.uint64, allowed: np.uint64
) -> np.uint64:
    single = (pawns << _PUSH) & empty
    double = ((single & _RANK_3) << _PUSH) & empty
    num = _emit_pawns(legal, num, single & allowed, _PUSH)
    return _emit_pawns(legal, num, double & allowed, _DOUBLE_PUSH)


@kernel
def _pawn_captures(
    legal: Int16Array, num: np.uint64, free: np.uint64, pinned: np.uint64,
    king_diagonals: np.uint64, capturable: np.uint64,
) -> np.uint64:
    """Captures by free pawns, and by diagonally pinned ones as long as they stay on the line.

    A pinned pawn's capture that lands on any diagonal through the king is on its own pin.
    """
    left = up_left(free) | up_left(pinned) & king_diagonals
    right = up_right(free) | up_right(pinned) & king_diagonals
    num = _emit_pawns(legal, num, left & capturable, _CAPTURE_LEFT)
    return _emit_pawns(legal, num, right & capturable, _CAPTURE_RIGHT)


@kernel
def _en_passant(
    legal: Int16Array, num: np.uint64, ep: np.uint64, king: np.uint64, pawns: np.uint64,
    occupied: np.uint64, diagonal: np.uint64, orthogonal: np.uint64,
) -> np.uint64:
    """En passant captures that leave no slider (``diagonal``, ``orthogonal``) on the king.

    No other check can remain: a double push checks by the pawn itself, which is captured, or
    uncovers a slider.
    """
    target = ONE << ep
    captured = target >> _PUSH
    capturers = pawn_attacks_down(target) & pawns
    while capturers != ZERO:
        capturer = capturers & (ZERO - capturers)
        after = (occupied ^ capturer ^ captured) | target
        seen = rook_attacks(king, after) & orthogonal | bishop_attacks(king, after) & diagonal
        if seen == ZERO:
            legal[num] = ACTION_OF[count_trailing_zeros(capturer), ep]
            num += ONE
        capturers &= capturers - ONE
    return num


@kernel
def _castling(
    legal: Int16Array, num: np.uint64, rights: np.uint64, occupied: np.uint64,
    attacked: np.uint64,
) -> np.uint64:
    """Castling of a king that is not in check: the way is clear, and safe for the king."""
    if rights & OWN_KING_SIDE != ZERO and (occupied | attacked) & _F1_G1 == ZERO:
        legal[num] = ACTION_OF[_E1, _G1]
        num += ONE
    if (
        rights & OWN_QUEEN_SIDE != ZERO
        and occupied & _B1_C1_D1 == ZERO
        and attacked & _C1_D1 == ZERO
    ):
        legal[num] = ACTION_OF[_E1, _C1]
        num += ONE
    return num
