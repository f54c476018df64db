"""How long a campaign lasts, its progress at an iteration, and the number of its shards.

A campaign lasts as its settings say, or as it was extended since. An extension is a file of its
own, so the frozen settings stay what they were, and a campaign that runs finds it when its next
iteration begins.

Scheduled values follow the campaign's progress: simulations, starts, ply limit, learning rate. By
iterations, progress is known beforehand; by hours, it is read off a clock. The number of shards
follows from the workers that are there when an iteration begins. So each iteration commits its plan
before it plays, and one that is killed and resumed is the same.
"""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from chess_snn.campaign.configuration.settings import RunSettings
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.typed_json import RecordFormat, numbered_files, read_numbered
from chess_snn.data import StoredFormat, create_text, read_manifest, utc_now, write_text
from chess_snn.errors import CampaignError, CorruptDataError
from chess_snn.failpoints import failpoint
from chess_snn.rng import derive_seed
from chess_snn.settings import check_range
from chess_snn.wording import counted

S_PER_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Length:
    """How long a campaign lasts in all."""

    iterations: int
    """Ignored if ``hours`` is set."""
    hours: float = 0.0
    """Hours in which it runs; 0 counts iterations."""

    def __post_init__(self) -> None:
        RunSettings(iterations=self.iterations, hours=self.hours)  # whose bounds hold here too

    def __str__(self) -> str:
        """Words for people: ``20 iterations`` or ``1.5 hours``."""
        if self.hours:
            return f"{self.hours:g} hour" + ("" if self.hours == 1 else "s")
        return counted(self.iterations, "iteration")

    def share(self, num_iterations: int, elapsed_s: float) -> float:
        """Share of the campaign, in [0, 1], that so many finished iterations and seconds are."""
        if self.hours:
            return min(1.0, elapsed_s / (self.hours * S_PER_HOUR))
        return min(1.0, num_iterations / self.iterations)


@dataclass(frozen=True, slots=True)
class Extension:
    """A decision on how long the campaign lasts."""

    length: Length
    progress: float
    """Share of the campaign that was planned already, in [0, 1]; no later plan begins below it."""
    created: str
    """ISO 8601, UTC."""


EXTENSIONS: Final = RecordFormat(
    Extension, StoredFormat("extension", version=1, has_digest=True)
)


def newest_extension(folder: CampaignFolder) -> Extension | None:
    """The last extension of the campaign; None if it was never extended.

    Raises:
        CorruptDataError: it is damaged.
    """
    files = numbered_files(folder.extension)
    return EXTENSIONS.read(files[-1]) if files else None


def campaign_length(folder: CampaignFolder) -> Length:
    """How long the campaign lasts now. Raises as :func:`newest_extension`."""
    if extension := newest_extension(folder):
        return extension.length
    return Length(folder.config.campaign.iterations, folder.config.campaign.hours)


def num_extensions(folder: CampaignFolder) -> int:
    """How often the campaign was extended."""
    return len(numbered_files(folder.extension))


def write_extension(folder: CampaignFolder, length: Length, progress: float) -> None:
    """Let the campaign last ``length`` in all; ``progress``, in [0, 1], was planned before.

    Raises:
        CampaignError: it was extended by another process at the same time.
    """
    extension = Extension(length, progress, utc_now())
    path = folder.extension(num_extensions(folder))
    if not create_text(path, EXTENSIONS.text(extension)):
        raise CampaignError(
            f"{folder.path} was extended at the same moment by another process, to "
            f"{campaign_length(folder)}; look whether that is enough"
        )


SHARDS_OF_ITERATION: Final = "num_shards"
"""Name in the meta of a shard of the number of shards that its iteration has."""


@dataclass(frozen=True, slots=True)
class ProgressPlan:
    """One iteration's part of its campaign."""

    iteration: NonNegativeInt
    progress_first: Annotated[float, Field(ge=0, le=1)]
    """Share of the campaign done when it begins, in [0, 1]."""
    progress_last: float
    """Share done when it ends, in [0, 1]; by hours, it is taken to last as long as the one before
    it."""
    elapsed_s: NonNegativeFloat
    """Seconds that the campaign had run when it began, pauses left out. Its network may have been
    in training still."""
    num_shards: PositiveInt
    """Shards of its games."""

    def __post_init__(self) -> None:
        check_range("progress_last", self.progress_last, ge=self.progress_first, le=1)


PLANS: Final = RecordFormat(ProgressPlan, StoredFormat("plan", version=3, has_digest=True))


class CampaignClock:
    """Seconds that a campaign has run, over all processes that ran it."""

    def __init__(self, recorded_s: float) -> None:
        """Go on from ``recorded_s``; what a killed process did after its last record is lost."""
        self._zero = time.monotonic() - recorded_s

    @property
    def elapsed_s(self) -> float:
        """Seconds up to now."""
        return time.monotonic() - self._zero


def begin_iteration(
    folder: CampaignFolder, iteration: int, elapsed_s: float, num_workers: int = 1
) -> ProgressPlan | None:
    """The plan of ``iteration``, committed; None where the campaign ends before it.

    An iteration that began is finished, even if the time is up when it is resumed. All earlier ones
    have a plan; the campaign has run for ``elapsed_s``, and ``num_workers`` can play now.

    Raises:
        CorruptDataError: a plan is damaged.
    """
    if folder.plan(iteration).exists():
        return read_plan(folder, iteration)
    plan = next_plan(folder, iteration, elapsed_s, num_workers)
    if plan is not None:
        write_plan(folder, plan)
        failpoint("plan.committed")
    return plan


def write_plan(folder: CampaignFolder, plan: ProgressPlan) -> None:
    """Commit ``plan``; :func:`begin_iteration` does so while a campaign runs."""
    write_text(folder.plan(plan.iteration), PLANS.text(plan))


def read_plan(folder: CampaignFolder, iteration: int) -> ProgressPlan:
    """The committed plan of ``iteration``.

    Raises as :meth:`.RecordFormat.read`.
    """
    path = folder.plan(iteration)
    plan = PLANS.read(
        path, "restore it from a copy, or have it made from the iteration's receipt: "
        f"chess-snn verify {folder.path} --repair",
    )
    if plan.iteration != iteration:
        raise CorruptDataError(f"{path} is the plan of iteration {plan.iteration}")
    return plan


def read_plans(folder: CampaignFolder) -> list[ProgressPlan]:
    """The plans of all iterations that began, in order; they have no gaps."""
    return read_numbered(folder.plan, partial(read_plan, folder))


def _num_shards(folder: CampaignFolder, iteration: int, num_workers: int) -> int:
    """Follow the workers, or the shards that are left of a lost plan."""
    for shard in sorted(folder.shard(iteration, 0).parent.glob("shard-*")):
        try:
            return int(read_manifest(shard).meta[SHARDS_OF_ITERATION])
        except CorruptDataError:
            continue  # it is played again
    return folder.config.self_play.num_shards(num_workers)


def next_plan(
    folder: CampaignFolder, iteration: int, elapsed_s: float, num_workers: int = 1
) -> ProgressPlan | None:
    """The plan that :func:`begin_iteration` would commit for an iteration that has none yet.

    Progress continues from the plan before, linearly to
    1 at the campaign's end: where the campaign was extended, or is a fork of another length, it
    rises more slowly from there on, and never falls. One that had ended stays at 1.
    """
    length = campaign_length(folder)
    is_over = (
        elapsed_s >= length.hours * S_PER_HOUR if length.hours else iteration >= length.iterations
    )
    if is_over:
        return None
    before = read_plan(folder, iteration - 1) if iteration > 0 else None
    shards = _num_shards(folder, iteration, num_workers)
    if length.hours:
        extension = newest_extension(folder)
        least = 0.0 if extension is None else extension.progress
        first, last = _progress_by_hours(length.hours * S_PER_HOUR, elapsed_s, before, least)
        return ProgressPlan(iteration, first, last, elapsed_s, shards)
    first, last = iteration / length.iterations, (iteration + 1) / length.iterations
    if before is not None and before.progress_last != first:
        first = before.progress_last
        last = min(1.0, first + (1.0 - first) / (length.iterations - iteration))
    return ProgressPlan(iteration, first, last, elapsed_s, shards)


def _progress_by_hours(
    limit_s: float, elapsed_s: float, before: ProgressPlan | None, least: float
) -> tuple[float, float]:
    """First and last progress of an iteration that begins at ``elapsed_s``, at least ``least``."""
    progress, gain = elapsed_s / limit_s, 0.0
    if before is not None and before.progress_first == before.elapsed_s / limit_s:
        gain = max(0.0, progress - before.progress_first)
    elif before is not None:
        lasted_s = max(0.0, elapsed_s - before.elapsed_s)
        rest = (1.0 - before.progress_first) * lasted_s / (limit_s - before.elapsed_s)
        progress = max(least, before.progress_first + rest)
        gain = (1.0 - progress) * lasted_s / (limit_s - elapsed_s)
    return progress, min(1.0, progress + gain)


@dataclass(frozen=True, slots=True)
class ShardGames:
    """The games of one shard."""

    num_games: int
    seed: int
    """Seed of :func:`chess_snn.self_play.play_games`."""
    first_game: int
    """Number of the first game among those with this seed, from 0."""
    num_shards: int
    """Shards that share the seed."""


def num_shards(folder: CampaignFolder, iteration: int) -> int:
    """Shards of ``iteration``. Raises as :func:`read_plan`."""
    return read_plan(folder, iteration).num_shards


def shard_paths(folder: CampaignFolder, iteration: int) -> list[Path]:
    """Paths of the shards of ``iteration``, there or not yet. Raises as :func:`read_plan`."""
    return [folder.shard(iteration, shard) for shard in range(num_shards(folder, iteration))]


def games_of_shard(folder: CampaignFolder, iteration: int, shard: int) -> ShardGames:
    """The games that ``shard`` of ``iteration`` is to have. Raises as :func:`read_plan`."""
    settings, seed = folder.config.self_play, folder.config.campaign.seed
    planned, games = read_plan(folder, iteration).num_shards, settings.games_per_iteration
    first, end = shard * games // planned, (shard + 1) * games // planned
    return ShardGames(end - first, derive_seed(seed, "self_play", iteration), first, planned)
