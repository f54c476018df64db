"""Scores as differences in Elo."""

import math

from chess_snn.config import check_range


def elo_difference(score: float) -> float:
    """Elo points by which a player with this mean score is ahead, by the logistic curve.

    ``-400 log10(1 / score - 1)``: a score of 0.76 is about 200 points. Infinite at 0 and 1, where
    a score gives a bound only: see :func:`chess_snn.evaluation.intervals.wilson_interval`.

    Raises:
        ConfigError: ``score`` is not in [0, 1].
    """
    check_range("score", score, ge=0.0, le=1.0)
    if score in {0.0, 1.0}:
        return math.copysign(math.inf, score - 0.5)
    return -400.0 * math.log10(1.0 / score - 1.0)
