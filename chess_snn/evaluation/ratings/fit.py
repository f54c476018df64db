"""Ratings from all games at once.

One joint maximum-likelihood fit, never updates game by game: those depend on the order and carry
no error bar. The model is in `davidson`, the climb in `maximum`, intervals in `bootstrap`, and
what is said of players without a finite rating in `bounds`.

Dimensions: P players, R resamples, K pairings.
"""

from typing import Final

import numpy as np

from chess_snn.config import check_range
from chess_snn.evaluation.elo import ELO_PER_NAT
from chess_snn.evaluation.ratings.bootstrap import resampled_totals
from chess_snn.evaluation.ratings.bounds import likelihood_bounds
from chess_snn.evaluation.ratings.connections import check_connected
from chess_snn.evaluation.ratings.crosstable import Crosstable
from chess_snn.evaluation.ratings.davidson import COLOUR, LOG_DRAW
from chess_snn.evaluation.ratings.maximum import Maximum, initial_theta, maximise
from chess_snn.evaluation.ratings.result import (
    Estimate,
    Rating,
    Ratings,
    draw_rate_of,
    interval_estimate,
)
from chess_snn.types import Float64Array, Int64Array

DEFAULT_ANCHOR: Final = "random"
"""The player at 0."""
DEFAULT_RESAMPLES: Final = 500

_LARGEST_BATCH: Final = 2**23
"""Elements of the matrices of second derivatives that are fitted at once: 64 MiB."""


def fit_ratings(
    table: Crosstable,
    anchor: str = DEFAULT_ANCHOR,
    *,
    confidence: float = 0.95,
    num_resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
) -> Ratings:
    """Rate every player of ``table`` by all its games.

    The same table, ``seed`` and settings give the same ratings and intervals to the bit, in
    whatever order the games came.

    Args:
        table: the games.
        anchor: the player at 0.
        confidence: of the intervals, in (0, 1).
        num_resamples: of the openings, for the intervals; >= 1. For 95 %, some 500.
        seed: of the resampling.

    Raises:
        ConfigError: a number is out of its range.
        RatingError: the anchor has no games, or players no chain of games to it.
    """
    check_range("confidence", confidence, gt=0.0, lt=1.0)
    check_range("num_resamples", num_resamples, ge=1, le=1_000_000)
    index = check_connected(table, anchor)
    totals = table.totals()[None].astype(np.float64)
    best = fit_totals(totals, table.pairings, index, initial_theta(totals, len(table.players)))
    resampled, colours, log_draws = _refits(table, index, best, num_resamples, seed)
    elo = ELO_PER_NAT * best.ratings(index)[0]
    resampled_elo = ELO_PER_NAT * resampled
    return Ratings(
        anchor=anchor,
        confidence=confidence,
        players=table.players,
        table=_rate(table, index, elo, resampled_elo, confidence),
        colour_advantage=_interval_if(
            best.is_determined[0, COLOUR],
            ELO_PER_NAT * best.shared(COLOUR), ELO_PER_NAT * colours, confidence,
        ),
        draw_rate=_interval_if(
            best.is_determined[0, LOG_DRAW],
            draw_rate_of(best.shared(LOG_DRAW)), draw_rate_of(log_draws), confidence,
        ),
        resampled_elo=resampled_elo,
    )


def fit_totals(
    totals: Float64Array, pairings: Int64Array, anchor: int, start: Float64Array
) -> Maximum:
    """Fit ``totals`` float64[B, K, 2, 3] from ``start`` float64[B, P + 2], the anchor staying."""
    tied = np.zeros((len(totals), start.shape[1] + COLOUR), np.bool_)
    tied[:, anchor] = True
    return maximise(totals, pairings, tied, start)


def _refits(
    table: Crosstable, anchor: int, best: Maximum, num_resamples: int, seed: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """float64[R, P], float64[R], float64[R]: ratings, colour advantage, log_draw of resamples."""
    totals = resampled_totals(table, num_resamples, seed)
    # What the games left open has wandered off; the resamples begin where everybody is equal.
    fresh = initial_theta(table.totals()[None].astype(np.float64), len(table.players))
    start = np.where(best.is_determined & np.isfinite(best.theta), best.theta, fresh)
    rows = max(1, _LARGEST_BATCH // start.shape[1] ** 2)
    fits = [
        fit_totals(part, table.pairings, anchor, np.repeat(start, len(part), axis=0))
        for part in np.split(totals, range(rows, num_resamples, rows))
    ]
    return (
        np.concatenate([fit.ratings(anchor) for fit in fits]),
        np.concatenate([fit.shared(COLOUR) for fit in fits]),
        np.concatenate([fit.shared(LOG_DRAW) for fit in fits]),
    )


def _rate(
    table: Crosstable, anchor: int, elo: Float64Array, resampled_elo: Float64Array,
    confidence: float,
) -> tuple[Rating, ...]:
    estimates = [
        interval_estimate(float(elo[player]), resampled_elo[:, player], confidence)
        for player in range(len(elo))
    ]
    unrated = np.flatnonzero(~np.isfinite(elo))
    if len(unrated):
        lows, highs = likelihood_bounds(table, anchor, unrated, confidence)
        for player, low, high in zip(unrated, lows, highs, strict=True):
            estimates[player] = _bounded(ELO_PER_NAT * float(low), ELO_PER_NAT * float(high))
    num_games, scores = table.games_and_scores()
    ratings = [
        Rating(name, estimate, int(games), float(score))
        for name, estimate, games, score in zip(
            table.players, estimates, num_games, scores, strict=True
        )
    ]
    return tuple(sorted(ratings, key=_strongest_first))


def _bounded(low: float, high: float) -> Estimate:
    """What bounds alone say of a rating: it has no most likely value unless all but one side go."""
    if np.isfinite(low) and np.isposinf(high):
        return Estimate(np.inf, low, high)
    if np.isneginf(low) and np.isfinite(high):
        return Estimate(-np.inf, low, high)
    return Estimate(np.nan, low, high)


def _strongest_first(rating: Rating) -> tuple[bool, float, float, str]:
    """Sorts by rating; equal infinite ones by their bounds, those that nothing tells about last."""
    elo = rating.elo
    if np.isnan(elo.value):
        return True, 0.0, 0.0, rating.player
    bound = elo.low if np.isposinf(elo.value) else elo.high
    return False, -elo.value, -bound, rating.player


def _interval_if(
    is_determined: np.bool_, value: Float64Array, resampled: Float64Array, confidence: float
) -> Estimate:
    """Of what all players share, ``value`` float64[1]; nothing is known where it is left open."""
    if not is_determined:
        return Estimate(np.nan, -np.inf, np.inf)
    return interval_estimate(float(value[0]), resampled, confidence)
