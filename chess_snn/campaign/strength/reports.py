"""Reports in the folder of a campaign's matches: won positions, and ladder tests."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from chess_snn.campaign.stages.networks import evaluator_of, game_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.plans import read_plan
from chess_snn.campaign.store.receipts import report_of_present_version
from chess_snn.campaign.store.typed_json import RESTORE, RecordFormat
from chess_snn.campaign.strength.match_schedule import CONVERSION, event_of
from chess_snn.data import StoredFormat, read_json, write_json
from chess_snn.evaluation.won_positions import conversion_rate
from chess_snn.failpoints import failpoint
from chess_snn.search import make_search
from chess_snn.types import Json, Progress

_FORMAT: Final = StoredFormat(
    "report", version=3, upgrades={2: report_of_present_version}, has_digest=True
)


def write_report(path: Path, body: Json) -> None:
    """Put ``body`` at ``path``.

    Raises:
        UsageError: the place cannot be written.
    """
    write_json(path, _FORMAT.sealed(body))


def read_report(path: Path) -> Json:
    """What :func:`write_report` was given.

    Raises:
        UnknownVersionError: it is of a version that is not read.
        CorruptDataError: it is missing or damaged.
    """
    return _FORMAT.unsealed(read_json(path, RESTORE), path, RESTORE)


EndedBy = Literal["interval", "games"]
"""What ends a ladder test: the rating is known well enough, or there are no more games."""


@dataclass(frozen=True, slots=True)
class MetRung:
    """A rung of the ladder that was met."""

    player: str
    elo: float
    num_batches: int
    num_games: int
    score: float
    """Mean of the tested player, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class LadderTestReport:
    """The rating by the test's games and the ladder's, and the rungs that were played."""

    player: str
    simulations: int
    """Search budget of the network at each move; 0 is without search."""
    scale: str | None
    """The ladder that the rating belongs to, as :attr:`.Ladder.scale`; None in reports of earlier
    versions."""
    num_games: int
    score: float
    elo: float | None
    """None where not finite, as the ends of its interval."""
    elo_low: float | None
    elo_high: float | None
    rungs: list[MetRung]
    """The weakest first."""
    bracket: Annotated[list[str], Field(min_length=1)]
    """The three rungs that stand about the player; at least one."""
    start: str
    ended_by: EndedBy
    notice: str | None
    """Names the players that were not available."""


LADDER_TEST_REPORTS: Final = RecordFormat(LadderTestReport, _FORMAT)


def conversion_simulations(folder: CampaignFolder, generation: int) -> int:
    """Simulations a move of the self-play that made ``generation``.

    Raises:
        CorruptDataError: the plan of its iteration is missing or damaged.
    """
    return folder.config.search.simulations(read_plan(folder, generation - 1).progress_first)


def play_conversion(
    directory: Path, generation: int, simulations: int | None = None, *, num_threads: int = 1,
    on_progress: Progress | None = None,
) -> Json:
    """Let ``generation`` play out the suite of won positions, as it would in self-play.

    ``simulations`` a move are by default :func:`conversion_simulations`.

    Returns:
        What came of it; it is kept, and not played again.
    """
    folder = CampaignFolder.open(directory)
    path = folder.match(event_of(generation), CONVERSION)
    if not path.exists():
        config = folder.config
        if simulations is None:
            simulations = conversion_simulations(folder, generation)
        evaluator = evaluator_of(folder, generation, num_threads=num_threads)
        search = make_search(
            game_of(folder), evaluator, config.search,
            simulations=simulations, num_games=config.evaluation.won_positions,
        )
        found = conversion_rate(
            game_of(folder), search,
            num_positions=config.evaluation.won_positions, on_progress=on_progress,
        )
        body = asdict(found) | {"rate": found.rate, "simulations": simulations}
        # NaN is not JSON.
        body["mean_plies_to_win"] = found.mean_plies_to_win if found.won else None
        failpoint("conversion.played")
        write_report(path, body)
    return read_report(path)
