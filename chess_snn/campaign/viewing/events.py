"""Events of a campaign, as one typed stream.

The process that runs a campaign makes them (:mod:`chess_snn.tasks.progress`), passes each to its
listeners: the terminal, two logs, Prefect's pages and the file that ``chess-snn watch`` reads.
``watch`` makes the same events from what it finds in the folder, so that all of them share their
texts (:mod:`chess_snn.campaign.viewing.lines`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from chess_snn.campaign.store.plans import Length
from chess_snn.campaign.store.receipts import Receipt
from chess_snn.campaign.viewing.alarms import Alarm
from chess_snn.wording import counted

# Stages, in the order of a campaign.
SUPERVISED_TRAINING: Final = "supervised training"
SELF_PLAY: Final = "self-play"
TRAINING: Final = "training"
EVALUATION: Final = "evaluation"
GATING_MATCH: Final = "gating match"
FINAL_MATCHES: Final = "final matches"

STAGES_OF_STEPS: Final = (SUPERVISED_TRAINING, TRAINING)
"""They count training steps; the others count games, shards or folders."""

_GIB: Final = 2**30
_SILENT_S: Final = 10.0
"""A worker without a sign of life for this long is marked."""


@dataclass(frozen=True, slots=True)
class Message:
    """Something happened: a server is up, a worker died."""

    text: str


@dataclass(frozen=True, slots=True)
class StageProgress:
    """Progress of one stage of an iteration: it began, went on, or ended."""

    iteration: int
    stage: str
    """One of the names above."""
    unit: str
    """Unit that is counted, such as games or steps; empty if that is unknown."""
    done: int
    total: int
    """0 while it is unknown."""
    per_s: float = 0.0
    """Mean pace since the stage began; 0 if it is unknown."""
    begun_s: float = 0.0
    """When it began, in seconds since 1970."""
    has_ended: bool = False
    """True if this is the last event of the stage."""

    @property
    def key(self) -> tuple[int, str]:
        """Tells the stage from all others of the campaign."""
        return self.iteration, self.stage

    @property
    def seconds_left(self) -> float | None:
        """Time left at this pace; None without a pace or a total, and once it has ended."""
        if self.has_ended or not self.total or not self.per_s:
            return None
        return max(0.0, (self.total - self.done) / self.per_s)

    @property
    def share(self) -> float:
        """Done over total, in [0, 1]."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    def __str__(self) -> str:
        """``iteration 3 self-play: 120 of 400 games, 3.1/s, 90 s left``."""
        name, left = f"iteration {self.iteration} {self.stage}", self.seconds_left
        if not self.unit:
            return name
        total = f" of {self.total:,}" if self.total else ""
        pace = f", {self.per_s:,.1f}/s" if self.per_s else ""
        rest = "" if left is None else f", {left:,.0f} s left"
        return f"{name}: {self.done:,}{total} {self.unit}{pace}{rest}"


@dataclass(frozen=True, slots=True)
class WorkerProgress:
    """Work that one worker has done for the campaign since it was last started or resumed."""

    name: str
    """``box-a/gpu0-1``."""
    device: str
    """``GPU 0 (NVIDIA H200) of box-a``."""
    doing: str
    """``iteration 3 self-play, shard 2: 40 of 100``; empty if the worker is idle."""
    games: int
    """Games of self-play and matches."""
    games_per_s: float
    """Over the last minute."""
    quiet_s: float
    """Since its last sign of life."""
    cores: float
    """Cores that it keeps busy."""
    memory_bytes: int
    gpu_share: float | None
    """Share of the time in which its GPU computes, in [0, 1]; None if that is not known."""
    gpu_memory_bytes: int | None = None
    """Memory of its GPU that all programs together use; None as above."""
    gpu_memory_total_bytes: int | None = None

    @property
    def gpu_text(self) -> str:
        """``GPU 87%, 12.3 of 140.0 GiB``; empty if nothing is known of a GPU."""
        parts = [] if self.gpu_share is None else [f"{self.gpu_share:.0%}"]
        if self.gpu_memory_bytes is not None and self.gpu_memory_total_bytes is not None:
            total = self.gpu_memory_total_bytes / _GIB
            parts.append(f"{self.gpu_memory_bytes / _GIB:.1f} of {total:.1f} GiB")
        return f"GPU {', '.join(parts)}" if parts else ""

    def __str__(self) -> str:
        """``box-a/gpu0-1: 120 games, 3.1/s, 1.0 cores, 1.2 GiB, GPU 87%, 12.3 of 140.0 GiB``."""
        parts = [
            *_pace(self.games, self.games_per_s),
            f"{self.cores:.1f} cores", f"{self.memory_bytes / _GIB:.1f} GiB",
        ]
        if self.gpu_text:
            parts.append(self.gpu_text)
        if self.quiet_s > _SILENT_S:
            parts.append(f"silent for {self.quiet_s:.0f} s")
        return f"{self.name}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class WorkersProgress:
    """Progress of all workers; sent about every two seconds."""

    workers: tuple[WorkerProgress, ...]

    def __str__(self) -> str:
        """``2 workers: 240 games, 6.2/s, 2.0 cores, GPUs 85%, …``: all of them together."""
        workers = self.workers
        games = sum(worker.games for worker in workers)
        parts = [
            *_pace(games, sum(worker.games_per_s for worker in workers)),
            f"{sum(worker.cores for worker in workers):.1f} cores",
        ]
        # Workers of one GPU see the same figure.
        shares = {w.device: w.gpu_share for w in workers if w.gpu_share is not None}
        if shares:
            parts.append(f"GPUs {sum(shares.values()) / len(shares):.0%}")
        memory = {w.device: w.gpu_memory_bytes for w in workers if w.gpu_memory_bytes is not None}
        if memory:
            parts.append(f"{sum(memory.values()) / _GIB:.1f} GiB of their memory")
        if silent := [worker.name for worker in workers if worker.quiet_s > _SILENT_S]:
            parts.append(f"silent: {', '.join(silent)}")
        return f"{counted(len(workers), 'worker')}: {', '.join(parts)}"


def _pace(games: int, per_s: float) -> list[str]:
    """Nothing before the first game."""
    return [counted(games, "game"), f"{per_s:,.1f}/s"] if games else []


@dataclass(frozen=True, slots=True)
class IterationFinished:
    """An iteration committed its receipt."""

    receipt: Receipt
    length: Length
    """Length of the campaign."""


@dataclass(frozen=True, slots=True)
class AlarmRaised:
    """The newest receipt raises an alarm that the receipts before it did not."""

    alarm: Alarm


@dataclass(frozen=True, slots=True)
class CampaignFinished:
    """All iterations and final matches are committed."""

    length: Length


Event = (
    Message | StageProgress | WorkersProgress | IterationFinished | AlarmRaised | CampaignFinished
)

Listener = Callable[[Event], object]
"""Receives every event of a campaign, one at a time, from several threads."""
