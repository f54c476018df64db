"""Counting the leaves of the move tree, the classic proof of a move generator.

The last ply is counted and not played ("bulk counting"). Draws do not cut the tree, as usual.
"""

import numpy as np

from chess_snn.games.chess.layout import MAX_LEGAL, STATE_WORDS
from chess_snn.games.chess.movegen import generate
from chess_snn.games.chess.moves import make_move
from chess_snn.jit import kernel
from chess_snn.settings import check_range
from chess_snn.types import UInt64Array


def perft(state: UInt64Array, depth: int) -> int:
    """Number of move sequences of ``depth`` plies from ``state`` uint64[6].

    Raises:
        ConfigError: ``depth`` is negative.
    """
    check_range("depth", depth, ge=0)
    return int(_count_leaves(state, depth))


@kernel
def _count_leaves(root: UInt64Array, depth: int) -> int:
    """Leaves ``depth`` plies below ``root``; the rows on the way are unsettled, their keys void."""
    if depth == 0:
        return 1
    rows = np.empty((depth, STATE_WORDS), dtype=np.uint64)
    legal = np.empty((depth, MAX_LEGAL), dtype=np.int16)
    unplayed = np.zeros(depth, dtype=np.int64)
    rows[0] = root
    unplayed[0] = int(generate(rows[0], legal[0])[0])
    if depth == 1:
        return int(unplayed[0])
    leaves = 0
    level = 0
    while level >= 0:
        if unplayed[level] == 0:
            level -= 1
            continue
        unplayed[level] -= 1
        below = level + 1
        make_move(rows[level], rows[below], legal[level, unplayed[level]])
        num_moves = int(generate(rows[below], legal[below])[0])
        if below == depth - 1:
            leaves += num_moves
        else:
            unplayed[below] = num_moves
            level = below
    return leaves
