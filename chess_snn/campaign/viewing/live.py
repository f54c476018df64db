"""The newest progress of stages and workers, and the file that holds it for ``chess-snn watch``.

The process that runs a campaign writes the file every few seconds, among its services. It is a
view: it may be deleted, and it is ignored when it is old.
"""

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.typed_json import from_json
from chess_snn.campaign.viewing.events import (
    Event,
    StageProgress,
    WorkerProgress,
    WorkersProgress,
)
from chess_snn.data import read_json, write_json
from chess_snn.errors import CorruptDataError

PERIOD_S: Final = 5.0
"""Between two writes."""

_STALE_S: Final = 30.0
"""An older file is ignored."""


@dataclass(frozen=True, slots=True)
class Live:
    """Stages and workers at one moment."""

    stages: tuple[StageProgress, ...] = ()
    """Those under way, in the order in which they began."""
    workers: tuple[WorkerProgress, ...] = ()

    def after(self, event: Event) -> "Live":
        """The same once ``event`` has happened."""
        if isinstance(event, WorkersProgress):
            return replace(self, workers=event.workers)
        if isinstance(event, StageProgress):
            stages = {stage.key: stage for stage in self.stages}
            stages[event.key] = event
            if event.has_ended:
                del stages[event.key]
            return replace(self, stages=tuple(stages.values()))
        return self


def live_file(folder: CampaignFolder) -> Path:
    """Where it is written."""
    return folder.services / "live.json"


def write_live(folder: CampaignFolder, live: Live) -> None:
    """Replace the file.

    Raises:
        UsageError: it cannot be written.
    """
    write_json(live_file(folder), asdict(live))


def read_live(folder: CampaignFolder) -> Live | None:
    """What was written a moment ago; None if the file is missing, old or unreadable."""
    path = live_file(folder)
    try:
        # The time lies in the future after the clock was set back.
        if abs(time.time() - path.stat().st_mtime) > _STALE_S:
            return None
        return from_json(Live, read_json(path))
    except (OSError, CorruptDataError, ValueError):
        return None  # never written, written by another version, or deleted this instant
