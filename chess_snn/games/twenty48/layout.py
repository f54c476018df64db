"""The state row of 2048: what its two words hold, and how actions and events are numbered.

BOARD holds 4 bits a cell, the exponent of the tile: 0 where the cell is empty, 1 for a 2, 15 for a
32768. Cell ``s`` is row * 4 + column and occupies bits 4s to 4s + 3, so a row is 16 bits, and its
leftmost cell the lowest 4::

    row 1 |  0  1  2  3
    row 2 |  4  5  6  7
    row 3 |  8  9 10 11
    row 4 | 12 13 14 15
          +------------
             a  b  c  d

NATURE is 0 where the player is to move and 1 in an *afterstate*, where a tile is still to come.

Actions are 0 left, 1 up, 2 right, 3 down. The events of an afterstate are 2 * cell + k: a 2 (k = 0)
or a 4 (k = 1) comes to that empty cell.

Two 32768 do not merge, because 4 bits cannot hold a 65536; a game that comes so far goes on with
two tiles that block each other.
"""

from typing import Final

import numpy as np

BOARD: Final = 0
NATURE: Final = 1
STATE_WORDS: Final = 2

SIDE: Final = 4
"""Rows of the board, and cells of a row."""
NUM_CELLS: Final = SIDE * SIDE
MAX_EXPONENT: Final = 15
"""Of the largest tile, 32768."""

ACTION_NAMES: Final = ("left", "up", "right", "down")
NUM_ACTIONS: Final = len(ACTION_NAMES)
MAX_LEGAL: Final = 2 * NUM_CELLS

FOUR_PROBABILITY: Final = 0.1
"""Of a 4 as the next tile; else it is a 2."""
SCORE_UNIT: Final = 1024.0
"""Points of the score, i.e. the sum of the merged tiles, that a reward of 1 stands for."""

ONGOING: Final = 0
NO_MOVES: Final = 1
TERMINATIONS: Final = ("ongoing", "no_moves")

PLAYER_MOVES: Final = np.uint64(0)
NATURE_MOVES: Final = np.uint64(1)
"""What the word NATURE holds."""
