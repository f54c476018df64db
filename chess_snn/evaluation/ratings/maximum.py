"""Maximum likelihood, for many tables at once: Newton's method with a line search.

Where one side of two components won every game, the likelihood rises as their distance grows, and
its supremum is that of the components apart: those games then have probability 1 and drop out. So
each component is fitted relative to one of its own players, all of them with one colour advantage
and one draw parameter; players without a finite rating distort nobody's.

Dimensions: B fits at once, P players, K pairings.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from chess_snn.evaluation.ratings.connections import reachable
from chess_snn.evaluation.ratings.crosstable import DRAW
from chess_snn.evaluation.ratings.davidson import (
    COLOUR,
    LOG_DRAW,
    NUM_SHARED,
    derivatives,
    log_likelihood,
)
from chess_snn.types import BoolArray, Float64Array, Int64Array

_MAX_ITERATIONS: Final = 200
_TOLERANCE: Final = 1e-12
"""Half the squared Newton decrement, about the log-likelihood still to gain in nats, at which the
last step is taken (Boyd & Vandenberghe 2004, Convex Optimization, section 9.5)."""
_LONGEST_STEP: Final = 5.0
"""Nats that a parameter moves at once: far from the maximum the curvature says little."""
_ARMIJO: Final = 0.1
_MAX_HALVINGS: Final = 40
_RIDGE: Final = 1e-14
"""Added to the information, relative to its largest element, so that it can always be solved."""
_LARGEST_VARIANCE: Final = 1e6
"""A parameter with a standard error above 1,000 nats is one that the games do not determine."""
_FAR: Final = 10.0
"""Nats. Where the likelihood rises without end the climb covers more than this before it is flat;
where it is flat from the beginning, nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Maximum:
    """Where the likelihood of B tables is largest."""

    theta: Float64Array
    """float64[B, P + 2], nats; ratings relative to a player of the same component, whose own is
    what it was at the start."""
    is_determined: BoolArray
    """bool[B, P + 2]: False where no finite value is the only best; ``theta`` is then any value
    at which the likelihood is as good as its supremum."""
    heading: Float64Array
    """float64[B, P + 2]: of those that are not determined, inf or -inf where the likelihood rises
    that way without end, NaN where nothing tells."""
    log_likelihood: Float64Array
    """float64[B], nats, of the games within components; the others have probability 1."""
    reach: BoolArray
    """bool[B, P, P]: see :func:`chess_snn.evaluation.ratings.connections.reachable`."""

    def ratings(self, anchor: int) -> Float64Array:
        """float64[B, P]: nats above player ``anchor``, which is among the tied.

        Infinite where the likelihood rises without end: where all chains of results lead one way,
        or colours and draws can explain the rest. NaN where nothing tells.
        """
        num_players = self.theta.shape[1] - NUM_SHARED
        above, below = self.reach[:, :, anchor], self.reach[:, anchor, :]
        ratings = np.where(above, np.inf, np.where(below, -np.inf, np.nan))
        finite = above & below
        is_open = finite & ~self.is_determined[:, :num_players]
        ratings[finite] = (self.theta[:, :num_players] - self.theta[:, [anchor]])[finite]
        ratings[is_open] = self.heading[:, :num_players][is_open]
        return ratings

    def shared(self, column: int) -> Float64Array:
        """float64[B]: the colour advantage or the draw parameter, infinite or NaN like ratings."""
        return np.where(
            self.is_determined[:, column], self.theta[:, column], self.heading[:, column]
        )


def initial_theta(counts: Float64Array, num_players: int) -> Float64Array:
    """float64[B, P + 2]: everybody equal, draws as in ``counts`` float64[B, K, 2, 3]."""
    theta = np.zeros((len(counts), num_players + NUM_SHARED))
    draws = counts[..., DRAW].sum(axis=(1, 2))
    # At least one half keeps the start finite; where there is no draw it is not used.
    decisive = np.maximum(counts.sum(axis=(1, 2, 3)) - draws, 0.5)
    theta[:, LOG_DRAW] = np.log(np.maximum(2.0 * draws, 0.5) / decisive)
    return theta


def maximise(
    counts: Float64Array, pairings: Int64Array, tied: BoolArray, start: Float64Array
) -> Maximum:
    """Fit B tables.

    Args:
        counts: float64[B, K, 2, 3], games by colour and white's outcome; need not be whole.
        pairings: int64[K, 2].
        tied: bool[B, P], players who keep their rating of ``start``; at least one a row.
        start: float64[B, P + 2], where to begin; finite.
    """
    reach = reachable(counts, pairings, tied)
    mutual = reach & reach.swapaxes(1, 2)
    first, second = pairings.T
    inner = counts * mutual[:, first, second][:, :, None, None]
    fixed = np.zeros(start.shape, np.bool_)
    fixed[:, :COLOUR] = _references(mutual, tied)
    without_draws = inner[..., DRAW].sum(axis=(1, 2)) == 0
    theta = start.copy()
    theta[without_draws, LOG_DRAW] = -np.inf
    fixed[:, LOG_DRAW] = without_draws
    _climb(theta, inner, pairings, fixed)
    _, information = derivatives(theta, inner, pairings)
    variances = np.diagonal(np.linalg.inv(_solvable(information, fixed)), axis1=1, axis2=2)
    moved = theta - start
    return Maximum(
        theta=theta,
        is_determined=fixed | (variances <= _LARGEST_VARIANCE),
        heading=np.where(np.abs(moved) > _FAR, np.copysign(np.inf, moved), np.nan),
        log_likelihood=log_likelihood(theta, inner, pairings),
        reach=reach,
    )


def _references(mutual: BoolArray, tied: BoolArray) -> BoolArray:
    """bool[B, P]: the tied players, and the first player of every component without one."""
    first_of_component = mutual.argmax(axis=2) == np.arange(mutual.shape[1])
    has_tied = (mutual & tied[:, None, :]).any(axis=2)
    references: BoolArray = tied | (first_of_component & ~has_tied)
    return references


def _climb(
    theta: Float64Array, counts: Float64Array, pairings: Int64Array, fixed: BoolArray
) -> None:
    """Move ``theta`` to the maximum, in place; rows that are there rest."""
    active = np.arange(len(theta))
    for _ in range(_MAX_ITERATIONS):
        gradient, information = derivatives(theta[active], counts[active], pairings)
        gradient[fixed[active]] = 0.0
        matrix = _solvable(information, fixed[active])
        step: Float64Array = np.linalg.solve(matrix, gradient[..., None])[..., 0].astype(np.float64)
        slope: Float64Array = (gradient * step).sum(axis=1)
        arrived = slope <= 2.0 * _TOLERANCE
        size = _step_sizes(theta[active], step, slope, counts[active], pairings)
        theta[active] += np.where(arrived, 1.0, size)[:, None] * step
        active = active[~arrived]
        if not len(active):
            return


def _step_sizes(
    theta: Float64Array, step: Float64Array, slope: Float64Array, counts: Float64Array,
    pairings: Int64Array,
) -> Float64Array:
    """float64[B] in (0, 1]: shares of ``step`` that gain enough (Armijo's rule, by halving)."""
    longest = np.maximum(np.abs(step).max(axis=1), _LONGEST_STEP)
    size: Float64Array = _LONGEST_STEP / longest
    before = log_likelihood(theta, counts, pairings)
    rounding = 1e-13 * (1.0 + np.abs(before))
    for _ in range(_MAX_HALVINGS):
        gain = log_likelihood(theta + size[:, None] * step, counts, pairings) - before
        too_long = gain < _ARMIJO * size * slope - rounding
        if not too_long.any():
            break
        size[too_long] /= 2.0
    return size


def _solvable(information: Float64Array, fixed: BoolArray) -> Float64Array:
    """``information`` with fixed parameters cut out (rows of the identity) and a faint ridge."""
    free = ~fixed
    matrix: Float64Array = information * (free[:, :, None] & free[:, None, :])
    diagonal = np.arange(fixed.shape[1])
    largest = matrix[:, diagonal, diagonal].max(axis=1, keepdims=True)
    ridge = _RIDGE * np.maximum(largest, 1.0)
    matrix[:, diagonal, diagonal] += np.where(fixed, 1.0, ridge)
    return matrix
