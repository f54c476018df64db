"""What a climb came to, as it is kept beside its matches."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from chess_snn.campaign.store.typed_json import from_json
from chess_snn.campaign.strength.reports import read_report
from chess_snn.errors import CorruptDataError

EndedBy = Literal["interval", "games"]
"""What ends a climb: the rating is known well enough, or there are no more games."""


@dataclass(frozen=True, slots=True)
class MetRung:
    """A rung of the ladder that was met."""

    player: str
    elo: float
    num_batches: int
    num_games: int
    score: float
    """Mean of the one who climbed, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class ClimbReport:
    """The rating by the climb's games and the ladder's, and what the climb went through."""

    player: str
    num_games: int
    score: float
    elo: float | None
    """None where not finite, as the ends of its interval."""
    elo_low: float | None
    elo_high: float | None
    rungs: list[MetRung]
    """The weakest first."""
    bracket: list[str]
    """The three rungs that stand about the player; at least one."""
    start: str
    ended_by: EndedBy
    notice: str | None
    """Of players that could not be had."""


def read_climb_report(path: Path) -> ClimbReport:
    """The report in a file of a campaign.

    Raises:
        CorruptDataError: it is missing or damaged.
    """
    try:
        report = from_json(ClimbReport, read_report(path))
    except ValueError as error:
        raise CorruptDataError(
            f"{path} is no report of a climb ({error}); restore it from a copy"
        ) from error
    if not report.bracket:
        raise CorruptDataError(
            f"{path} is no report of a climb (bracket: empty); restore it from a copy"
        )
    return report
