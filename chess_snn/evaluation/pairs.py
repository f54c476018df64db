"""Matches as pairs of games: one opening with both colours is one result.

The two games of an opening depend on each other, and a pair evens out an opening that favours one
side. Counting the five possible pair scores (the *pentanomial* of engine testing) keeps what
counting wins, draws and losses throws away.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from chess_snn.config import check_range
from chess_snn.errors import ConfigError
from chess_snn.types import Float64Array, Int64Array

if TYPE_CHECKING:  # a match's interval is made of its pairs
    from chess_snn.evaluation.match_result import MatchResult

PAIR_SCORES: Final[Float64Array] = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
"""float64[5]: mean scores that a pair of games can have; the order of all pair counts."""
PAIR_SCORES.setflags(write=False)


def pair_kinds(result: "MatchResult") -> Int64Array:
    """int64[pairs]: which of `PAIR_SCORES` player a had in the two games of each opening, in order.

    An opening of which a game is void is no pair, and is left out.
    """
    points = np.bincount(result.opening_index, weights=result.scores_a)
    kinds: Int64Array = np.rint(points[np.isfinite(points)] * 2.0).astype(np.int64)
    return kinds


def pair_counts(result: "MatchResult") -> Int64Array:
    """int64[5]: openings of a match by the mean score of player a in their two games."""
    counts: Int64Array = np.bincount(pair_kinds(result), minlength=len(PAIR_SCORES))
    return counts


def check_pair_counts(counts: Int64Array) -> None:
    """Refuse what cannot be pair counts.

    Raises:
        ConfigError: not five numbers, or one below 0.
    """
    if np.shape(counts) != PAIR_SCORES.shape:
        raise ConfigError(
            f"pair counts must be five, for scores {', '.join(map(str, PAIR_SCORES))}; got "
            f"{np.asarray(counts).tolist()}"
        )
    for count in counts:
        check_range("a pair count", int(count), ge=0)
