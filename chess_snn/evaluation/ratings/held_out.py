"""Whether ratings predict games they were not fitted to.

Dimensions: K pairings, M = 2 K fixtures (a pairing with its colours).
"""

from dataclasses import dataclass

import numpy as np

from chess_snn.config import check_range
from chess_snn.errors import RatingError
from chess_snn.evaluation.ratings.connections import check_connected
from chess_snn.evaluation.ratings.crosstable import DRAW, WIN, Crosstable
from chess_snn.evaluation.ratings.davidson import (
    COLOUR,
    LOG_DRAW,
    advantages,
    log_probabilities,
)
from chess_snn.evaluation.ratings.fit import DEFAULT_ANCHOR, fit_totals
from chess_snn.evaluation.ratings.maximum import Maximum, initial_theta
from chess_snn.rng import generator
from chess_snn.types import BoolArray, Float64Array, Int64Array, Json

NUM_BINS = 10
"""Bins of the calibration, of equal width."""


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Held-out games in which white was expected to score between ``low`` and ``high``."""

    low: float
    high: float
    num_games: int
    expected_score: float
    """Mean score that was predicted for white; NaN without games."""
    score: float
    """Mean score that white had; NaN without games."""


@dataclass(frozen=True, slots=True)
class HeldOutCheck:
    """Predictions of held-out games, beside those of a predictor that knows no players."""

    num_fitted: int
    """Games that the ratings were fitted to."""
    num_predicted: int
    """Held-out games that were predicted."""
    num_unpredicted: int
    """Held-out games whose players the fitted ones leave infinitely far apart, or not compared."""
    log_loss: float
    """Mean of -ln P(what happened), nats a predicted game; inf where the impossible happened."""
    constant_log_loss: float
    """The same with white's (win, draw, loss) as frequent as in the fitted games, in every game."""
    bins: tuple[CalibrationBin, ...]

    def to_json(self) -> Json:
        """Everything; null where a bin has no games or a loss is infinite."""
        numbers = {
            name: getattr(self, name)
            for name in ("num_fitted", "num_predicted", "num_unpredicted")
        }
        losses = {
            name: loss if np.isfinite(loss := getattr(self, name)) else None
            for name in ("log_loss", "constant_log_loss")
        }
        bins = [
            {
                "low": row.low, "high": row.high, "num_games": row.num_games,
                "expected_score": row.expected_score if row.num_games else None,
                "score": row.score if row.num_games else None,
            }
            for row in self.bins
        ]
        return {**numbers, **losses, "bins": bins}


def held_out_check(
    table: Crosstable, anchor: str = DEFAULT_ANCHOR, *, fitted_share: float = 0.8, seed: int = 0
) -> HeldOutCheck:
    """Fit to some openings of every pairing, and predict the games of the others.

    Args:
        table: all games.
        anchor: a player; which one changes nothing.
        fitted_share: of each pairing's openings that are fitted, in (0, 1); at least one is.
        seed: of the choice.

    Raises:
        ConfigError: ``fitted_share`` is out of its range.
        RatingError: see :func:`chess_snn.evaluation.ratings.fit.fit_ratings`; or nothing is left
            to predict, or what is left cannot be.
    """
    check_range("fitted_share", fitted_share, gt=0.0, lt=1.0)
    index = check_connected(table, anchor)
    fitted = table.sum_of(_fitted_openings(table, fitted_share, seed)).astype(np.float64)
    held_out = table.totals() - fitted
    fit = fit_totals(
        fitted[None], table.pairings, index, initial_theta(fitted[None], len(table.players))
    )
    predictable = _predictable(fit, table.pairings)
    fixtures = held_out[predictable].reshape(-1, held_out.shape[-1])
    num_predicted = int(fixtures.sum())
    if not num_predicted:
        raise RatingError(
            f"none of {int(held_out.sum())} held-out games can be predicted; play more openings of "
            "each pairing, or more pairings"
        )
    chances = log_probabilities(
        advantages(fit.theta, table.pairings)[:, predictable],
        fit.theta[:, None, None, LOG_DRAW],
    ).reshape(fixtures.shape)
    with np.errstate(divide="ignore"):
        frequencies = np.log(fitted.sum(axis=(0, 1)) / fitted.sum())
    return HeldOutCheck(
        num_fitted=int(fitted.sum()),
        num_predicted=num_predicted,
        num_unpredicted=int(held_out.sum()) - num_predicted,
        log_loss=_log_loss(fixtures, chances),
        constant_log_loss=_log_loss(fixtures, np.broadcast_to(frequencies, fixtures.shape)),
        bins=_calibration(fixtures, np.exp(chances)),
    )


def _fitted_openings(table: Crosstable, share: float, seed: int) -> Int64Array:
    """int64[U]: of how many openings with each result the games are fitted."""
    fitted = np.empty_like(table.num_openings)
    for pairing, (first, second) in enumerate(table.pairings):
        stream = generator(seed, "held_out", table.players[first], table.players[second])
        rows = table.pairing_of == pairing
        openings = table.num_openings[rows]
        num_fitted = max(1, round(share * int(openings.sum())))
        fitted[rows] = stream.multivariate_hypergeometric(openings, num_fitted)
    return fitted


def _predictable(fit: Maximum, pairings: Int64Array) -> BoolArray:
    """bool[K]: whether the fit gives the pairing's players a finite distance."""
    first, second = pairings.T
    reach, is_determined = fit.reach[0], fit.is_determined[0]
    shared = is_determined[COLOUR] & is_determined[LOG_DRAW]
    found: BoolArray = (
        reach[first, second] & reach[second, first]
        & is_determined[first] & is_determined[second] & shared
    )
    return found


def _log_loss(fixtures: Float64Array, log_chances: Float64Array) -> float:
    """Mean over games of -ln P; both arrays are float64[M, 3]."""
    # What did not happen costs nothing, even where it was called impossible.
    terms = np.multiply(
        fixtures, log_chances, out=np.zeros_like(fixtures), where=fixtures > 0
    )
    return float(-terms.sum() / fixtures.sum())


def _calibration(fixtures: Float64Array, chances: Float64Array) -> tuple[CalibrationBin, ...]:
    """Fixtures by the score that is predicted for white; both arrays are float64[M, 3]."""
    expected = chances[:, WIN] + 0.5 * chances[:, DRAW]
    points = fixtures[:, WIN] + 0.5 * fixtures[:, DRAW]
    games = fixtures.sum(axis=1)
    bin_of = np.minimum((expected * NUM_BINS).astype(np.int64), NUM_BINS - 1)
    bins = []
    for number in range(NUM_BINS):
        rows = bin_of == number
        num_games = games[rows].sum()
        bins.append(CalibrationBin(
            low=number / NUM_BINS,
            high=(number + 1) / NUM_BINS,
            num_games=int(num_games),
            expected_score=float((expected * games)[rows].sum() / num_games)
            if num_games else np.nan,
            score=float(points[rows].sum() / num_games) if num_games else np.nan,
        ))
    return tuple(bins)
