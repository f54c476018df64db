"""The state row of chess: which word holds what, and which bits of META mean what.

A position is six ``uint64`` words. Bit ``s`` of a board word is square ``s``; a1 is 0, b1 is 1,
h8 is 63::

    8 | 56 57 58 59 60 61 62 63
    7 | 48 49 50 51 52 53 54 55
    6 | 40 41 42 43 44 45 46 47
    5 | 32 33 34 35 36 37 38 39
    4 | 24 25 26 27 28 29 30 31
    3 | 16 17 18 19 20 21 22 23
    2 |  8  9 10 11 12 13 14 15
    1 |  0  1  2  3  4  5  6  7
      +------------------------
         a  b  c  d  e  f  g  h

Pieces are bit-sliced: CODE0, CODE1 and CODE2 hold bits 0, 1 and 2 of the code of the piece on each
square (0 where there is none), and WHITE marks the white ones. The codes are chosen so that a
board of one kind, or of all sliders of a direction, is one or two ANDs::

    code      1 P    2 N    3 B    4 R    5 Q    6 K
    CODE0       1      0      1      0      1      0
    CODE1       0      1      1      0      0      1
    CODE2       0      0      0      1      1      1

META packs everything else the rules need::

    bit   0      side to move, 1 is black
    bits  1-4    castling rights: white king side, white queen side, black's likewise
    bits  5-11   en passant square, NO_SQUARE where there is none
    bits 12-19   halfmove clock
    bits 20-21   earlier occurrences of this position, at most 3
    bits 22-37   fullmove number

Invariants of a settled row (after a reset or a step): META names an en passant square only where
an en passant capture is legal, and KEY contains the file of that square under the same condition;
so two keys are equal exactly where FIDE calls the positions the same. Constants here are frozen
into the kernels that :mod:`chess_snn.jit` compiles.
"""

from typing import Final

import numpy as np

CODE0: Final = 0
CODE1: Final = 1
CODE2: Final = 2
WHITE: Final = 3
META: Final = 4
KEY: Final = 5

STATE_WORDS: Final = 6
RECORD_WORDS: Final = 5
"""All but KEY, which follows from the others."""
HISTORY_LENGTH: Final = 128
"""K: keys that a game remembers, in a ring by ply. Games end at clock 100, so no repetition lies
further back than 100 plies."""
MAX_LEGAL: Final = 224
"""No position has more than 218 legal moves."""

# Unsigned constants throughout: numba widens uint64 mixed with int64 to float64.
NO_PIECE: Final = np.uint64(0)
PAWN: Final = np.uint64(1)
KNIGHT: Final = np.uint64(2)
BISHOP: Final = np.uint64(3)
ROOK: Final = np.uint64(4)
QUEEN: Final = np.uint64(5)
KING: Final = np.uint64(6)

BLACK_BIT: Final = np.uint64(1)
CASTLING_SHIFT: Final = np.uint64(1)
CASTLING_MASK: Final = np.uint64(0xF)
EP_SHIFT: Final = np.uint64(5)
EP_MASK: Final = np.uint64(0x7F)
CLOCK_SHIFT: Final = np.uint64(12)
CLOCK_MASK: Final = np.uint64(0xFF)
REPETITIONS_SHIFT: Final = np.uint64(20)
REPETITIONS_MASK: Final = np.uint64(0x3)
FULLMOVE_SHIFT: Final = np.uint64(22)
FULLMOVE_MASK: Final = np.uint64(0xFFFF)

NO_SQUARE: Final = np.uint64(64)

# Castling rights as seen by one side: its own in the low pair, the opponent's in the high pair.
# White's view is the absolute one; black's swaps the pairs.
OWN_KING_SIDE: Final = np.uint64(1)
OWN_QUEEN_SIDE: Final = np.uint64(2)
CASTLING_PAIR: Final = np.uint64(2)

FILE_OF_SQUARE: Final = np.uint64(7)
"""Square & FILE_OF_SQUARE is the file, 0 to 7."""
VERTICAL_FLIP: Final = np.uint64(56)
"""Square ^ VERTICAL_FLIP is the square seen from the other side of the board."""
HORIZONTAL_FLIP: Final = np.uint64(7)
"""Square ^ HORIZONTAL_FLIP is the square in a mirror that swaps the a-file with the h-file."""

ONGOING: Final = 0
CHECKMATE: Final = 1
STALEMATE: Final = 2
FIFTY_MOVES: Final = 3
THREEFOLD_REPETITION: Final = 4
INSUFFICIENT_MATERIAL: Final = 5
TERMINATIONS: Final = (
    "ongoing",
    "checkmate",
    "stalemate",
    "fifty_moves",
    "threefold_repetition",
    "insufficient_material",
)
