"""The model of ratings, and ratings as people read them: in Elo points, with confidence intervals.

Bradley & Terry's model with draws as in Davidson 1970, "On extending the Bradley-Terry model to
accommodate ties in paired comparison experiments", JASA 65, section 2, and with one advantage of
playing first for all, as in Davidson & Beaver 1977, Biometrics 33, and Hunter 2004, "MM algorithms
for generalized Bradley-Terry models", Annals of Statistics 32 (home-field advantage). With
strengths p, colour advantage g and draw parameter v,

    win : draw : loss  =  g p_white  :  v sqrt(g p_white p_black)  :  p_black.

The model is in nats: ratings r = ln p, colour c = ln g, log_draw d = ln v, and white's
*advantage* a = r_white + c - r_black. The three log-odds are then a/2 : d : -a/2, an exponential
family, whose log-likelihood is concave. A pairing has three *coordinates*, in which its log-odds
are linear: how far the first player is ahead, c, and d.

Dimensions: P players, K pairings.
"""

import functools
import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Self

import numpy as np

from chess_snn.errors import RatingError
from chess_snn.evaluation.scores import ELO_PER_NAT
from chess_snn.types import BoolArray, Float64Array, Int64Array, Json

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


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its confidence interval."""

    value: float
    """Most likely."""
    low: float
    """-inf where nothing bounds it from below."""
    high: float
    """inf where nothing bounds it from above."""

    @property
    def width(self) -> float:
        """Of the interval; infinite where an end is."""
        return self.high - self.low

    @classmethod
    def of_json(cls, value: float, low: float | None, high: float | None) -> Self:
        """From the numbers of :meth:`to_json`, whose ``value`` is finite."""
        return cls(
            value, -math.inf if low is None else low, math.inf if high is None else high
        )

    def to_json(self) -> Json:
        """``value``, ``low`` and ``high``, null where not finite."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        return {name: number if math.isfinite(number) else None
                for name, number in numbers.items()}


def interval_text(low: float, high: float) -> str:
    """The interval of a rating for people: ``730 to 905``, the one bound there is, or unknown."""
    if math.isfinite(low) and math.isfinite(high):
        return f"{low:.0f} to {high:.0f}"
    if math.isfinite(low):
        return f"at least {low:.0f}"
    return f"at most {high:.0f}" if math.isfinite(high) else "unknown"


@dataclass(frozen=True, slots=True)
class Rating:
    """One player's."""

    player: str
    elo: Estimate
    """Points above the anchor. One end of the interval is infinite where all chains of results
    lead one way, as they do from a player who won every game; the other is then a one-sided
    bound."""
    num_games: int
    score: float
    """Mean score in these games, in [0, 1]."""

    def to_json(self) -> Json:
        """Name, games, score, and ``elo``, ``elo_low``, ``elo_high``: null where not finite."""
        elo = self.elo.to_json()
        return {
            "player": self.player, "num_games": self.num_games, "score": self.score,
            "elo": elo["value"], "elo_low": elo["low"], "elo_high": elo["high"],
        }


@dataclass(frozen=True, eq=False)
class Ratings:
    """All players on one scale.

    400 points are odds of 10 wins to 1 loss, with equal colours. Where there are draws, a mean
    score is nearer to one half than ``logistic_score`` of the difference.
    """

    anchor: str
    """The player at 0."""
    confidence: float
    """Of the intervals."""
    players: tuple[str, ...]
    """The P players, sorted by name."""
    theta: Float64Array
    """float64[P + 2], nats: ratings, colour advantage, logarithm of the draw parameter."""
    covariance: Float64Array
    """float64[P + 2, P + 2], of ``theta``."""
    is_chained: BoolArray
    """bool[P, P]: [i, j] whether a chain of players, of whom each scored against the next, leads
    from i to j. Without one, j may be infinitely far above i."""
    num_games: Int64Array
    """int64[P]."""
    scores: Float64Array
    """float64[P], mean scores in [0, 1]."""

    @functools.cached_property
    def table(self) -> tuple[Rating, ...]:
        """A rating each, the strongest first."""
        ratings = map(self.of, self.players)
        return tuple(sorted(ratings, key=lambda rating: (-rating.elo.value, rating.player)))

    def of(self, player: str) -> Rating:
        """The rating of a player.

        Raises:
            RatingError: it has none.
        """
        place = self._place(player)
        return Rating(
            player, self.difference(player, self.anchor), int(self.num_games[place]),
            float(self.scores[place]),
        )

    @property
    def colour_advantage(self) -> Estimate:
        """Points that playing first is worth."""
        return self._points(self.theta[COLOUR], self.covariance[COLOUR, COLOUR])

    @property
    def draw_rate(self) -> Estimate:
        """Share of draws between equal players, colours apart, in (0, 1)."""
        ends = self._points(self.theta[LOG_DRAW], self.covariance[LOG_DRAW, LOG_DRAW])
        equal = np.float64(0.0)
        value, low, high = (
            float(np.exp(log_probabilities(equal, np.float64(points / ELO_PER_NAT)))[1])
            for points in (ends.value, ends.low, ends.high)
        )
        return Estimate(value, low, high)

    def difference(self, a: str, b: str) -> Estimate:
        """Points by which ``a`` is ahead of ``b``, with the interval of the difference.

        It is narrower than the two intervals suggest.
        """
        first, second = self._place(a), self._place(b)
        variances = self.covariance[np.ix_([first, second], [first, second])]
        return self._points(
            self.theta[first] - self.theta[second],
            variances[0, 0] - variances[0, 1] - variances[1, 0] + variances[1, 1],
            has_low=bool(self.is_chained[first, second]),
            has_high=bool(self.is_chained[second, first]),
        )

    def to_json(self) -> Json:
        """The anchor, what all players share, and under ``"players"`` the ratings."""
        return {
            "anchor": self.anchor,
            "confidence": self.confidence,
            "colour_advantage": self.colour_advantage.to_json(),
            "draw_rate": self.draw_rate.to_json(),
            "players": [rating.to_json() for rating in self.table],
        }

    def _place(self, player: str) -> int:
        if player not in self.players:
            raise RatingError(f"{player!r} is not rated; rated are {', '.join(self.players)}")
        return self.players.index(player)

    def _points(
        self, nats: float, variance: float, *, has_low: bool = True, has_high: bool = True
    ) -> Estimate:
        """The normal interval in points, one-sided where an end is missing."""
        error = 1.0 - self.confidence
        reach = NormalDist().inv_cdf(1.0 - (error / 2.0 if has_low and has_high else error))
        value, half = (
            float(ELO_PER_NAT * number) for number in (nats, reach * math.sqrt(max(0.0, variance)))
        )
        return Estimate(
            value, value - half if has_low else -math.inf, value + half if has_high else math.inf
        )
