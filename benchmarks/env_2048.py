"""The kernels of 2048 on one core, and its planning player.

Whole random games run in one kernel; "step by step" uses the game protocol, as self-play does.
"""

import statistics
import time
from collections.abc import Callable
from typing import Final

import numpy as np

from benchmarks.harness import Pace, rate
from benchmarks.random_data import stepping
from benchmarks.report import Report
from benchmarks.whole_2048_games import play_planned_games, play_random_games
from chess_snn.games.twenty48.expectimax import line_values
from chess_snn.games.twenty48.layout import slide_table
from chess_snn.types import Int64Array, UInt64Array

RANDOM_BAR: Final = 1e7
PLANNED_BAR: Final = 1e5
SCORE_BAR: Final = 3e4

_SEED: Final = 1
_NUM_RANDOM: Final = 10_000
_NUM_PLANNED: Final = {1: 1_000, 2: 100, 3: 4}
"""Games a round, by depth; each round plays others."""

_PlayGames = Callable[[UInt64Array, Int64Array, Int64Array], None]
"""Plays games of keys uint64[n], fills in scores int64[n] and lengths int64[n]."""


def measure(report: Report, quick: bool) -> None:
    """Measure random moves and expectimax; rates are medians of rounds.

    Args:
        report: receives the figures.
        quick: a few seconds instead of a minute; rates and scores are noisier.
    """
    pace = Pace(rounds=2, turn_s=0.3) if quick else Pace(rounds=5, turn_s=1.0)
    depths = [1, 2] if quick else list(_NUM_PLANNED)
    moves_per_s, _ = _measure(_random, _NUM_RANDOM, pace.rounds)
    report.add("random moves, whole games", moves_per_s, "moves/s", at_least=RANDOM_BAR)
    for name, with_planes in (("", False), (" with planes", True)):
        stepped = rate(stepping("2048", with_planes), pace)
        report.add(f"random moves, step by step{name}", stepped, "moves/s")
    for depth in depths:
        moves_per_s, scores = _measure(_planned(depth), _NUM_PLANNED[depth], pace.rounds)
        is_barred = depth == 2
        report.add(
            f"expectimax:{depth}", moves_per_s, "moves/s",
            at_least=PLANNED_BAR if is_barred else None,
        )
        report.add(
            f"expectimax:{depth}, mean score", scores.mean(), "points",
            at_least=SCORE_BAR if is_barred else None,
        )
        report.note(
            f"expectimax:{depth}: {len(scores)} games, 95 % interval of the mean score "
            f"± {1.96 * scores.std(ddof=1) / len(scores) ** 0.5:,.0f}"
        )
    report.note(f"one core, median of {pace.rounds} rounds")


def _measure(
    play: _PlayGames, num_games: int, num_rounds: int
) -> tuple[float, Int64Array]:
    """(median moves/s, the scores of all games)."""
    keys = np.arange(_SEED, _SEED + num_games * num_rounds, dtype=np.uint64)
    scores, lengths = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    play(keys[:1], scores[:1], lengths[:1])  # compiles
    rates = []
    for first in range(0, len(keys), num_games):
        games = slice(first, first + num_games)
        start = time.perf_counter()
        play(keys[games], scores[games], lengths[games])
        rates.append(lengths[games].sum() / (time.perf_counter() - start))
    return float(statistics.median(rates)), scores


def _random(keys: UInt64Array, scores: Int64Array, lengths: Int64Array) -> None:
    play_random_games(keys, scores, lengths, slide_table())


def _planned(depth: int) -> _PlayGames:
    return lambda keys, scores, lengths: play_planned_games(
        keys, depth, scores, lengths, slide_table(), line_values()
    )
