"""Results of a network's evaluation as receipts keep them: matches, won positions, ratings."""

from dataclasses import asdict, dataclass, field
from math import inf
from typing import Annotated, Literal

from pydantic import Field

from chess_snn.evaluation.ratings.result import interval_text as elo_interval_text
from chess_snn.evaluation.solo import interval_text
from chess_snn.evaluation.won_positions import Conversion
from chess_snn.types import Json


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """A mean and its 95 % interval, whose ends are None after a single measurement."""

    mean: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        """``11,907 (11,267 to 12,548)``."""
        return interval_text(asdict(self))


@dataclass(frozen=True, slots=True)
class PointsFacts(MeanInterval):
    """Points of one player in a game of one player."""

    games: int
    median: float
    best: float
    plies: float
    """Mean."""
    reached: dict[str, float]
    """Share of games at each milestone."""


@dataclass(frozen=True, slots=True)
class PairedPoints:
    """Points of both players of a match on the same seeds."""

    a: PointsFacts
    b: PointsFacts
    ahead: MeanInterval
    """Lead of a on a seed."""


@dataclass(frozen=True, slots=True)
class MatchFacts:
    """One match without its single games; counts and scores are player a's."""

    name: str
    """``random``, ``earlier``: see :mod:`chess_snn.campaign.strength.match_schedule`."""
    game: str
    player_a: str
    player_b: str
    num_games: int
    wins: int
    draws: int
    losses: int
    truncated: int
    """Games that reached the ply limit; they count half."""
    forfeits_a: int
    forfeits_b: int
    """Games among losses or wins in which a player made no legal move."""
    voided: int
    """Games that do not count."""
    score: float
    """Mean, in [0, 1]."""
    score_low: float
    score_high: float
    """95 % interval."""
    mean_plies: float
    terminations: dict[str, int]
    programs: dict[str, Json] = field(default_factory=dict)
    """Engines that played, by the name of their player."""
    points: PairedPoints | None = None
    """None in a game of two players."""

    @property
    def is_faulty(self) -> bool:
        """Return whether a game was forfeited, and so lost, or is void, and does not count."""
        return bool(self.forfeits_a or self.forfeits_b or self.voided)

    @property
    def score_text(self) -> str:
        """``0.713 (0.641 to 0.775)``."""
        return f"{self.score:.3f} ({self.score_low:.3f} to {self.score_high:.3f})"


@dataclass(frozen=True, slots=True)
class ConversionFacts(Conversion):
    """Results of a network that played out won positions against itself."""

    simulations: int
    """Search budget a move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingFacts:
    """Rating of a network for one search budget; Elo is None where it is not finite."""

    player: str
    num_games: int
    score: float
    """Mean over all its games, in [0, 1]."""
    elo: float | None
    elo_low: float | None
    elo_high: float | None
    """95 % interval."""
    anchor: str = "random"
    """Player whose Elo is 0."""

    @property
    def elo_text(self) -> str:
        """``812 (730 to 905)``, or the one bound that there is."""
        low = -inf if self.elo_low is None else self.elo_low
        high = inf if self.elo_high is None else self.elo_high
        interval = elo_interval_text(low, high)
        is_bounded = None not in (self.elo, self.elo_low, self.elo_high)
        return f"{self.elo:.0f} ({interval})" if is_bounded else interval


EndedBy = Literal["interval", "games"]
"""Reason that ends a ladder test: the rating is known well enough, or there are no more games."""


@dataclass(frozen=True, slots=True)
class MetRung:
    """A rung of the ladder that was met."""

    player: str
    elo: float
    num_batches: int
    num_games: int
    score: float
    """Mean of the tested player, in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderTestFacts(RatingFacts):
    """The rating by the test's games and the ladder's, and the rungs that were played."""

    simulations: int
    """Search budget of the network at each move; 0 is without search."""
    scale: str
    """The ladder that the rating belongs to, as :attr:`.Ladder.scale`."""
    rungs: list[MetRung]
    """The weakest first."""
    bracket: Annotated[list[str], Field(min_length=1)]
    """The three rungs that stand about the player; at least one."""
    start: str
    ended_by: EndedBy
    notice: str | None
    """Names the players that were not available."""
