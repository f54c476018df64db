"""Which of two players is better, and how sure that is, from one match."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.pairs import PAIR_SCORES, pair_counts, pair_kinds
from chess_snn.evaluation.superiority import likelihood_of_superiority
from chess_snn.types import Float64Array, Int64Array, Json

_MOST_POINTS: Final = 60
"""Of a curve over the pairs played."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """A match of a against b, read as one question."""

    result: MatchResult
    counts: Int64Array
    """int64[5]: pairs of games by a's score, see :func:`chess_snn.evaluation.pairs.pair_counts`."""
    superiority: float
    """Probability that a is the better player, in [0, 1]."""
    pairs: Int64Array
    """int64[n]: numbers of pairs after which the match was looked at, rising."""
    superiority_by_pairs: Float64Array
    """float64[n]: what would have been said then."""

    @property
    def better(self) -> str:
        """Name of the player that is better with more than even odds; empty at even ones."""
        if self.superiority == 0.5:
            return ""
        return self.result.player_a if self.superiority > 0.5 else self.result.player_b

    @property
    def probability(self) -> float:
        """That :attr:`better` is, in [0.5, 1]."""
        return max(self.superiority, 1.0 - self.superiority)

    def to_json(self) -> Json:
        """What there is beside the match."""
        return {
            "likelihood_of_superiority": self.superiority,
            "better": self.better,
            "pair_scores": PAIR_SCORES.tolist(),
            "pair_counts": self.counts.tolist(),
        }


def compare(result: MatchResult) -> Comparison:
    """Judge a match; pairs are taken in the order of its openings."""
    kinds = pair_kinds(result)
    by_pair = np.cumsum(np.eye(len(PAIR_SCORES), dtype=np.int64)[kinds], axis=0)
    looks = np.unique(np.linspace(1, len(kinds), _MOST_POINTS).astype(np.int64))[: len(kinds)]
    counts = pair_counts(result)
    return Comparison(
        result, counts, likelihood_of_superiority(counts), looks,
        np.array([likelihood_of_superiority(by_pair[look - 1]) for look in looks]),
    )
