"""Points at which two campaigns can be compared: at equal iteration, equal games and equal time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.receipts import read_receipts
from chess_snn.data import is_committed
from chess_snn.errors import CampaignError
from chess_snn.settings import check_range

Measure = Literal["iterations", "games", "seconds"]
MEASURES: Final[tuple[Measure, ...]] = ("iterations", "games", "seconds")


@dataclass(frozen=True, slots=True)
class Milestone:
    """A generation, and what it had taken to make it."""

    generation: int
    iterations: int
    games: int
    """Games of self-play, over all iterations up to then."""
    seconds: float
    """Seconds that the campaign had run, pauses left out."""
    score: float | None
    """Mean over its campaign's opponents, in [0, 1]; None where it was not evaluated."""
    is_there: bool
    """True if its network is."""

    def measured(self, measure: Measure) -> float:
        """Return the progress of the campaign then."""
        return float(getattr(self, measure))


@dataclass(frozen=True, slots=True)
class Point:
    """One generation of each campaign, at the same measure."""

    measure: Measure
    value: float
    """Value that neither of the two had gone beyond."""
    a: Milestone
    b: Milestone


def milestones(folder: CampaignFolder) -> list[Milestone]:
    """One for every finished iteration."""
    found, games = list[Milestone](), 0
    for receipt in read_receipts(folder):
        games += receipt.statistics.games
        generation = receipt.training.generation
        found.append(Milestone(
            generation, receipt.iteration + 1, games, receipt.elapsed_s, receipt.score,
            is_committed(folder.checkpoint(generation)),
        ))
    return found


def common_points(
    a: Sequence[Milestone], b: Sequence[Milestone], num_points: int = 1
) -> list[Point]:
    """Evenly spaced points of each measure, of which the last is as far as both campaigns are.

    At each, either campaign has the newest generation that is there and had taken no more; points
    with the same two generations as an earlier one of the measure are left out.

    Raises:
        ConfigError: ``num_points`` is out of range.
        CampaignError: the campaigns have no two generations to compare.
    """
    check_range("--points", num_points, ge=1, le=1000)
    points: list[Point] = []
    for measure in MEASURES:
        ends = [max((m.measured(measure) for m in side), default=0.0) for side in (a, b)]
        seen: set[tuple[int, int]] = set()
        for k in range(1, num_points + 1):
            value = min(ends) * k / num_points
            first, second = (_newest_within(side, measure, value) for side in (a, b))
            if first is None or second is None:
                continue
            if (first.generation, second.generation) not in seen:
                seen.add((first.generation, second.generation))
                points.append(Point(measure, value, first, second))
    if not points:
        raise CampaignError(
            "the campaigns have no networks to compare at equal iteration, games or time; each "
            "needs a finished iteration whose network is there"
        )
    return points


def _newest_within(
    side: Sequence[Milestone], measure: Measure, value: float
) -> Milestone | None:
    within = [m for m in side if m.is_there and m.measured(measure) <= value]
    return within[-1] if within else None
