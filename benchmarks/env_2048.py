"""The kernels of 2048 on one core, and its planning player.

Whole games run in one kernel; "step by step" uses the game protocol, as self-play does.
"""

import statistics
import time
from typing import Final

import numpy as np

from benchmarks.harness import Pace, Report, rate
from benchmarks.random_data import stepping
from chess_snn.games.bits import ONE, ZERO, count_trailing_zeros, population_count
from chess_snn.games.twenty48.boards import draw_event, legal_mask, slide, spawn
from chess_snn.games.twenty48.expectimax import line_values, plan_action
from chess_snn.games.twenty48.layout import slide_table
from chess_snn.games.twenty48.step import start_board
from chess_snn.jit import kernel
from chess_snn.rng import random_word
from chess_snn.types import Float32Array, Int64Array, UInt64Array

RANDOM_BAR: Final = 1e7
PLANNED_BAR: Final = 1e5
SCORE_BAR: Final = 3e4
CHANCE_COUNTER: Final = np.uint64(1) << np.uint64(33)

_SEED: Final = 1
_NUM_GAMES: Final = {0: 10_000, 1: 1_000, 2: 100, 3: 4}
"""Games a round, by depth; each round plays others."""


def measure(report: Report, pace: Pace, *, quick: bool) -> None:
    """Add random moves and expectimax; rates are medians of rounds."""
    moves_per_s, _ = _whole_games(0, pace.rounds)
    report.add("random moves, whole games", moves_per_s, "moves/s", at_least=RANDOM_BAR)
    for name, with_planes in (("", False), (" with planes", True)):
        stepped = rate(stepping("2048", with_planes), pace)
        report.add(f"random moves, step by step{name}", stepped, "moves/s")
    for depth in (1, 2) if quick else (1, 2, 3):
        moves_per_s, scores = _whole_games(depth, pace.rounds)
        is_barred = depth == 2
        report.add(f"expectimax:{depth}", moves_per_s, "moves/s",
                   at_least=PLANNED_BAR if is_barred else None)
        report.add(f"expectimax:{depth}, mean score", scores.mean(), "points",
                   at_least=SCORE_BAR if is_barred else None)
        report.note(
            f"expectimax:{depth}: {len(scores)} games, 95 % interval of the mean score "
            f"± {1.96 * scores.std(ddof=1) / len(scores) ** 0.5:,.0f}"
        )
    report.note(f"one core, median of {pace.rounds} rounds")


def _whole_games(depth: int, num_rounds: int) -> tuple[float, Int64Array]:
    """(median moves/s, the scores of all games) by expectimax, at random for depth 0."""
    num_games = _NUM_GAMES[depth]
    keys = np.arange(_SEED, _SEED + num_games * num_rounds, dtype=np.uint64)
    scores, lengths = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)

    def play(games: slice) -> None:
        played = scores[games], lengths[games], slide_table()
        if depth:
            play_planned_games(keys[games], depth, *played, line_values())
        else:
            play_random_games(keys[games], *played)

    play(slice(1))  # compiles
    rates = []
    for first in range(0, len(keys), num_games):
        games = slice(first, first + num_games)
        start = time.perf_counter()
        play(games)
        rates.append(lengths[games].sum() / (time.perf_counter() - start))
    return float(statistics.median(rates)), scores


@kernel
def play_random_games(
    keys: UInt64Array, scores: Int64Array, lengths: Int64Array, slides: UInt64Array
) -> None:
    """Play a game of uniformly random moves for each of ``keys`` uint64[n].

    ``scores`` int64[n] are in points, ``lengths`` int64[n] in moves. A game of key k draws its tile
    at ply p from word ``CHANCE_COUNTER + p`` of the key's stream, and its random action from word
    p, so that ``random_legal_actions`` and ``step`` with those words play the same games.
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
    """Play as :func:`play_random_games` does, with the actions of ``expectimax:depth``."""
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
