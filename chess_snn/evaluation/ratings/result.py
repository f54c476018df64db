"""Ratings as people read them: in Elo points, with confidence intervals.

Dimensions: P players.
"""

import functools
import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from chess_snn.errors import RatingError
from chess_snn.evaluation.ratings.davidson import COLOUR, LOG_DRAW, log_probabilities
from chess_snn.evaluation.scores import ELO_PER_NAT
from chess_snn.types import BoolArray, Float64Array, Int64Array, Json


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
        """Return the width of the interval; infinite where an end is."""
        return self.high - self.low

    @classmethod
    def of_json(cls, value: float, low: float | None, high: float | None) -> Self:
        """Read the numbers of :meth:`to_json`, whose ``value`` is finite."""
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
    """Confidence of the intervals."""
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
        from statistics import NormalDist  # noqa: PLC0415 - showing a game need not wait for it

        error = 1.0 - self.confidence
        reach = NormalDist().inv_cdf(1.0 - (error / 2.0 if has_low and has_high else error))
        value, half = (
            float(ELO_PER_NAT * number) for number in (nats, reach * math.sqrt(max(0.0, variance)))
        )
        return Estimate(
            value, value - half if has_low else -math.inf, value + half if has_high else math.inf
        )
