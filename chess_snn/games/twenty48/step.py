"""The batched kernels behind ``step``, ``reset`` and ``legal_actions``: one call a batch.

G games, B positions; the arrays are those of :class:`chess_snn.games.base.GameBatch`, and
``slides`` is :func:`chess_snn.games.twenty48.layout.slide_table`.
"""

from typing import Final

import numpy as np

from chess_snn.games.bits import ONE, ZERO, count_trailing_zeros, population_count
from chess_snn.games.twenty48.boards import (
    CELL_SHIFT,
    draw_event,
    empty_cells,
    legal_mask,
    slide,
    spawn,
)
from chess_snn.games.twenty48.layout import (
    BOARD,
    FOUR_PROBABILITY,
    NATURE,
    NATURE_MOVES,
    NO_MOVES,
    NUM_ACTIONS,
    ONGOING,
    PLAYER_MOVES,
    SCORE_UNIT,
)
from chess_snn.jit import copy_row, kernel
from chess_snn.rng import random_word
from chess_snn.types import (
    Float32Array,
    Int16Array,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)

# Away from the counters of random play, so that a game may use its key for both.
_FIRST_TILE: Final = np.uint64(1) << np.uint64(35)
_SECOND_TILE: Final = _FIRST_TILE + np.uint64(1)


@kernel
def step_games(
    state: UInt64Array, plies: Int32Array, legal_actions: Int16Array, num_legal: Int32Array,
    termination: UInt8Array, reward: Float32Array, actions: Int16Array, chance: UInt64Array,
    num_rows: int, slides: UInt64Array,
) -> None:
    """Play the first ``num_rows`` of ``actions`` int16[G], but in ended games and negative ones.

    ``chance`` is uint64[G], or uint64[0] for a stop at the afterstates.
    """
    for g in range(num_rows):
        if actions[g] < 0 or termination[g] != ONGOING:
            continue
        if state[g, NATURE] == NATURE_MOVES:
            state[g, BOARD] = spawn(state[g, BOARD], np.uint64(actions[g]))
            state[g, NATURE] = PLAYER_MOVES
            reward[g] = 0.0
        else:
            board, points = slide(state[g, BOARD], actions[g], slides)
            reward[g] = points / SCORE_UNIT
            plies[g] += 1
            if len(chance):
                state[g, BOARD] = spawn(board, draw_event(board, chance[g]))
            else:
                state[g, BOARD], state[g, NATURE] = board, NATURE_MOVES
        num_legal[g] = list_row(state[g], legal_actions[g], slides)
        termination[g] = ONGOING if num_legal[g] else NO_MOVES


@kernel
def reset_games(
    state: UInt64Array, plies: Int32Array, legal_actions: Int16Array, num_legal: Int32Array,
    termination: UInt8Array, reward: Float32Array, rows: Int64Array, states: UInt64Array,
    slides: UInt64Array,
) -> None:
    """Put ``states`` uint64[n, 2] into ``rows`` int64[n]."""
    for i in range(len(rows)):
        g = rows[i]
        copy_row(states[i], state[g])
        plies[g] = 0
        num_legal[g] = list_row(state[g], legal_actions[g], slides)
        termination[g] = ONGOING if num_legal[g] else NO_MOVES
        reward[g] = 0.0


@kernel
def list_legal(
    states: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array, slides: UInt64Array
) -> None:
    """Fill int16[B, 32] and int32[B] from ``states`` uint64[B, 2]."""
    for i in range(len(states)):
        num_legal[i] = list_row(states[i], legal_actions[i], slides)


@kernel
def list_row(row: UInt64Array, legal: Int16Array, slides: UInt64Array) -> int:
    """Write the actions or events of ``row`` uint64[2] in ascending order; gives their number."""
    count = 0
    if row[NATURE] == NATURE_MOVES:
        empty = empty_cells(row[BOARD])
        while empty != ZERO:
            cell = count_trailing_zeros(empty) >> CELL_SHIFT
            legal[count] = cell << ONE
            legal[count + 1] = cell << ONE | ONE
            count += 2
            empty &= empty - ONE
    else:
        mask = legal_mask(row[BOARD], slides)
        for action in range(NUM_ACTIONS):
            if mask >> np.uint64(action) & ONE != ZERO:
                legal[count] = action
                count += 1
    return count


@kernel
def write_probabilities(states: UInt64Array, probabilities: Float32Array) -> None:
    """Fill ``probabilities`` float32[B, 32], which hold 0, for the afterstates of uint64[B, 2]."""
    for i in range(len(states)):
        if states[i, NATURE] == NATURE_MOVES:
            num_empty = np.int64(population_count(empty_cells(states[i, BOARD])))
            for k in range(num_empty):
                probabilities[i, 2 * k] = (1.0 - FOUR_PROBABILITY) / num_empty
                probabilities[i, 2 * k + 1] = FOUR_PROBABILITY / num_empty


@kernel
def write_starts(seeds: UInt64Array, states: UInt64Array) -> None:
    """Fill ``states`` uint64[G, 2] with two tiles each, drawn from ``seeds`` uint64[G]."""
    for g in range(len(seeds)):
        board = start_board(seeds[g])
        states[g, BOARD], states[g, NATURE] = board, PLAYER_MOVES


@kernel
def start_board(seed: np.uint64) -> np.uint64:
    """An empty board after two events."""
    board = spawn(ZERO, draw_event(ZERO, random_word(seed, _FIRST_TILE)))
    return spawn(board, draw_event(board, random_word(seed, _SECOND_TILE)))
