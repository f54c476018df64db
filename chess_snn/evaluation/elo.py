"""The Elo scale: scores as differences, and differences as scores.

400 points are odds of 10 : 1, so one *nat* of log-odds is 400 / ln 10 points. Ratings are fitted in
nats and told in points.
"""

import math
from typing import Final

from chess_snn.config import check_range

ELO_PER_NAT: Final = 400.0 / math.log(10.0)
"""Points of one unit of natural log-odds, about 173.7."""


def elo_difference(score: float) -> float:
    """Elo points by which a player with this mean score is ahead, by the logistic curve.

    ``-400 log10(1 / score - 1)``: a score of 0.76 is about 200 points. Infinite at 0 and 1, where
    a score gives a bound only: see :func:`chess_snn.evaluation.intervals.pair_interval`.

    Raises:
        ConfigError: ``score`` is not in [0, 1].
    """
    check_range("score", score, ge=0.0, le=1.0)
    if score in {0.0, 1.0}:
        return math.copysign(math.inf, score - 0.5)
    return -400.0 * math.log10(1.0 / score - 1.0)


def logistic_score(elo: float) -> float:
    """Mean score in [0, 1] of a player who is ``elo`` points ahead: undoes `elo_difference`."""
    nats = elo / ELO_PER_NAT
    if nats >= 0.0:
        return 1.0 / (1.0 + math.exp(-nats))
    return math.exp(nats) / (1.0 + math.exp(nats))
