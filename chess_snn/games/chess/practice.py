"""Won endings against a bare king, to practise on: drawn at random from a seed.

Of 16 positions, 4 have a queen, 3 a rook, 7 two of them, 2 a pawn. Two pieces mate by themselves,
even by chance, and stalemate as easily: a player who can do that reaches the endings where the
king must help. Either colour is the strong side and either side is to move. No piece can be taken,
and a pawn wins by one of two textbook rules:

- it outruns the king (rule of the square): the weak king is farther from the promotion square than
  the pawn, counting the move, and the strong king does not stand in the way; or
- its king leads (key squares): two ranks ahead of a pawn that is not on the a- or h-file, on its
  file or the next, with the weak king more than two squares from the pawn.

Both rules are sound, not complete; the tests hold what is drawn against a solver of these endings.
"""

from typing import Final

import numpy as np

from chess_snn.games.bits import ONE, ZERO
from chess_snn.games.chess.layout import (
    BLACK_BIT,
    EP_SHIFT,
    FILE_OF_SQUARE,
    FULLMOVE_SHIFT,
    KEY,
    MAX_LEGAL,
    META,
    NO_PIECE,
    NO_SQUARE,
    PAWN,
    QUEEN,
    ROOK,
)
from chess_snn.games.chess.movegen import generate
from chess_snn.games.chess.rows import compute_key, store_view
from chess_snn.games.chess.tables import KING_ATTACKS, piece_attacks
from chess_snn.jit import kernel
from chess_snn.rng import random_word
from chess_snn.types import UInt64Array

_SIXTEENTHS: Final = (4, 3, 2, 3, 2, 1, 1)
_FIRST: Final = np.repeat(np.array([QUEEN, ROOK, QUEEN, QUEEN, ROOK, PAWN, PAWN]), _SIXTEENTHS)
_SECOND: Final = np.repeat(
    np.array([NO_PIECE, NO_PIECE, QUEEN, ROOK, ROOK, NO_PIECE, NO_PIECE]), _SIXTEENTHS
)
_KING_LEADS: Final = np.repeat(np.arange(len(_SIXTEENTHS)) == len(_SIXTEENTHS) - 1, _SIXTEENTHS)
"""Pieces of the strong side, and which of the two rules a pawn wins by, of each sixteenth."""
_ENDING_MASK: Final = np.uint64(15)

# Away from the counters of random play, so that a game may use its key for both.
_FIRST_COUNTER: Final = np.uint64(1) << np.uint64(34)
_SQUARE_MASK: Final = np.uint64(63)
_SECOND_SQUARE, _THIRD_SQUARE, _FOURTH_SQUARE = np.uint64(6), np.uint64(12), np.uint64(18)
_STRONG_IS_BLACK: Final = np.uint64(24)
_WEAK_TO_MOVE: Final = np.uint64(25)
"""First bit, in a random word, of those that decide it."""

_RANK_SHIFT: Final = np.uint64(3)
_PAWN_RANKS: Final = np.uint64(0x00FFFFFFFFFFFF00)
_OUTER_FILES: Final = np.uint64(0x8181818181818181)
_RANK_8: Final = np.uint64(56)
_BIT_1, _BIT_2 = np.uint64(1), np.uint64(2)


@kernel
def write_practice_states(seeds: UInt64Array, states: UInt64Array) -> None:
    """Fill ``states`` uint64[n, 6]; row i depends on ``seeds[i]`` of uint64[n] alone.

    The rows are settled, at halfmove clock 0 and move 1. Arrangements are drawn until one fits.
    """
    legal = np.empty(MAX_LEGAL, dtype=np.int16)
    for i in range(len(seeds)):
        counter = _FIRST_COUNTER
        ending = random_word(seeds[i], counter) & _ENDING_MASK
        num_legal = ZERO
        while num_legal == ZERO:
            counter += ONE
            if _arrange(states[i], ending, random_word(seeds[i], counter)):
                num_legal, _, _ = generate(states[i], legal)
        states[i, KEY] = compute_key(states[i])


@kernel
def _arrange(row: UInt64Array, ending: np.uint64, word: np.uint64) -> bool:
    """Put the pieces where ``word`` says, unless that position is invalid; KEY is left out.

    Squares are the strong side's view, so its pawn goes up. A stalemate may pass.
    """
    king = word & _SQUARE_MASK
    enemy = word >> _SECOND_SQUARE & _SQUARE_MASK
    square = word >> _THIRD_SQUARE & _SQUARE_MASK
    other = word >> _FOURTH_SQUARE & _SQUARE_MASK
    strong_is_black = word >> _STRONG_IS_BLACK & ONE != ZERO
    weak_to_move = word >> _WEAK_TO_MOVE & ONE != ZERO
    first, second = _FIRST[ending], _SECOND[ending]
    if not _is_sound(first, second, king, enemy, square, other, weak_to_move):
        return False
    if first == PAWN and not _pawn_wins(king, enemy, square, weak_to_move, _KING_LEADS[ending]):
        return False

    kings = ONE << king | ONE << enemy
    code0 = (first & ONE) << square | (second & ONE) << other
    code1 = kings | (first >> _BIT_1 & ONE) << square | (second >> _BIT_1 & ONE) << other
    code2 = kings | (first >> _BIT_2) << square | (second >> _BIT_2) << other
    own = (code0 | code1 | code2) ^ ONE << enemy
    store_view(row, strong_is_black, code0, code1, code2, own)
    row[META] = NO_SQUARE << EP_SHIFT | ONE << FULLMOVE_SHIFT
    if strong_is_black != weak_to_move:
        row[META] |= BLACK_BIT
    return True


@kernel
def _is_sound(
    first: np.uint64, second: np.uint64, king: np.uint64, enemy: np.uint64, square: np.uint64,
    other: np.uint64, weak_to_move: bool,
) -> bool:
    """Return whether the position can occur and no piece of the strong side can be taken.

    Double checks, which not every pair of pieces can give, are left out.
    """
    pieces = ONE << square
    if second != NO_PIECE:
        if other == square:
            return False
        pieces |= ONE << other
    kings = ONE << king | ONE << enemy
    if kings & pieces != ZERO or _distance(king, enemy) <= 1:
        return False
    if first == PAWN and pieces & _PAWN_RANKS == ZERO:
        return False
    occupied = kings | pieces
    target = ONE << enemy
    num_checks = 0
    if piece_attacks(first, square, occupied) & target != ZERO:
        num_checks += 1
    if piece_attacks(second, other, occupied) & target != ZERO:
        num_checks += 1
    if not weak_to_move:
        return num_checks == 0
    undefended = pieces & ~KING_ATTACKS[king]
    return bool(num_checks <= 1 and KING_ATTACKS[enemy] & undefended == ZERO)


@kernel
def _pawn_wins(
    king: np.uint64, enemy: np.uint64, pawn: np.uint64, weak_to_move: bool, king_leads: bool
) -> bool:
    """Return whether the pawn wins by its king, if ``king_leads``, or by running."""
    if king_leads:
        has_key_square = _ranks_up(pawn, king) == 2 and _files_apart(pawn, king) <= 1
        on_outer_file = ONE << pawn & _OUTER_FILES != ZERO
        return bool(has_key_square and not on_outer_file and _distance(enemy, pawn) > 2)
    is_blocked = _files_apart(pawn, king) == 0 and _ranks_up(pawn, king) > 0
    goal = _RANK_8 | pawn & FILE_OF_SQUARE
    weak_lead = 1 if weak_to_move else 0
    return bool(not is_blocked and _distance(enemy, goal) > _ranks_up(pawn, goal) + weak_lead)


@kernel
def _ranks_up(square: np.uint64, target: np.uint64) -> np.int64:
    return np.int64(target >> _RANK_SHIFT) - np.int64(square >> _RANK_SHIFT)


@kernel
def _files_apart(square: np.uint64, target: np.uint64) -> np.int64:
    return abs(np.int64(target & FILE_OF_SQUARE) - np.int64(square & FILE_OF_SQUARE))


@kernel
def _distance(square: np.uint64, target: np.uint64) -> np.int64:
    """King moves between two squares."""
    return max(abs(_ranks_up(square, target)), _files_apart(square, target))
