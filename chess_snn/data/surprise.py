"""Drawing positions by surprise: those that search saw otherwise than the network.

Policy surprise weighting, as in KataGo's notes on its methods: what the network knows already
teaches it little. The weight is capped, so that no position fills the batches.
"""

import numpy as np

from chess_snn.config import check_range
from chess_snn.types import Float32Array, Float64Array, Int64Array


class SurpriseDraw:
    """Draws of n positions, each with probability proportional to min(surprise / mean, cap).

    Where all surprises are 0 every position is as likely as any other.
    """

    def __init__(self, surprises: Float32Array, cap: float) -> None:
        """Sum the weights of ``surprises`` float32[n] >= 0, n >= 1; 8 n bytes stay in memory.

        Raises:
            ConfigError: ``cap`` is not at least 1.
        """
        check_range("window.surprise_cap", cap, ge=1)
        self.cap = cap
        mean = surprises.mean(dtype=np.float64)
        weights = np.minimum(surprises / mean, cap) if mean > 0 else np.ones(len(surprises))
        self._ends: Float64Array = weights.cumsum(dtype=np.float64)
        self._ends /= self._ends[-1]
        self._ends[-1] = 1.0

    def draw(self, num_draws: int, rng: np.random.Generator) -> Int64Array:
        """int64[num_draws] in [0, n), independent of each other."""
        drawn: Int64Array = np.searchsorted(self._ends, rng.random(num_draws), side="right")
        return drawn
