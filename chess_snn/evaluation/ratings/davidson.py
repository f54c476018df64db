"""Model of a result by strength, colour and draws.

Bradley & Terry's model with draws as in Davidson 1970, "On extending the Bradley-Terry model to
accommodate ties in paired comparison experiments", JASA 65, section 2, and with one advantage of
playing first for all, as in Davidson & Beaver 1977, Biometrics 33, and Hunter 2004, "MM algorithms
for generalized Bradley-Terry models", Annals of Statistics 32 (home-field advantage). With
strengths p, colour advantage g and draw parameter v,

    win : draw : loss  =  g p_white  :  v sqrt(g p_white p_black)  :  p_black.

Everything here is in nats: ratings r = ln p, colour c = ln g, log_draw d = ln v, and white's
*advantage* a = r_white + c - r_black. The three log-odds are then a/2 : d : -a/2, an exponential
family, whose log-likelihood is concave. A pairing has three *coordinates*, in which its log-odds
are linear: how far the first player is ahead, c, and d.

Dimensions: P players, K pairings.
"""

from typing import Final

import numpy as np

from chess_snn.types import Float64Array, Int64Array

COLOUR: Final = -2
LOG_DRAW: Final = -1
"""Columns of ``theta`` float64[P + 2]: the players' ratings, then these two."""
NUM_SHARED: Final = 2
"""Parameters that all players share."""

FEATURES: Final[Float64Array] = np.array([
    [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [-0.5, -0.5, 0.0]],
    [[-0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.5, -0.5, 0.0]],
])
"""float64[2, 3, 3]: slope of the log-odds of white's (win, draw, loss) in the coordinates of the
pairing, where the first player is white, and where the second is."""
_COORDINATES: Final[Float64Array] = np.array(
    [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
)
"""float64[4, 3]: slope of the coordinates in (first rating, second rating, c, d)."""


def log_probabilities(
    advantage: Float64Array | np.float64, log_draw: Float64Array | np.float64
) -> Float64Array:
    """Logarithms of white's chances.

    Args:
        advantage: float64[...], white's advantage in nats.
        log_draw: float64 that broadcasts against it.

    Returns:
        float64[..., 3]: ln P of white's (win, draw, loss).
    """
    half = advantage / 2.0
    odds = np.stack(np.broadcast_arrays(half, log_draw, -half), axis=-1)
    top = odds.max(axis=-1, keepdims=True)
    log_odds: Float64Array = odds - top
    logs: Float64Array = log_odds - np.log(np.exp(log_odds).sum(axis=-1, keepdims=True))
    return logs


def log_chances(theta: Float64Array, pairings: Int64Array) -> Float64Array:
    """float64[K, 2, 3]: ln P of white's outcomes, with the first player white, and the second."""
    first, second = pairings.T
    difference = theta[first] - theta[second]
    advantage = theta[COLOUR] + np.stack([difference, -difference], axis=-1)
    return log_probabilities(advantage, theta[LOG_DRAW])


def log_likelihood(theta: Float64Array, counts: Float64Array, pairings: Int64Array) -> float:
    """Log-likelihood of ``counts`` float64[K, 2, 3], games by colour and outcome, in nats."""
    return float((counts * log_chances(theta, pairings)).sum())


def expected_features(
    theta: Float64Array, pairings: Int64Array
) -> tuple[Float64Array, Float64Array]:
    """Mean and covariance of the features of one game.

    Returns:
        float64[K, 2, 3] and float64[K, 2, 3, 3], by pairing and colour.
    """
    chances = np.exp(log_chances(theta, pairings))
    mean = np.einsum("kco,coi->kci", chances, FEATURES)
    # Products of deviations: a difference of products would cancel where a result is certain.
    deviation = FEATURES - mean[:, :, None, :]
    return mean, np.einsum("kco,kcoi,kcoj->kcij", chances, deviation, deviation)


def score(theta: Float64Array, counts: Float64Array, pairings: Int64Array) -> Float64Array:
    """float64[K, 3]: slope of the log-likelihood of ``counts`` in each pairing's coordinates."""
    mean, _ = expected_features(theta, pairings)
    happened = np.einsum("kco,coi->ki", counts, FEATURES)
    slopes: Float64Array = happened - np.einsum("kc,kci->ki", counts.sum(axis=-1), mean)
    return slopes


def information(theta: Float64Array, counts: Float64Array, pairings: Int64Array) -> Float64Array:
    """float64[K, 3, 3]: minus the second derivatives of the log-likelihood, likewise."""
    _, covariance = expected_features(theta, pairings)
    blocks: Float64Array = np.einsum("kc,kcij->kij", counts.sum(axis=-1), covariance)
    return blocks


def gathered_vector(slopes: Float64Array, pairings: Int64Array, num_players: int) -> Float64Array:
    """float64[P + 2]: ``slopes`` float64[K, 3] of all pairings, as those of ``theta``."""
    total = np.zeros(num_players + NUM_SHARED)
    np.add.at(total, _columns(pairings, num_players), slopes @ _COORDINATES.T)
    return total


def gathered_matrix(blocks: Float64Array, pairings: Int64Array, num_players: int) -> Float64Array:
    """float64[P + 2, P + 2]: ``blocks`` float64[K, 3, 3] of all pairings, as those of ``theta``."""
    total = np.zeros((num_players + NUM_SHARED,) * 2)
    columns = _columns(pairings, num_players)
    spread = _COORDINATES @ blocks @ _COORDINATES.T
    np.add.at(total, (columns[:, :, None], columns[:, None, :]), spread)
    return total


def _columns(pairings: Int64Array, num_players: int) -> Int64Array:
    """int64[K, 4]: columns of ``theta`` that matter to each pairing."""
    shared = np.broadcast_to(num_players + np.arange(NUM_SHARED), (len(pairings), NUM_SHARED))
    return np.concatenate([pairings, shared], axis=1)
