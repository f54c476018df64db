"""Scores in Elo points and in pairs of games, and how sure they are.

400 Elo points are odds of 10 : 1, so one *nat* of log-odds is 400 / ln 10 points. Ratings are
fitted in nats and shown in points.

The two games of an opening depend on each other, and a pair evens out an opening that favours one
side. Counting the five possible pair scores (the *pentanomial* of engine testing) keeps what
counting wins, draws and losses throws away.

Dimensions of intervals: the last one is the 5 pair scores; leading ones are free.
"""

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from chess_snn.errors import ConfigError
from chess_snn.settings import check_range
from chess_snn.types import Float64Array, Int64Array

if TYPE_CHECKING:  # a match's interval is made of its pairs
    from chess_snn.evaluation.match_result import MatchResult

ELO_PER_NAT: Final = 400.0 / math.log(10.0)
"""Points of one unit of natural log-odds, about 173.7."""
PAIR_SCORES: Final[Float64Array] = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
"""float64[5]: mean scores that a pair of games can have; the order of all pair counts."""
PAIR_SCORES.setflags(write=False)
_UNSEEN: Final = 0.02
"""Pairs added to each of the five scores. Without them, no mean outside of the scores seen would be
possible. Coverage is the same from 0.005 to 0.05."""
_NUM_BISECTIONS: Final = 60
_FARTHEST: Final = 60.0
"""Largest logarithm of the tilt; beyond it the distribution no longer changes."""


def elo_difference(score: float) -> float:
    """Elo points by which a player with this mean score is ahead, by the logistic curve.

    ``-400 log10(1 / score - 1)``: a score of 0.76 is about 200 points. Infinite at 0 and 1, where
    a score gives a bound only: see :func:`chess_snn.evaluation.scores.pair_interval`.

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


def pair_counts(result: "MatchResult") -> Int64Array:
    """int64[5]: openings of a match by the mean score of player a in their two games.

    An opening of which a game is void is not a pair, and is left out.
    """
    points = result.scores_a.reshape(-1, 2).sum(axis=1)
    kinds = np.rint(points[np.isfinite(points)] * 2.0).astype(np.int64)
    counts: Int64Array = np.bincount(kinds, minlength=len(PAIR_SCORES))
    return counts


def pair_interval(
    counts: Int64Array, confidence: float = 0.95
) -> tuple[Float64Array, Float64Array]:
    """Confidence interval of the mean score of pairs of games.

    Owen's empirical likelihood (Owen 1988, "Empirical likelihood ratio confidence intervals for a
    single functional", Biometrika 75): a mean is inside if some distribution over the five pair
    scores has that mean and explains the pairs nearly as well as their own shares do. The limit is
    Student's t squared instead of chi squared (Owen 1990, Annals of Statistics 18, section 3), for
    few pairs. Draws and opposite results of the two games of a pair narrow the interval.

    Where all pairs are won, or all lost, only one bound says anything. It is the exact one-sided
    bound: with mean p, n pairs are all won with probability p^n at most (Hanley & Lippman-Hand
    1983, "If nothing goes wrong, is everything all right?", JAMA 249).

    Args:
        counts: int64[..., 5], pairs by score, see :func:`chess_snn.evaluation.scores.pair_counts`.
        confidence: in (0, 1).

    Returns:
        (low, high), float64[...] each, with 0 <= low <= mean score <= high <= 1; 0 and 1 without
        pairs.

    Raises:
        ConfigError: ``counts`` has not five columns, or ``confidence`` is out of range.
    """
    if counts.shape[-1:] != PAIR_SCORES.shape:
        raise ConfigError(f"pair counts must have 5 columns, got shape {counts.shape}")
    check_range("confidence", confidence, gt=0.0, lt=1.0)
    num_pairs = counts.sum(axis=-1)
    at_least_one = np.maximum(num_pairs, 1)
    mean = counts @ PAIR_SCORES / at_least_one
    limit = _student_quantile(confidence, at_least_one) ** 2
    sweep_error = 1.0 - (1.0 - confidence) ** (1.0 / at_least_one)
    low = _lowest_mean(counts, PAIR_SCORES, limit)
    high = 1.0 - _lowest_mean(counts, 1.0 - PAIR_SCORES, limit)
    low = np.select([mean == 1.0, mean == 0.0], [1.0 - sweep_error, 0.0], np.minimum(low, mean))
    high = np.select([mean == 1.0, mean == 0.0], [1.0, sweep_error], np.maximum(high, mean))
    return np.where(num_pairs == 0, 0.0, low), np.where(num_pairs == 0, 1.0, high)


def _lowest_mean(counts: Int64Array, scores: Float64Array, limit: Float64Array) -> Float64Array:
    """float64[...]: lowest mean whose log-likelihood ratio, doubled, is within ``limit``.

    Among the distributions with a given mean below that of the shares, the likeliest is
    proportional to ``share / (tilt + score)`` for some tilt > 0. The smaller the tilt, the lower
    the mean and the likelihood.
    """
    weights = counts + _UNSEEN
    shares = weights / weights.sum(axis=-1, keepdims=True)
    low = np.full(counts.shape[:-1], -_FARTHEST)
    high = np.full(counts.shape[:-1], _FARTHEST)
    for _ in range(_NUM_BISECTIONS):
        middle = 0.5 * (low + high)
        tilted = shares / (np.exp(middle)[..., None] + scores)
        tilted /= tilted.sum(axis=-1, keepdims=True)
        is_outside = 2.0 * (weights * np.log(shares / tilted)).sum(axis=-1) > limit
        low = np.where(is_outside, middle, low)
        high = np.where(is_outside, high, middle)
    mean: Float64Array = tilted @ scores
    return mean


def _student_quantile(confidence: float, degrees: Int64Array) -> Float64Array:
    """float64[...]: two-sided quantile of Student's t, by Abramowitz & Stegun 26.7.5."""
    from statistics import NormalDist  # noqa: PLC0415 - showing a game need not wait for it

    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    quantile: Float64Array = z + first / degrees + second / degrees**2
    return quantile


def mean_interval(values: Float64Array, confidence: float = 0.95) -> tuple[float, float]:
    """Confidence interval (low, high) of the mean of what ``values`` float64[n] were drawn from.

    Student's: right for a normal distribution, and nearly so for others where there are many
    values. One value bounds nothing: (-inf, inf).

    Raises:
        ConfigError: there is no value, or ``confidence`` is out of range.
    """
    check_range("number of values", len(values), ge=1)
    check_range("confidence", confidence, gt=0.0, lt=1.0)
    if len(values) == 1:
        return -np.inf, np.inf
    quantile = _student_quantile(confidence, np.array(len(values) - 1))
    half = float(quantile * values.std(ddof=1) / np.sqrt(len(values)))
    mean = float(values.mean())
    return mean - half, mean + half
