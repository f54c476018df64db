r"""Action numbers: AlphaZero's 8 x 8 x 73 (arXiv 1712.01815, supplementary "Representation").

``action = square * 73 + plane``, both in the side to move's frame: for black the board is flipped
vertically (``square ^ 56``; files are not mirrored), so a pawn always goes up. ``square`` is where
the piece comes from; ``plane`` says where it goes.

Planes 0-55 are queen moves, ``direction * 7 + distance - 1``; planes 56-63 are knight moves::

         queen directions                    knight planes

          7    0    1                     .   63   .   56   .
            \  |  /                       62   .   .   .   57
          6 -  o  - 2                     .    .   o   .   .
            /  |  \                       61   .   .   .   58
          5    4    3                     .   60   .   59   .

Planes 64-72 are promotions to less than a queen, ``64 + 3 * (piece - knight) + file step + 1``::

                       file step -1   0  +1
        to a knight              64  65  66
        to a bishop              67  68  69
        to a rook                70  71  72

A pawn that reaches the last rank by a queen-move plane becomes a queen. Castling is the king's
move by two squares. The tables here are frozen into kernels by :mod:`chess_snn.jit`.
"""

from typing import Final

import numpy as np

from chess_snn.games.chess.layout import HORIZONTAL_FLIP, KNIGHT, NO_PIECE, ROOK
from chess_snn.types import Int16Array

NUM_PLANES: Final = 73
NUM_ACTIONS: Final = 64 * NUM_PLANES
NUM_DISTANCES: Final = 7
FIRST_KNIGHT_PLANE: Final = 56
FIRST_UNDERPROMOTION_PLANE: Final = 64

QUEEN_DIRECTIONS: Final = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))
"""(file, rank) of one step, in the order of the planes: clockwise from straight ahead."""
KNIGHT_JUMPS: Final = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))
"""(file, rank) of one jump, in the order of the planes: clockwise from straight ahead."""

OFF_BOARD: Final = -1
ORIGIN_MASK: Final = np.uint64(0x3F)
TARGET_SHIFT: Final = np.uint64(6)
TARGET_MASK: Final = np.uint64(0x3F)
UNDERPROMOTION_SHIFT: Final = np.uint64(12)


def offset_square(square: int, file_step: int, rank_step: int) -> int:
    """The square so many files and ranks away from ``square``, or OFF_BOARD."""
    file, rank = square % 8 + file_step, square // 8 + rank_step
    return rank * 8 + file if 0 <= file < 8 and 0 <= rank < 8 else OFF_BOARD


def _plane_moves() -> list[tuple[int, int, int, int]]:
    """(plane, file step, rank step, underpromotion code or 0) of each of the 73 planes."""
    moves = [
        (direction * NUM_DISTANCES + distance - 1, file * distance, rank * distance, int(NO_PIECE))
        for direction, (file, rank) in enumerate(QUEEN_DIRECTIONS)
        for distance in range(1, NUM_DISTANCES + 1)
    ]
    moves += [
        (FIRST_KNIGHT_PLANE + jump, file, rank, int(NO_PIECE))
        for jump, (file, rank) in enumerate(KNIGHT_JUMPS)
    ]
    moves += [
        (FIRST_UNDERPROMOTION_PLANE + 3 * (piece - int(KNIGHT)) + file + 1, file, 1, piece)
        for piece in range(int(KNIGHT), int(ROOK) + 1)
        for file in (-1, 0, 1)
    ]
    return moves


def _build_tables() -> tuple[Int16Array, Int16Array]:
    action_of = np.full((64, 64), OFF_BOARD, dtype=np.int16)
    decoded = np.full(NUM_ACTIONS, OFF_BOARD, dtype=np.int16)
    for origin in range(64):
        for plane, file_step, rank_step, underpromotion in _plane_moves():
            target = offset_square(origin, file_step, rank_step)
            if target == OFF_BOARD or (underpromotion and origin // 8 != 6):
                continue
            action = origin * NUM_PLANES + plane
            packed = origin | target << int(TARGET_SHIFT)
            decoded[action] = packed | underpromotion << int(UNDERPROMOTION_SHIFT)
            if not underpromotion:
                action_of[origin, target] = action
    return action_of, decoded


def _mirror_table() -> Int16Array:
    planes = {tuple(move): plane for plane, *move in _plane_moves()}
    mirrored_plane = [
        planes[-file, rank, underpromotion] for _, file, rank, underpromotion in _plane_moves()
    ]
    squares = np.arange(64, dtype=np.int16) ^ np.int16(HORIZONTAL_FLIP)
    table = squares[:, None] * NUM_PLANES + np.array(mirrored_plane, dtype=np.int16)
    return table.ravel()


ACTION_OF, DECODED_ACTION = _build_tables()
"""ACTION_OF, int16[64, 64]: the action from a square to a square that is not an underpromotion.

DECODED_ACTION, int16[4672]: origin, target << 6 and underpromotion code << 12 of an action (it
fits 15 bits). Both are OFF_BOARD where there is no such move.
"""
PLANE_STEPS: Final = tuple((rank_step, file_step) for _, file_step, rank_step, _ in _plane_moves())
"""(ranks, files) that the moves of each plane go."""
MIRRORED_ACTION: Final = _mirror_table()
"""int16[4672]: the action seen in a mirror that swaps the a-file with the h-file."""
