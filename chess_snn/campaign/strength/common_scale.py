"""The scale on which networks of different campaigns are compared.

In chess it is the rating on the ladder, in a game of one player the mean points of a game. Ratings
by a campaign's own games have a scale of their own and say nothing about other campaigns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Final, Literal, Self

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.receipts import Receipt
from chess_snn.evaluation.ratings.result import interval_text
from chess_snn.wording import counted

Measure = Literal["elo", "points"]
_WORDS: Final[dict[Measure, str]] = {"elo": "Elo", "points": "points:"}


@dataclass(frozen=True, slots=True)
class Strength:
    """Strength of a network, with its search budget, on a scale that campaigns share."""

    measure: Measure
    scale: str
    """Names the scale: ratings on another ladder have another one. Empty if it is not known."""
    simulations: int
    """Search budget of the network at each move; 0 is without search."""
    value: float
    low: float | None
    high: float | None
    """95 % interval; None where nothing bounds that end."""
    num_games: int

    def is_above(self, other: Self) -> bool:
        """Return whether the interval's lower end is above that of ``other``, on one scale.

        A result of few games has a low lower end, so luck in them seldom decides.
        """
        return self.is_comparable(other) and _end(self.low) > _end(other.low)

    def is_comparable(self, other: Self) -> bool:
        """Return whether scale and search budget are the same, and the scale is known."""
        is_same = (self.scale, self.simulations) == (other.scale, other.simulations)
        return is_same and self.scale != ""

    def figures(self) -> dict[str, float]:
        """``elo``, ``elo_low``, ``elo_high``, ``games`` and ``search_budget``, as far as known.

        Elo to a tenth of a point. In a game of one player ``points`` instead of ``elo``.
        """
        figures = {"": self.value, "_low": self.low, "_high": self.high}
        return {
            f"{self.measure}{end}": round(figure, 1)
            for end, figure in figures.items() if figure is not None
        } | {"games": self.num_games, "search_budget": self.simulations}

    @classmethod
    def of_figures(cls, scale: str, figures: Mapping[str, float]) -> Self | None:
        """The strength with these :meth:`figures`; None if they are not those of a strength."""
        for measure in _WORDS:
            if {measure, "games", "search_budget"} <= figures.keys():
                return cls(
                    measure, scale, int(figures["search_budget"]), figures[measure],
                    figures.get(f"{measure}_low"), figures.get(f"{measure}_high"),
                    int(figures["games"]),
                )
        return None

    def __str__(self) -> str:
        """``Elo 402 (310 to 495) with 16 simulations, 40 games``."""
        high = inf if self.high is None else self.high
        return (
            f"{_WORDS[self.measure]} {self.value:,.0f} ({interval_text(_end(self.low), high)}) "
            f"with {counted(self.simulations, 'simulation')}, {counted(self.num_games, 'game')}"
        )


def strength_of(config: CampaignConfig, receipt: Receipt) -> Strength | None:
    """The strength of the network that the iteration of ``receipt`` made; None if not measured."""
    if (test := receipt.ladder_test) is not None:
        if test.elo is None:
            return None
        return Strength(
            "elo", test.scale, test.simulations, test.elo, test.elo_low, test.elo_high,
            test.num_games,
        )
    points = next((match.points.a for match in receipt.matches if match.points), None)
    if points is None:
        return None
    return Strength(
        "points", f"points in {config.campaign.game}", config.evaluation.simulations,
        points.mean, points.low, points.high, points.games,
    )


def _end(low: float | None) -> float:
    return -inf if low is None else low
