"""A player of 2048 without a network: expectimax in full width.

The value of a decision is the largest of reward + value of the afterstate, 0 where the game has
ended; that of an afterstate is the mean of the decisions after each event, or the heuristic of
:mod:`chess_snn.games.twenty48.heuristic` where the player has no own move left to look at. All
empty cells and both tiles are looked at.
"""

from typing import Final

import numpy as np

from chess_snn.games.base import NO_ACTION
from chess_snn.games.bits import ONE, ZERO, population_count
from chess_snn.games.twenty48.boards import empty_cells, slide
from chess_snn.games.twenty48.heuristic import board_value
from chess_snn.games.twenty48.layout import (
    BOARD,
    FOUR_PROBABILITY,
    NATURE,
    NATURE_MOVES,
    NUM_ACTIONS,
    SCORE_UNIT,
)
from chess_snn.jit import kernel
from chess_snn.types import Float32Array, Int16Array, UInt64Array

_WORST: Final = -np.inf


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
