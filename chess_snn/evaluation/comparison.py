"""Comparison of two players: likelihood of superiority, and a test that stops once decided.

Likelihood of superiority: nothing is known of the five chances of a pair's scores beforehand, so
they have a uniform prior, and given the pairs a Dirichlet posterior. The likelihood of superiority
is the posterior probability that the expected score is above one half. With three outcomes in place
of five this is the likelihood of superiority of engine matches (chessprogramming.org, "Match
Statistics"), in which draws do not count. Weighting results by a Dirichlet distribution is the
Bayesian bootstrap (Rubin 1981, Annals of Statistics 9).

The test is the generalised sequential probability ratio test (Li, Liu & Ying 2014, "A generalized
sequential probability ratio test for separate families of hypotheses", Sequential Analysis 33; Wald
1945) on pairs of games, as public engine testing uses it. The hypotheses state only the expected
score. The likelihood under each is the largest that any distribution over the five pair scores with
that mean has, which is Owen's empirical likelihood (Owen 1988, Biometrika 75, section 2; Van den
Bergh, "The generalized maximum likelihood ratio for the expectation value of a distribution",
proposition 1.1). Draw rate, openings and colours then need no model.

Dimensions: 5 pair scores, see `scores`; leading dimensions are free.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.scores import PAIR_SCORES, elo_difference, logistic_score
from chess_snn.types import Float64Array, Int64Array, Json

_PRIOR: Final = 1.0
"""Prior weight of each chance: a uniform distribution over all of them."""

_LOG_SMALLEST: Final = -42.0
_LOG_LARGEST: Final = 12.0
_NUM_POINTS: Final = 1 << 13
SprtState = Literal["continue", "accept", "reject"]
_UNSEEN: Final = 1e-3
"""Pairs of a score that has not occurred: without any, a mean outside of what has occurred would
be impossible. Public engine testing takes the same."""
_NUM_BISECTIONS: Final = 60
ERROR_RATE: Final = 0.05
"""Largest probability of a wrong decision of a test, for each of its hypotheses."""
SPRT_BOUND: Final = -math.log(ERROR_RATE)
"""Log-likelihood ratio at which a test accepts; it rejects at minus this.

With Wald's usual ``ln((1 - beta) / alpha)`` only the *sum* of the two errors is bounded; this
bounds each by itself (Ville's inequality), for about 2 % more games.
"""


def likelihood_of_superiority(counts: Int64Array) -> float:
    """Probability that the player is better than its opponent, given their pairs of games.

    Args:
        counts: int64[5], pairs by the player's score, see
            :func:`chess_snn.evaluation.scores.pair_counts`.

    Returns:
        In [0, 1]; one half without pairs, and with the counts reversed one minus it.
    """
    # A Dirichlet distribution is independent gamma variables over their sum, and the sum does not
    # change the sign of what is asked.
    return probability_of_positive_sum(PAIR_SCORES - 0.5, counts.astype(np.float64) + _PRIOR)


def probability_of_positive_sum(coefficients: Float64Array, shapes: Float64Array) -> float:
    """P(sum of ``coefficients[i] * G_i`` > 0) for independent gamma variables of unit scale.

    Gil-Pelaez's inversion of the characteristic function (Gil-Pelaez 1951, Biometrika 38; Imhof
    1961, Biometrika 48, equation 3.2), by the trapezoid rule in the logarithm of its argument. The
    error is below 1e-8 for means of up to 100 standard deviations.

    Args:
        coefficients: float64[m], not all 0.
        shapes: float64[m], > 0.
    """
    deviation = np.sqrt(np.sum(shapes * coefficients**2))
    logs = np.linspace(_LOG_SMALLEST, _LOG_LARGEST, _NUM_POINTS)
    arguments = np.multiply.outer(np.exp(logs) / deviation, coefficients)
    angle = np.arctan(arguments) @ shapes
    decay = 0.5 * np.log1p(arguments**2) @ shapes
    integral = np.trapezoid(np.sin(angle) * np.exp(-decay), logs)
    return float(np.clip(0.5 + integral / np.pi, 0.0, 1.0))


def elo_json(result: MatchResult) -> Json:
    """Elo difference with its 95 % interval; null where the score gives no bound on that side."""
    low, high = result.interval()
    values = {"difference": result.score, "low": low, "high": high}
    return {name: elo if math.isfinite(elo := elo_difference(score)) else None
            for name, score in values.items()}


@dataclass(frozen=True, slots=True)
class SprtResult:
    """The state of a test."""

    state: SprtState
    """``"continue"`` with more pairs, or the test is over."""
    llr: float
    """Log-likelihood ratio of `elo1` to `elo0`, nats."""


def sprt(counts: Int64Array, elo0: float, elo1: float) -> SprtResult:
    """Judge a candidate by its pairs so far.

    The errors are bounded only if testing ends with the first state that is not ``"continue"``;
    any number of pairs may be added before looking again.

    Args:
        counts: int64[5], pairs by the candidate's score, see
            :func:`chess_snn.evaluation.scores.pair_counts`.
        elo0: a candidate no better than this, in Elo points above the champion, is to be rejected.
        elo1: a candidate at least this much better is to be accepted. The closer the two, the more
            games: half the distance takes four times as many.
    """
    llr = float(log_likelihood_ratio(counts, elo0, elo1))
    state: SprtState = "continue"
    if llr >= SPRT_BOUND:
        state = "accept"
    elif llr <= -SPRT_BOUND:
        state = "reject"
    return SprtResult(state, llr)


def log_likelihood_ratio(counts: Int64Array, elo0: float, elo1: float) -> Float64Array:
    """Generalised log-likelihood ratio of an expected score worth ``elo1`` to one worth ``elo0``.

    Args:
        counts: int64[..., 5], pairs by score.
        elo0: Elo points, by the logistic curve.
        elo1: Elo points.

    Returns:
        float64[...], nats; 0 without pairs.
    """
    seen = np.maximum(counts, _UNSEEN)
    ratio = _log_likelihood_of_mean(seen, logistic_score(elo1)) - _log_likelihood_of_mean(
        seen, logistic_score(elo0)
    )
    return np.where(np.sum(counts, axis=-1) == 0, 0.0, ratio)


def _log_likelihood_of_mean(weights: Float64Array, mean: float) -> Float64Array:
    """Largest log-likelihood of ``weights`` float64[..., 5] under a mean, up to a constant.

    The best distribution is ``p_i = share_i / (1 + x (score_i - mean))``; x is the root of a
    decreasing function and found by bisection.
    """
    offsets = PAIR_SCORES - mean
    low = np.full(weights.shape[:-1], -1.0 / offsets[-1])
    high = np.full(weights.shape[:-1], -1.0 / offsets[0])
    for _ in range(_NUM_BISECTIONS):
        middle = 0.5 * (low + high)
        slope = (weights * offsets / (1.0 + middle[..., None] * offsets)).sum(axis=-1)
        low = np.where(slope > 0.0, middle, low)
        high = np.where(slope > 0.0, high, middle)
    middle = 0.5 * (low + high)
    total: Float64Array = -(weights * np.log1p(middle[..., None] * offsets)).sum(axis=-1)
    return total
