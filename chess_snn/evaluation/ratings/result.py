"""Ratings as they are told: in Elo points, with how far they can be trusted.

Dimensions: P players, R resamples.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from chess_snn.errors import RatingError
from chess_snn.evaluation.elo import ELO_PER_NAT
from chess_snn.evaluation.ratings.davidson import log_probabilities
from chess_snn.types import Float64Array, Json

_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its confidence interval."""

    value: float
    """Most likely; infinite where the likelihood rises without end, NaN where nothing tells."""
    low: float
    """-inf where nothing bounds it from below."""
    high: float
    """inf where nothing bounds it from above."""

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
    lead one way, as they do from a player who won every game; the other end is then a one-sided
    bound by likelihood ratio."""
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


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """All players on one scale.

    400 points are odds of 10 wins to 1 loss, with equal colours. Where there are draws, a mean
    score is nearer to one half than ``logistic_score`` of the difference: see
    :meth:`chances_of_white`.
    """

    anchor: str
    """The player at 0."""
    confidence: float
    """Of the intervals."""
    players: tuple[str, ...]
    """The P players, sorted by name."""
    table: tuple[Rating, ...]
    """A rating each, the strongest first; those that nothing tells about last."""
    colour_advantage: Estimate
    """Points that playing first is worth."""
    draw_rate: Estimate
    """Share of draws between equal players, colours apart, in [0, 1]."""
    resampled_elo: Float64Array
    """float64[R, P]: ratings from resampled openings; infinite or NaN where those games leave
    them so."""

    def of(self, player: str) -> Rating:
        """The rating of a player.

        Raises:
            RatingError: it has none.
        """
        for rating in self.table:
            if rating.player == player:
                return rating
        raise RatingError(
            f"{player!r} is not rated; rated are {', '.join(self.players)}"
        )

    def difference(self, a: str, b: str) -> Estimate:
        """Points by which ``a`` is ahead of ``b``, with the interval of the difference.

        It is narrower than the two intervals suggest. Where either rating is infinite, it is
        unknown here: rate with one of the two as the anchor.
        """
        elo_a, elo_b = self.of(a).elo.value, self.of(b).elo.value
        if not (math.isfinite(elo_a) and math.isfinite(elo_b)):
            return Estimate(math.nan, -math.inf, math.inf)
        columns = self.resampled_elo[:, [self.players.index(a), self.players.index(b)]]
        # inf - inf is NaN, which counts as no bound on either side.
        with np.errstate(invalid="ignore"):
            resampled = columns[:, 0] - columns[:, 1]
        return interval_estimate(elo_a - elo_b, resampled, self.confidence)

    def chances_of_white(self, white: str, black: str) -> tuple[float, float, float]:
        """Chances of white's (win, draw, loss) in a game of the two; NaN where not finite."""
        advantage = (
            self.of(white).elo.value - self.of(black).elo.value + self.colour_advantage.value
        ) / ELO_PER_NAT
        if not math.isfinite(advantage) or math.isnan(self.draw_rate.value):
            return math.nan, math.nan, math.nan
        log_draw = log_draw_of(self.draw_rate.value)
        win, draw, loss = np.exp(log_probabilities(np.float64(advantage), np.float64(log_draw)))
        return float(win), float(draw), float(loss)

    def to_json(self) -> Json:
        """The anchor, what all players share, and under ``"players"`` the ratings."""
        return {
            "anchor": self.anchor,
            "confidence": self.confidence,
            "colour_advantage": self.colour_advantage.to_json(),
            "draw_rate": self.draw_rate.to_json(),
            "players": [rating.to_json() for rating in self.table],
        }


def draw_rate_of(log_draw: Float64Array) -> Float64Array:
    """float64[...] in [0, 1]: share of draws between equals, v / (2 + v) for v = exp(log_draw)."""
    return 1.0 / (1.0 + 2.0 * np.exp(-log_draw))


def log_draw_of(draw_rate: float) -> float:
    """Undoes :func:`draw_rate_of`; ``draw_rate`` in [0, 1)."""
    if draw_rate == 0.0:
        return -math.inf
    return math.log(2.0 * draw_rate / (1.0 - draw_rate))


def interval_estimate(value: float, resampled: Float64Array, confidence: float) -> Estimate:
    """``value`` with the bias-corrected percentile interval of ``resampled`` float64[R].

    Maximum likelihood puts players a little too far apart, and resamples do so once more; the
    correction takes both away (Efron 1987, "Better bootstrap confidence intervals", JASA 82,
    section 2). A NaN, a resample that leaves the number open, counts as lying beyond both ends.
    """
    is_open = np.isnan(resampled)
    told = resampled[~is_open]
    if not len(told):
        return Estimate(value, -math.inf, math.inf)
    below = np.count_nonzero(told < value) + 0.5 * np.count_nonzero(told == value)
    # Half a resample keeps the share off 0 and 1, where its quantile is infinite.
    bias = _NORMAL.inv_cdf((below + 0.5) / (len(told) + 1.0))
    reach = _NORMAL.inv_cdf(0.5 * (1.0 + confidence))
    low_share, high_share = (_NORMAL.cdf(2.0 * bias + end) for end in (-reach, reach))
    low = np.quantile(np.where(is_open, -np.inf, resampled), low_share, method="lower")
    high = np.quantile(np.where(is_open, np.inf, resampled), high_share, method="higher")
    return Estimate(value, min(float(low), value), max(float(high), value))
