"""King and one piece against king, solved by code that shares nothing with the library.

White has the piece. Squares are 0 to 63, a1 is 0.
"""

import functools

import numba
import numpy as np

PAWN, ROOK, QUEEN = range(3)
WHITE, BLACK = range(2)


@numba.njit
def _distance(a, b):
    return max(abs(a // 8 - b // 8), abs(a % 8 - b % 8))


@numba.njit
def _sees(kind, square, target, blocker):
    """Whether the piece on ``square`` attacks ``target``; the white king stands on ``blocker``."""
    ranks, files = target // 8 - square // 8, target % 8 - square % 8
    if kind == PAWN:
        return ranks == 1 and abs(files) == 1
    straight, diagonal = (ranks == 0) != (files == 0), ranks != 0 and abs(ranks) == abs(files)
    if not (straight or (kind == QUEEN and diagonal)):
        return False
    step = 8 * np.sign(ranks) + np.sign(files)
    square += step
    while square != target:
        if square == blocker:
            return False
        square += step
    return True


@numba.njit
def _can_occur(kind, turn, king, enemy, square):
    if square in (king, enemy) or _distance(king, enemy) < 2:
        return False
    if kind == PAWN and square // 8 in (0, 7):
        return False
    return turn == BLACK or not _sees(kind, square, enemy, king)


@numba.njit
def _king_wins(won, kind, king, enemy, square):
    for target in range(64):
        if _distance(king, target) == 1 and won[kind, BLACK, target, enemy, square]:
            return True
    return False


@numba.njit
def _piece_wins(won, kind, king, enemy, square):
    for target in range(64):
        # A line is open where neither king stands in it.
        is_open = _sees(kind, square, target, king) and _sees(kind, square, target, enemy)
        if is_open and won[kind, BLACK, king, enemy, target]:
            return True
    return False


@numba.njit
def _pawn_wins(won, king, enemy, square):
    target, double = square + 8, square + 16
    if target in (king, enemy):
        return False
    if target // 8 == 7:
        return won[QUEEN, BLACK, king, enemy, target] or won[ROOK, BLACK, king, enemy, target]
    if won[PAWN, BLACK, king, enemy, target]:
        return True
    may_double = square // 8 == 1 and double not in (king, enemy)
    return may_double and won[PAWN, BLACK, king, enemy, double]


@numba.njit
def _white_wins(won, kind, king, enemy, square):
    """Whether one of white's moves leads to a position that is already won."""
    if _king_wins(won, kind, king, enemy, square):
        return True
    if kind == PAWN:
        return _pawn_wins(won, king, enemy, square)
    return _piece_wins(won, kind, king, enemy, square)


@numba.njit
def _black_loses(won, kind, king, enemy, square):
    """Whether every one of black's moves is already lost; without a move, whether it is mate."""
    has_move = False
    for target in range(64):
        if _distance(enemy, target) != 1 or _distance(king, target) < 2:
            continue
        if target == square:
            return False  # takes the undefended piece: a draw
        if not _sees(kind, square, target, king):
            has_move = True
            if not won[kind, WHITE, king, target, square]:
                return False
    return has_move or _sees(kind, square, enemy, king)


@numba.njit
def _sweep(won):
    """One pass over all positions; the number of positions newly found to be won."""
    found = 0
    for kind in range(3):
        for king in range(64):
            for enemy in range(64):
                for square in range(64):
                    for turn in range(2):
                        if won[kind, turn, king, enemy, square]:
                            continue
                        if not _can_occur(kind, turn, king, enemy, square):
                            continue
                        if turn == WHITE:
                            wins = _white_wins(won, kind, king, enemy, square)
                        else:
                            wins = _black_loses(won, kind, king, enemy, square)
                        won[kind, turn, king, enemy, square] = wins
                        found += wins
    return found


@functools.cache
def solve():
    """bool[3, 2, 64, 64, 64]: whether white wins, by piece, turn, both kings, the piece's square.

    False where the position cannot occur.
    """
    won = np.zeros((3, 2, 64, 64, 64), dtype=np.bool_)
    while _sweep(won):
        pass
    return won
