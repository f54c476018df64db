"""How far a rating can be from the anchor when nothing says how far it is.

A player who won all its games has no finite rating, but not every rating explains what it did
equally well. A bound is where the likelihood, maximised over everything else, falls to 1 -
confidence of its supremum. For two players it is the exact one-sided bound of a clean sweep
(Hanley & Lippman-Hand 1983, "If nothing goes wrong, is everything all right?", JAMA 249): with
ratings that far apart, winning everything has probability 1 - confidence.

The games of one opening are not independent. A pairing's games are weighted so that they count as
many as its openings: no dependence within an opening makes them worth less.

Dimensions: B = players asked for, P players in all, K pairings.
"""

import math
from typing import Final

import numpy as np

from chess_snn.evaluation.ratings.crosstable import Crosstable
from chess_snn.evaluation.ratings.davidson import COLOUR
from chess_snn.evaluation.ratings.maximum import Maximum, initial_theta, maximise
from chess_snn.types import BoolArray, Float64Array, Int64Array

_FARTHEST: Final = 40.0
"""Nats from the anchor, about 7,000 points; what is not excluded there counts as unbounded."""
_NUM_BISECTIONS: Final = 36
"""Halves the range to less than a millionth of a point."""


def likelihood_bounds(
    table: Crosstable, anchor: int, players: Int64Array, confidence: float
) -> tuple[Float64Array, Float64Array]:
    """One-sided bounds of players' ratings relative to ``anchor``, each at ``confidence``.

    Args:
        table: all games.
        anchor: a player's index.
        players: int64[B], indices, without the anchor.
        confidence: in (0, 1).

    Returns:
        float64[B] and float64[B], nats: lower and upper bounds, infinite where the games exclude
        nothing on that side.
    """
    num_players = len(table.players)
    totals = table.totals()
    share = table.openings_of_pairings() / totals.sum(axis=(1, 2))
    counts = (totals * share[:, None, None])[None]
    at_anchor = np.zeros((1, num_players), np.bool_)
    at_anchor[0, anchor] = True
    best = maximise(counts, table.pairings, at_anchor, initial_theta(counts, num_players))
    ratings = best.ratings(anchor)[0, players]
    # Where nothing tells, any rating is as good as the best.
    as_good = best.theta[0, players] - best.theta[0, anchor]
    inside = np.clip(np.where(np.isnan(ratings), as_good, ratings), -_FARTHEST, _FARTHEST)
    profile = _Profile(counts, table.pairings, best, anchor, players)
    allowed = -math.log(1.0 - confidence)
    return (
        _end(profile, inside, -_FARTHEST, allowed),
        _end(profile, inside, _FARTHEST, allowed),
    )


def _end(
    profile: "_Profile", inside: Float64Array, farthest: float, allowed: float
) -> Float64Array:
    """float64[B]: where the loss passes ``allowed`` between ``inside`` and ``farthest``.

    The log-likelihood is concave, so there is one such place, or none: then the answer is infinite.
    """
    outside = np.full(len(inside), farthest)
    is_unbounded: BoolArray = profile.loss(outside) <= allowed
    for _ in range(_NUM_BISECTIONS):
        middle = 0.5 * (inside + outside)
        is_inside = profile.loss(middle) <= allowed
        inside = np.where(is_inside, middle, inside)
        outside = np.where(is_inside, outside, middle)
    return np.where(is_unbounded, math.copysign(math.inf, farthest), inside)


class _Profile:
    """The likelihood with one player's rating given, in a row for each of B players."""

    def __init__(
        self, counts: Float64Array, pairings: Int64Array, best: Maximum, anchor: int,
        players: Int64Array,
    ) -> None:
        self._counts = np.repeat(counts, len(players), axis=0)
        self._pairings = pairings
        self._supremum = best.log_likelihood[0]
        self._players = players
        self._rows = np.arange(len(players))
        start = best.theta.copy()
        start[0, :COLOUR] -= start[0, anchor]
        # Where draws cannot happen the start is not used; it has to be finite.
        start[~np.isfinite(start)] = 0.0
        self._start = np.repeat(start, len(players), axis=0)
        self._tied = np.zeros((len(players), start.shape[1] + COLOUR), np.bool_)
        self._tied[:, anchor] = True
        self._tied[self._rows, players] = True

    def loss(self, ratings: Float64Array) -> Float64Array:
        """float64[B]: nats by which the best fit with these ratings falls short of the best."""
        self._start[self._rows, self._players] = ratings
        fitted = maximise(self._counts, self._pairings, self._tied, self._start)
        # The next ratings asked for are near these, and so is their fit.
        self._start = np.where(np.isfinite(fitted.theta), fitted.theta, self._start)
        shortfall: Float64Array = self._supremum - fitted.log_likelihood
        return shortfall
