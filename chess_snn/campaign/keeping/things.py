"""The committed folders of a campaign by what they are: shards, generations, and steps to one."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.data import is_committed
from chess_snn.data.window import INHERITED
from chess_snn.training import step_checkpoint, step_checkpoints

_SHARD: Final = re.compile(r"games/iter-(\d{6,})/shard-(\d{4,})")
_CHECKPOINT: Final = re.compile(r"checkpoints/gen-(\d{6,})")
_INHERITED: Final = re.compile(rf"games/((?:{INHERITED})+iter-\d{{6,}}/shard-\d{{4,}})")
_STEP: Final = re.compile(r"supervised/step-(\d{9,})")


@dataclass(frozen=True, slots=True)
class Shard:
    """The place of a shard, whether it is there or not."""

    iteration: int
    number: int

    def path(self, folder: CampaignFolder) -> Path:
        """Where it lies."""
        return folder.shard(self.iteration, self.number)

    @property
    def name(self) -> str:
        """As receipts have it."""
        return f"iter-{self.iteration:06d}/shard-{self.number:04d}"

    def __str__(self) -> str:
        """For people."""
        return f"shard {self.number} of iteration {self.iteration}"


@dataclass(frozen=True, slots=True)
class InheritedShard:
    """The place of a shard that another campaign played, whether it is there or not."""

    name: str
    """As receipts have it: ``from-iter-000012/shard-0003``."""

    def path(self, folder: CampaignFolder) -> Path:
        """Where it lies."""
        return folder.path / "games" / self.name

    def __str__(self) -> str:
        """For people."""
        return f"shard {self.name} of another campaign"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The place of a generation, whether it is there or not."""

    generation: int

    def path(self, folder: CampaignFolder) -> Path:
        """Where it lies."""
        return folder.checkpoint(self.generation)

    def __str__(self) -> str:
        """For people."""
        return f"generation {self.generation}"


@dataclass(frozen=True, slots=True)
class StepCheckpoint:
    """The place of a checkpoint on the way to generation 0, whether it is there or not."""

    step: int

    def path(self, folder: CampaignFolder) -> Path:
        """Where it lies."""
        return step_checkpoint(folder.supervised, self.step)

    def __str__(self) -> str:
        """For people."""
        return f"the checkpoint at step {self.step:,} of learning from given games"


Thing = Shard | InheritedShard | Checkpoint | StepCheckpoint


def thing_at(folder: CampaignFolder, path: Path) -> Thing | None:
    """What is kept in ``path`` by its name; None of anything else, or outside the campaign."""
    if not path.is_relative_to(folder.path):
        return None
    name = folder.name_of(path)
    if (shard := _SHARD.fullmatch(name)) is not None:
        return Shard(int(shard[1]), int(shard[2]))
    if (inherited := _INHERITED.fullmatch(name)) is not None:
        return InheritedShard(inherited[1])
    if (checkpoint := _CHECKPOINT.fullmatch(name)) is not None:
        return Checkpoint(int(checkpoint[1]))
    if (step := _STEP.fullmatch(name)) is not None:
        return StepCheckpoint(int(step[1]))
    return None


def shards_there(folder: CampaignFolder) -> list[Shard]:
    """Shards whose folder is there, in order, whole or not."""
    found = (thing_at(folder, path) for path in (folder.path / "games").glob("iter-*/shard-*"))
    return sorted(
        (thing for thing in found if isinstance(thing, Shard)),
        key=lambda shard: (shard.iteration, shard.number),
    )


def inherited_there(folder: CampaignFolder) -> list[InheritedShard]:
    """Shards of other campaigns whose folder is there, whole or not."""
    paths = sorted((folder.path / "games").glob(f"{INHERITED}*/shard-*"))
    found = (thing_at(folder, path) for path in paths)
    return [thing for thing in found if isinstance(thing, InheritedShard)]


def checkpoints_there(folder: CampaignFolder) -> list[Checkpoint]:
    """Generations whose folder is there, in order, whole or not."""
    found = (thing_at(folder, path) for path in folder.checkpoint(0).parent.glob("gen-*"))
    return sorted(
        (thing for thing in found if isinstance(thing, Checkpoint)),
        key=lambda checkpoint: checkpoint.generation,
    )


def steps_there(folder: CampaignFolder) -> list[StepCheckpoint]:
    """Checkpoints on the way to generation 0 whose folder is there, in order, whole or not.

    None once generation 0 is there: then nobody reads them any more.
    """
    if is_committed(folder.checkpoint(0)):
        return []
    found = (thing_at(folder, path) for path in step_checkpoints(folder.supervised))
    return [thing for thing in found if isinstance(thing, StepCheckpoint)]
