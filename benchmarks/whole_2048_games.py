"""Whole games in one kernel, without a batch: by chance, or by expectimax.

A game of key k draws its tile at ply p from word ``CHANCE_COUNTER + p`` of the key's stream, and
its random action from word p, so that ``random_legal_actions`` and ``step`` with those words play
the same games.
"""

from typing import Final

import numpy as np

from chess_snn.games.bits import ONE, ZERO, count_trailing_zeros, population_count
from chess_snn.games.twenty48.boards import draw_event, legal_mask, slide, spawn
from chess_snn.games.twenty48.expectimax import plan_action
from chess_snn.games.twenty48.step import start_board
from chess_snn.jit import kernel
from chess_snn.rng import random_word
from chess_snn.types import Float32Array, Int64Array, UInt64Array

CHANCE_COUNTER: Final = np.uint64(1) << np.uint64(33)


@kernel
def play_random_games(
    keys: UInt64Array, scores: Int64Array, lengths: Int64Array, slides: UInt64Array
) -> None:
    """Play a game of uniformly random moves for each of ``keys`` uint64[n].

    ``scores`` int64[n] are in points, ``lengths`` int64[n] in moves.
    """
    for i in range(len(keys)):
        board, score, ply = start_board(keys[i]), ZERO, ZERO
        mask = legal_mask(board, slides)
        while mask != ZERO:
            for _ in range(random_word(keys[i], ply) % population_count(mask)):
                mask &= mask - ONE
            board, points = slide(board, int(count_trailing_zeros(mask)), slides)
            score += points
            board = spawn(board, draw_event(board, random_word(keys[i], CHANCE_COUNTER + ply)))
            ply += ONE
            mask = legal_mask(board, slides)
        scores[i], lengths[i] = score, ply


@kernel
def play_planned_games(
    keys: UInt64Array, depth: int, scores: Int64Array, lengths: Int64Array, slides: UInt64Array,
    lines: Float32Array,
) -> None:
    """As :func:`play_random_games`, with the actions of ``expectimax:depth``."""
    for i in range(len(keys)):
        board, score, ply = start_board(keys[i]), ZERO, ZERO
        action = plan_action(board, depth, slides, lines)
        while action >= 0:
            board, points = slide(board, action, slides)
            score += points
            board = spawn(board, draw_event(board, random_word(keys[i], CHANCE_COUNTER + ply)))
            ply += ONE
            action = plan_action(board, depth, slides, lines)
        scores[i], lengths[i] = score, ply
