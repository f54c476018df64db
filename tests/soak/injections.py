"""How each fault is done, and how it is undone."""

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from .campaigns import committed_checkpoints, committed_shards
from .damage import Damage, damage_file
from .disk import Disk
from .mlflow_server import MlflowServer
from .processes import RunningCampaign, prefect_server_of
from .schedule import Kind, PlannedFault

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Scene:
    """What faults can reach."""

    directory: Path
    """Of the campaign."""
    campaign: RunningCampaign
    mlflow: MlflowServer
    disk: Disk
    damages: Sequence[Damage] = ()
    """Done before, and not mended yet."""


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault that was done."""

    target: str
    """For people: whom it met."""
    undo: Callable[[], None] | None = None
    """Ends it; None where there is nothing to end."""
    damage: Damage | None = None
    """What it did to a file."""


def inject(planned: PlannedFault, scene: Scene) -> Injected | None:
    """Do it; None where there is nothing of that kind just now.

    Whom it is meant for may end by itself at the same instant; then it did not happen either.
    """
    try:
        return _INJECTIONS[planned.kind](planned, scene)
    except (psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):
        return None


def _kill_worker(planned: PlannedFault, scene: Scene) -> Injected | None:
    return _kill_one(scene.campaign.workers(), planned)


def _kill_rank(planned: PlannedFault, scene: Scene) -> Injected | None:
    return _kill_one(scene.campaign.ranks(), planned)


def _kill_one(processes: Sequence[psutil.Process], planned: PlannedFault) -> Injected | None:
    process = _chosen(processes, planned.target)
    if process is None:
        return None
    process.kill()
    return Injected(f"process {process.pid}")


def _freeze_worker(planned: PlannedFault, scene: Scene) -> Injected | None:
    process = _chosen(scene.campaign.workers(), planned.target)
    if process is None:
        return None
    process.suspend()

    def thaw() -> None:
        if process.is_running():
            process.resume()

    return Injected(f"process {process.pid} for {planned.hold_s:.0f} s", thaw)


def _kill_campaign(planned: PlannedFault, scene: Scene) -> Injected:
    del planned
    scene.campaign.kill()
    return Injected(f"process {scene.campaign.pid}")


def _interrupt_campaign(planned: PlannedFault, scene: Scene) -> Injected:
    del planned
    scene.campaign.send(signal.SIGINT)
    return Injected(f"process {scene.campaign.pid}")


def _terminate_campaign(planned: PlannedFault, scene: Scene) -> Injected:
    del planned
    scene.campaign.send(signal.SIGTERM)
    return Injected(f"process {scene.campaign.pid}")


def _kill_prefect(planned: PlannedFault, scene: Scene) -> Injected | None:
    del planned
    pid = prefect_server_of(scene.directory)
    if pid is None:
        return None
    os.killpg(pid, signal.SIGKILL)
    return Injected(f"process {pid}")


def _kill_mlflow(planned: PlannedFault, scene: Scene) -> Injected | None:
    pid = scene.mlflow.kill()
    if pid is None:
        return None
    return Injected(f"process {pid}, back in {planned.hold_s:.0f} s", scene.mlflow.start)


def _fill_disk(planned: PlannedFault, scene: Scene) -> Injected:
    left = scene.disk.fill(planned.detail, scene.campaign.computing())
    return Injected(f"{left} for {planned.hold_s:.0f} s", scene.disk.free)


def _damage_shard(planned: PlannedFault, scene: Scene) -> Injected | None:
    return _damage(_chosen(committed_shards(scene.directory), planned.target), planned, scene)


def _damage_checkpoint(planned: PlannedFault, scene: Scene) -> Injected | None:
    newest = committed_checkpoints(scene.directory)[-1:]
    return _damage(_chosen(newest, planned.target), planned, scene)


def _damage(folder: Path | None, planned: PlannedFault, scene: Scene) -> Injected | None:
    # A folder is damaged once; two flips of one bit would mend it.
    if folder is None or any(damage.folder == folder for damage in scene.damages):
        return None
    damage = damage_file(folder, planned.detail, planned.place)
    return Injected(f"{folder.parent.name}/{damage.what}", damage=damage)


def _chosen(items: Sequence[_Item], share: float) -> _Item | None:
    return items[int(share * len(items))] if items else None


_INJECTIONS: dict[Kind, Callable[[PlannedFault, Scene], Injected | None]] = {
    Kind.KILL_WORKER: _kill_worker,
    Kind.FREEZE_WORKER: _freeze_worker,
    Kind.KILL_CAMPAIGN: _kill_campaign,
    Kind.INTERRUPT_CAMPAIGN: _interrupt_campaign,
    Kind.TERMINATE_CAMPAIGN: _terminate_campaign,
    Kind.KILL_PREFECT: _kill_prefect,
    Kind.KILL_MLFLOW: _kill_mlflow,
    Kind.KILL_RANK: _kill_rank,
    Kind.FILL_DISK: _fill_disk,
    Kind.DAMAGE_SHARD: _damage_shard,
    Kind.DAMAGE_CHECKPOINT: _damage_checkpoint,
}
