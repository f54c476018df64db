"""Which fault comes when, and how each is injected and undone.

Faults are dealt from a shuffled deck, so that every kind comes up however short the soak is. The
seed fixes the faults, their order and the time between them, not the instant each one meets.
"""

import errno
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from pathlib import Path

import psutil

from chess_snn.rng import derive_seed

from .processes import MlflowServer, RunningCampaign, prefect_server_of

SHORTEST_WAIT_S, MEAN_WAIT_S, LONGEST_WAIT_S = 1.0, 6.0, 20.0
"""Between two faults, while the campaign is at work."""
NO_TARGET_S = 30.0
"""How long a fault waits for its target; then it is left out."""

SHARDS, CHECKPOINTS = "games/iter-*/shard-*", "checkpoints/gen-*"
TMPFS_MIB = 192
"""Memory, at most; a campaign of a soak takes some 30 MiB, half of them Prefect's database."""
MOST_LEFT = 1 << 20
"""Bytes: on a full disk less than this is free, which a checkpoint does not fit into."""


class Kind(StrEnum):
    """Kinds of faults; the value is for people."""

    KILL_WORKER = "kill -9 a worker"
    FREEZE_WORKER = "freeze a worker"
    KILL_CAMPAIGN = "kill -9 the campaign"
    INTERRUPT_CAMPAIGN = "Ctrl-C the campaign"
    TERMINATE_CAMPAIGN = "SIGTERM the campaign"
    KILL_PREFECT = "kill -9 the Prefect server"
    KILL_MLFLOW = "kill -9 the MLflow server"
    KILL_RANK = "kill -9 a training rank"
    FILL_DISK = "fill the disk"
    DAMAGE_SHARD = "damage a shard"
    DAMAGE_CHECKPOINT = "damage the newest checkpoint"


DECK = {
    Kind.KILL_WORKER: 4, Kind.FREEZE_WORKER: 3, Kind.KILL_CAMPAIGN: 2, Kind.INTERRUPT_CAMPAIGN: 1,
    Kind.TERMINATE_CAMPAIGN: 1, Kind.KILL_PREFECT: 1, Kind.KILL_MLFLOW: 2, Kind.FILL_DISK: 2,
    Kind.DAMAGE_SHARD: 2, Kind.DAMAGE_CHECKPOINT: 2,
}
"""How often each kind is in the deck of every campaign."""
DECK_OF_RANKS = {Kind.KILL_RANK: 6}
"""Added if the campaign trains in ranks."""

HOLDS_S = {
    Kind.FREEZE_WORKER: (1.0, 60.0), Kind.KILL_MLFLOW: (3.0, 20.0), Kind.FILL_DISK: (2.0, 10.0),
}
"""Shortest and longest time until the soak undoes a fault of this kind. Dask gives a silent worker
up after 30 s, so that a frozen one comes back in time or is replaced."""

STOPS = frozenset({Kind.INTERRUPT_CAMPAIGN, Kind.TERMINATE_CAMPAIGN})
_SIGNALS = {
    Kind.KILL_CAMPAIGN: signal.SIGKILL, Kind.INTERRUPT_CAMPAIGN: signal.SIGINT,
    Kind.TERMINATE_CAMPAIGN: signal.SIGTERM,
}


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault to come."""

    kind: Kind
    wait_s: float
    """Seconds of a campaign at work before it."""
    hold_s: float
    """Seconds until it is undone; 0 if the campaign has to live with it."""
    draw: random.Random
    """Chooses the target and the rest."""


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault that was injected."""

    target: str
    """For people."""
    undo: Callable[[], None] | None = None
    """Ends it; None if there is nothing to end."""
    damaged: Path | None = None
    """The damaged shard or generation."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Processes and files that faults act on."""

    directory: Path
    campaign: RunningCampaign
    mlflow: MlflowServer
    disk: Path | None
    """None if the disk cannot be filled."""
    damaged: frozenset[Path] = frozenset()
    """Damaged before, and not repaired yet."""


def planned_faults(
    seed: int, campaign: int, in_ranks: bool, has_disk: bool = True
) -> Iterator[PlannedFault]:
    """The endless sequence for one campaign of a soak with this seed."""
    cards = DECK | (DECK_OF_RANKS if in_ranks else {})
    for number in count():
        stream = random.Random(derive_seed(seed, "soak", campaign, number))
        deck = [kind for kind, copies in cards.items() for _ in range(copies)]
        stream.shuffle(deck)
        for kind in deck:
            draw = random.Random(stream.random())
            wait_s = SHORTEST_WAIT_S + draw.expovariate(1 / (MEAN_WAIT_S - SHORTEST_WAIT_S))
            hold_s = draw.uniform(*HOLDS_S.get(kind, (0.0, 0.0)))
            if has_disk or kind is not Kind.FILL_DISK:
                yield PlannedFault(kind, min(LONGEST_WAIT_S, wait_s), hold_s, draw)


def inject(planned: PlannedFault, scene: Scene) -> Injected | None:
    """Inject it; None if it has no target just now, or the target ends at the same instant."""
    try:
        return _inject(planned, scene)
    except (psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):
        return None


def _inject(planned: PlannedFault, scene: Scene) -> Injected | None:  # noqa: PLR0911 - one a kind
    draw, campaign = planned.draw, scene.campaign
    match planned.kind:
        case Kind.KILL_CAMPAIGN | Kind.INTERRUPT_CAMPAIGN | Kind.TERMINATE_CAMPAIGN:
            campaign.send(_SIGNALS[planned.kind])
            return Injected(f"process {campaign.pid}")
        case Kind.KILL_WORKER:
            return _kill_one(campaign.workers(), draw)
        case Kind.KILL_RANK:
            return _kill_one(campaign.ranks(), draw)
        case Kind.FREEZE_WORKER:
            return _freeze_one(campaign.workers(), planned)
        case Kind.KILL_PREFECT:
            if (pid := prefect_server_of(scene.directory)) is None:
                return None
            os.killpg(pid, signal.SIGKILL)
            return Injected(f"process {pid}")
        case Kind.KILL_MLFLOW:
            if (pid := scene.mlflow.kill()) is None:
                return None
            return Injected(f"process {pid}, back in {planned.hold_s:.0f} s", scene.mlflow.start)
        case Kind.FILL_DISK:
            assert scene.disk is not None
            ballast, left = scene.disk / "ballast", draw.randrange(MOST_LEFT)
            _fill_disk(ballast, left)
            told = f"{left // 1024} KiB left for {planned.hold_s:.0f} s"
            return Injected(told, lambda: ballast.unlink(missing_ok=True))
        case Kind.DAMAGE_SHARD:
            return _damage_one(list(scene.directory.glob(SHARDS)), scene, draw)
        case Kind.DAMAGE_CHECKPOINT:
            return _damage_one(sorted(scene.directory.glob(CHECKPOINTS))[-1:], scene, draw)


def _kill_one(found: Sequence[psutil.Process], draw: random.Random) -> Injected | None:
    if not found:
        return None
    process = draw.choice(found)
    process.kill()
    return Injected(f"process {process.pid}")


def _freeze_one(found: Sequence[psutil.Process], planned: PlannedFault) -> Injected | None:
    if not found:
        return None
    process = planned.draw.choice(found)
    process.suspend()

    def thaw() -> None:
        if process.is_running():
            process.resume()

    return Injected(f"process {process.pid} for {planned.hold_s:.0f} s", thaw)


def _damage_one(found: list[Path], scene: Scene, draw: random.Random) -> Injected | None:
    # Each is damaged once: two flips of one bit would repair it.
    whole = sorted(set(found) - scene.damaged)
    if not whole:
        return None
    chosen = draw.choice(whole)
    return Injected(damage_file(chosen, draw), damaged=chosen)


def damage_file(artifact: Path, draw: random.Random) -> str:
    """Flip a bit in a shard or in one file of a generation, or truncate it; says what it did.

    Raises:
        FileNotFoundError: it was moved away meanwhile.
    """
    files = sorted(p for p in (artifact, *artifact.rglob("*")) if p.is_file() and p.stat().st_size)
    if not files:
        raise FileNotFoundError(artifact)
    file = draw.choice(files)
    size = file.stat().st_size
    place, name = draw.randrange(size), file.relative_to(artifact.parent.parent)
    with file.open("r+b") as content:
        if draw.random() < 0.5:
            content.truncate(place)
            return f"{name} truncated from {size} to {place} bytes"
        bit = draw.randrange(8)
        content.seek(place)
        (byte,) = content.read(1)
        content.seek(place)
        content.write(bytes([byte ^ (1 << bit)]))
        return f"bit {bit} of byte {place} of {name} flipped"


def _fill_disk(ballast: Path, left: int) -> None:
    """Leave ``left`` bytes free on the disk of the file ``ballast``."""
    with ballast.open("wb") as file:
        while (free := shutil.disk_usage(ballast).free) > left:
            try:
                os.posix_fallocate(file.fileno(), 0, free - left)
            except OSError as error:
                if error.errno != errno.ENOSPC:  # others have written meanwhile
                    raise


@contextmanager
def campaign_disk(path: Path) -> Iterator[bool]:
    """Mount a small disk at ``path`` for the length of the block; False where we may not."""
    path.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_MIB}m", "tmpfs", str(path)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
        path.rmdir()


@dataclass(slots=True)
class Disturber:
    """Injects the faults of one campaign when they are due, over all its runs."""

    planned: Iterator[PlannedFault]
    on_fault: Callable[[Kind, Injected], None]
    _next: PlannedFault | None = None
    _due_s: float | None = None
    """None until the campaign is at work."""
    _holds: list[tuple[Kind, float, Callable[[], None]]] = field(default_factory=list)
    """Faults that are undone later: kind, time, how."""

    def begin_run(self) -> None:
        """The campaign was started or resumed: faults wait until it has workers."""
        self._due_s = None

    def disturb(self, scene: Scene) -> None:
        """Inject what is due; call this often while the campaign runs."""
        planned, now = self._next or next(self.planned), time.monotonic()
        self._next = planned
        if self._due_s is None:
            self._due_s = now + planned.wait_s if scene.campaign.workers() else None
        elif now >= self._due_s and (injected := inject(planned, scene)) is not None:
            self._next = next(self.planned)
            self._due_s = now + self._next.wait_s
            if injected.undo is not None:
                self._holds.append((planned.kind, now + planned.hold_s, injected.undo))
            self.on_fault(planned.kind, injected)
        elif now > self._due_s + NO_TARGET_S:
            self._next, self._due_s = None, now

    def undo(self, *, of_run: bool = False, all_of_them: bool = False) -> None:
        """End faults that have lasted as long as planned.

        Args:
            of_run: end also those of a run that is over; MLflow stays away.
            all_of_them: end every one.
        """
        for hold in list(self._holds):
            kind, due_s, undo = hold
            is_over = all_of_them or (of_run and kind is not Kind.KILL_MLFLOW)
            if is_over or time.monotonic() >= due_s:
                self._holds.remove(hold)
                undo()
