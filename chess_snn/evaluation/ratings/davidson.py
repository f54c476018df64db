"""How strength, colour and draws make a result.

Bradley & Terry's model with draws as in Davidson 1970, "On extending the Bradley-Terry model to
accommodate ties in paired comparison experiments", JASA 65, section 2, and with one advantage of
playing first for all, as in Davidson & Beaver 1977, Biometrics 33, and Hunter 2004, "MM algorithms
for generalized Bradley-Terry models", Annals of Statistics 32 (home-field advantage). With
strengths p, colour advantage g and draw parameter v,

    win : draw : loss  =  g p_white  :  v sqrt(g p_white p_black)  :  p_black.

Everything here is in nats: ratings r = ln p, colour c = ln g, log_draw d = ln v, and white's
*advantage* a = r_white + c - r_black. The three log-odds are then a/2 : d : -a/2, an exponential
family, whose log-likelihood is concave.

Dimensions: B fits at once, P players, K pairings.
"""

from typing import Final

import numpy as np

from chess_snn.evaluation.ratings.crosstable import (
    DRAW,
    FIRST_WHITE,
    LOSS,
    SECOND_WHITE,
    WIN,
)
from chess_snn.types import Float64Array, Int64Array

COLOUR: Final = -2
LOG_DRAW: Final = -1
"""Columns of ``theta`` float64[B, P + 2]: the players' ratings, then these two.

``LOG_DRAW`` is -inf where draws have probability 0."""
NUM_SHARED: Final = 2
"""Parameters that all players share."""


def log_probabilities(
    advantage: Float64Array | np.float64, log_draw: Float64Array | np.float64
) -> Float64Array:
    """Logarithms of white's chances.

    Args:
        advantage: float64[...], white's advantage in nats.
        log_draw: float64 that broadcasts against it; -inf makes draws impossible.

    Returns:
        float64[..., 3]: ln P of white's (win, draw, loss).
    """
    half = advantage / 2.0
    odds = np.stack(np.broadcast_arrays(half, log_draw, -half), axis=-1)
    top = odds.max(axis=-1, keepdims=True)
    log_odds: Float64Array = odds - top
    logs: Float64Array = log_odds - np.log(np.exp(log_odds).sum(axis=-1, keepdims=True))
    return logs


def advantages(theta: Float64Array, pairings: Int64Array) -> Float64Array:
    """float64[B, K, 2]: white's advantage in each pairing, by colour."""
    first, second = pairings.T
    difference = theta[:, first] - theta[:, second]
    return theta[:, None, None, COLOUR] + np.stack([difference, -difference], axis=-1)


def log_likelihood(
    theta: Float64Array, counts: Float64Array, pairings: Int64Array
) -> Float64Array:
    """Log-likelihood of games.

    Args:
        theta: float64[B, P + 2], parameters.
        counts: float64[B, K, 2, 3], games by colour and white's outcome; need not be whole.
        pairings: int64[K, 2].

    Returns:
        float64[B], nats; -inf where something happened that ``theta`` calls impossible.
    """
    logs = log_probabilities(advantages(theta, pairings), theta[:, None, None, LOG_DRAW])
    # What did not happen counts nothing, even where its logarithm is -inf.
    terms = np.multiply(counts, logs, out=np.zeros_like(logs), where=counts > 0)
    total: Float64Array = terms.sum(axis=(1, 2, 3))
    return total


def derivatives(
    theta: Float64Array, counts: Float64Array, pairings: Int64Array
) -> tuple[Float64Array, Float64Array]:
    """Gradient of the log-likelihood, and its information: minus the matrix of second derivatives.

    Args:
        theta: float64[B, P + 2], parameters.
        counts: float64[B, K, 2, 3].
        pairings: int64[K, 2].

    Returns:
        float64[B, P + 2] and float64[B, P + 2, P + 2], the latter positive semidefinite.
    """
    chances = np.exp(
        log_probabilities(advantages(theta, pairings), theta[:, None, None, LOG_DRAW])
    )
    win, draw, loss = chances[..., WIN], chances[..., DRAW], chances[..., LOSS]
    games = counts.sum(axis=-1)
    slope = 0.5 * (counts[..., WIN] - counts[..., LOSS] - games * (win - loss))
    draw_slope = counts[..., DRAW] - games * draw
    # Variances and covariance of (half the sign of the result, whether drawn), products throughout:
    # differences would cancel where a result is nearly certain.
    curve = games * (win * loss + 0.25 * draw * (win + loss))
    cross = 0.5 * games * draw * (loss - win)
    draw_curve = games * draw * (win + loss)

    num_players = theta.shape[1] - NUM_SHARED
    signs = _signs(pairings, num_players)
    gradient = np.empty_like(theta)
    gradient[:, :num_players] = _by_colour(slope) @ signs
    gradient[:, COLOUR] = slope.sum(axis=(1, 2))
    gradient[:, LOG_DRAW] = draw_slope.sum(axis=(1, 2))

    information = np.zeros((*theta.shape, theta.shape[1]))
    first, second = pairings.T
    meetings = curve.sum(axis=-1)
    information[:, first, second] = information[:, second, first] = -meetings
    players = np.arange(num_players)
    information[:, players, players] = meetings @ np.abs(signs)
    for column, values in ((COLOUR, curve), (LOG_DRAW, cross)):
        shared = _by_colour(values) @ signs
        information[:, :num_players, column] = information[:, column, :num_players] = shared
    information[:, COLOUR, COLOUR] = curve.sum(axis=(1, 2))
    information[:, LOG_DRAW, LOG_DRAW] = draw_curve.sum(axis=(1, 2))
    information[:, COLOUR, LOG_DRAW] = information[:, LOG_DRAW, COLOUR] = cross.sum(axis=(1, 2))
    return gradient, information


def _by_colour(values: Float64Array) -> Float64Array:
    """float64[B, K]: with the first player white, less with the second white."""
    return values[..., FIRST_WHITE] - values[..., SECOND_WHITE]


def _signs(pairings: Int64Array, num_players: int) -> Float64Array:
    """float64[K, P]: +1 at each pairing's first player, -1 at its second."""
    signs = np.zeros((len(pairings), num_players))
    rows = np.arange(len(pairings))
    first, second = pairings.T
    signs[rows, first] = 1.0
    signs[rows, second] = -1.0
    return signs
