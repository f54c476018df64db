"""A player of 2048 without a network: expectimax in full width, over a hand-made value of boards.

The value of a decision is the largest of reward + value of the afterstate, 0 where the game has
ended; that of an afterstate is the mean of the decisions after each event, or the heuristic where
the player has no own move left to look at. All empty cells and both tiles are looked at.

The heuristic is the sum of one looked-up number for each row and each column. The value of a line
of exponents e is::

    BASE + EMPTY * (empty cells) + PAIRS * (neighbours that can merge)
         - DISORDER * (smaller of the ascents to the left and to the right)
         - MASS * sum of e ** MASS_POWER

where an ascent is the sum of the rises of e ** DISORDER_POWER from one cell to the next. Ordered
lines keep large tiles together at an edge, and a line of few large tiles has less mass than one of
many. The unit is that of rewards; the number orders boards, but does not predict the score. The
weights come from a random search over the mean score of expectimax with two moves.
"""

from functools import cache
from typing import Final

import numpy as np

from chess_snn.games.base import NO_ACTION
from chess_snn.games.bits import ONE, ZERO, population_count
from chess_snn.games.twenty48.boards import ROW_BITS, ROW_MASK, empty_cells, slide, transpose
from chess_snn.games.twenty48.layout import (
    BOARD,
    FOUR_PROBABILITY,
    MAX_EXPONENT,
    NATURE,
    NATURE_MOVES,
    NUM_ACTIONS,
    SCORE_UNIT,
    SIDE,
    row_cells,
)
from chess_snn.jit import kernel
from chess_snn.types import Float32Array, Float64Array, Int16Array, UInt64Array

BASE: Final = 900.0
EMPTY: Final = 5.8
PAIRS: Final = 13.0
DISORDER: Final = 1.4
DISORDER_POWER: Final = 2.15
MASS: Final = 0.072
MASS_POWER: Final = 3.28
_WORST: Final = -np.inf


@cache
def line_values() -> Float32Array:
    """float32[65536]: the value of each row, or of a column read from top to bottom.

    Built at the first call.
    """
    cells = row_cells()
    is_tile = cells > 0
    pairs = (cells[:, 1:] == cells[:, :-1]) & is_tile[:, 1:] & (cells[:, 1:] < MAX_EXPONENT)
    rises = np.diff(cells.astype(np.float64) ** DISORDER_POWER, axis=1)
    ascents = np.maximum(rises, 0).sum(axis=1), np.maximum(-rises, 0).sum(axis=1)
    values: Float64Array = (
        BASE
        + EMPTY * (~is_tile).sum(axis=1)
        + PAIRS * pairs.sum(axis=1)
        - DISORDER * np.minimum(*ascents)
        - MASS * (cells.astype(np.float64) ** MASS_POWER).sum(axis=1)
    )
    return values.astype(np.float32)


@kernel
def board_value(board: np.uint64, lines: Float32Array) -> np.float32:
    """The value of a board; ``lines`` is :func:`line_values`."""
    columns = transpose(board)
    value = np.float32(0.0)
    for row in range(SIDE):
        shift = np.uint64(ROW_BITS * row)
        value += lines[board >> shift & ROW_MASK] + lines[columns >> shift & ROW_MASK]
    return value


@kernel
def write_values(states: UInt64Array, values: Float32Array, lines: Float32Array) -> None:
    """Fill ``values`` float32[B] from ``states`` uint64[B, 2]."""
    for i in range(len(states)):
        values[i] = board_value(states[i, BOARD], lines)


@kernel
def plan_actions(
    states: UInt64Array, depth: int, actions: Int16Array, slides: UInt64Array,
    lines: Float32Array,
) -> None:
    """Fill ``actions`` int16[B] with the best ones, the first of equals, ``depth`` moves ahead.

    NO_ACTION where ``states`` uint64[B, 2] have no
    move: ended games and afterstates.
    """
    for i in range(len(states)):
        actions[i] = NO_ACTION
        if states[i, NATURE] != NATURE_MOVES:
            actions[i] = plan_action(states[i, BOARD], depth, slides, lines)


@kernel
def plan_action(board: np.uint64, depth: int, slides: UInt64Array, lines: Float32Array) -> int:
    """The best action of one board for ``depth`` >= 1, NO_ACTION where none is legal."""
    best, best_action = _WORST, NO_ACTION
    for action in range(NUM_ACTIONS):
        after, points = slide(board, action, slides)
        if after != board:
            value = points / SCORE_UNIT + _afterstate_value(after, depth - 1, slides, lines)
            if value > best:
                best, best_action = value, action
    return best_action


@kernel
def _afterstate_value(
    board: np.uint64, depth: int, slides: UInt64Array, lines: Float32Array
) -> float:
    if depth == 0:
        return float(board_value(board, lines))
    empty = empty_cells(board)
    num_empty = population_count(empty)
    total = 0.0
    while empty != ZERO:
        two = empty & ~(empty - ONE)
        for tile, probability in ((two, 1.0 - FOUR_PROBABILITY), (two << ONE, FOUR_PROBABILITY)):
            # A function of its own would call this one, and numba compiles no such pairs.
            best = _WORST
            for action in range(NUM_ACTIONS):
                after, points = slide(board | tile, action, slides)
                if after != board | tile:
                    value = points / SCORE_UNIT
                    if depth == 1:
                        value += board_value(after, lines)
                    else:
                        value += _afterstate_value(after, depth - 1, slides, lines)
                    best = max(best, value)
            total += probability * (0.0 if best == _WORST else best)
        empty ^= two
    return total / num_empty
