"""How a campaign goes at this moment, worker by worker, for those who watch from outside.

The process that runs a campaign writes it every few seconds, among its services: a view, which may
be deleted, and which says nothing once nobody writes it any more.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.typed_json import from_json
from chess_snn.data import read_json, write_json
from chess_snn.errors import CorruptDataError

PERIOD_S: Final = 5.0
"""Between two writings."""

_STALE_S: Final = 30.0
"""After which nobody is taken to be writing."""
_GIB: Final = 2**30
_SILENT_S: Final = 10.0
"""Workers that have said nothing for this long are marked."""


@dataclass(frozen=True, slots=True)
class WorkerProgress:
    """What one worker has done for the campaign since it was last begun or resumed."""

    name: str
    """``box-a/gpu0-1``."""
    device: str
    """``GPU 0 (NVIDIA H200) of box-a``."""
    doing: str
    """``iteration 3 self-play, shard 2: 40 of 100``; empty while it has nothing to do."""
    games: int
    """Of self-play and matches."""
    games_per_s: float
    """Over the last minute."""
    quiet_s: float
    """Since its last sign of life."""
    cores: float
    """That it keeps busy."""
    memory_bytes: int
    gpu_share: float | None
    """Of the time in which its GPU computes, in [0, 1]; None where there is none, or none that can
    be asked."""
    gpu_memory_bytes: int | None = None
    """That all programs together take of its GPU; None likewise."""
    gpu_memory_total_bytes: int | None = None

    @property
    def gpu_text(self) -> str:
        """``GPU 87%, 12.3 of 140.0 GiB``; empty where nothing is known of a GPU."""
        parts = [] if self.gpu_share is None else [f"{self.gpu_share:.0%}"]
        if self.gpu_memory_bytes is not None and self.gpu_memory_total_bytes is not None:
            total = self.gpu_memory_total_bytes / _GIB
            parts.append(f"{self.gpu_memory_bytes / _GIB:.1f} of {total:.1f} GiB")
        return f"GPU {', '.join(parts)}" if parts else ""

    def __str__(self) -> str:
        """``box-a/gpu0-1: 120 games, 3.1/s, 1.0 cores, 1.2 GiB, GPU 87%, 12.3 of 140.0 GiB``."""
        parts = [
            f"{self.name}: {self.games:,} games", f"{self.games_per_s:,.1f}/s",
            f"{self.cores:.1f} cores", f"{self.memory_bytes / _GIB:.1f} GiB",
        ]
        if self.gpu_text:
            parts.append(self.gpu_text)
        if self.quiet_s > _SILENT_S:
            parts.append(f"silent for {self.quiet_s:.0f} s")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Live:
    """Stages and workers at one moment."""

    stages: tuple[str, ...]
    """``iteration 3 self_play: 120/400 games, 3.1/s, 90 s left``."""
    workers: tuple[WorkerProgress, ...]


def summary(workers: Sequence[WorkerProgress]) -> str:
    """``2 workers: 240 games, 6.2/s, 2.0 cores, GPUs 85%, …``: all of them together."""
    games = sum(worker.games for worker in workers)
    parts = [
        f"{len(workers)} {'worker' if len(workers) == 1 else 'workers'}: {games:,} games",
        f"{sum(worker.games_per_s for worker in workers):,.1f}/s",
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
    return ", ".join(parts)


def live_file(folder: CampaignFolder) -> Path:
    """Where it is written."""
    return folder.services / "live.json"


def write_live(folder: CampaignFolder, live: Live) -> None:
    """Put ``live`` in its place.

    Raises:
        UsageError: it cannot be written.
    """
    write_json(live_file(folder), asdict(live))


def read_live(folder: CampaignFolder) -> Live | None:
    """What was written a moment ago; None where nothing was, or it is no longer true."""
    path = live_file(folder)
    try:
        # A clock that was set back leaves times in the future.
        if abs(time.time() - path.stat().st_mtime) > _STALE_S:
            return None
        return from_json(Live, read_json(path))
    except (OSError, CorruptDataError, ValueError):
        return None  # never written, of another version, or taken away this instant
