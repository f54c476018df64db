"""The process that runs a campaign: which one it is, and the progress that it reports.

It is seen from outside and without touching the campaign's lock: a campaign that begins while
another process tries the lock would be refused. So the process is read from the lock file; whether
it still runs the campaign, from its open files. Every few seconds it writes the newest progress of
stages and workers to a file for ``chess-snn watch``. That file is a view: it may be deleted.
"""

import json
import shutil
import socket
import time
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Final

import psutil

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.typed_json import from_json
from chess_snn.campaign.viewing.events import Event, StageProgress, WorkerProgress, WorkersProgress
from chess_snn.data import read_json, write_json
from chess_snn.data.manifest import stored_bytes
from chess_snn.errors import ConfigError, CorruptDataError
from chess_snn.settings import check_range

PERIOD_S: Final = 5.0
"""Between two writes."""

_STALE_S: Final = 30.0
"""The process that writes an older file has ended, or cannot write."""
_COUNT_PERIOD_S: Final = 30.0
"""Between two counts of the files."""
_COUNT_SHARE: Final = 0.02
"""Share of the time that counting may take, in a campaign of many files or on a slow disk."""


@dataclass(frozen=True, slots=True)
class Live:
    """Stages and workers at one moment."""

    stages: tuple[StageProgress, ...] = ()
    """Stages under way, in the order in which they began."""
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
    """Return the path of the file."""
    return folder.services / "live.json"


def write_live(folder: CampaignFolder, live: Live) -> None:
    """Replace the file.

    Raises:
        UsageError: it cannot be written.
    """
    write_json(live_file(folder), asdict(live))


def read_live(folder: CampaignFolder) -> Live:
    """Read what was written last; empty if the file is missing or unreadable."""
    try:
        return from_json(Live, read_json(live_file(folder)))
    except (OSError, CorruptDataError, ValueError):
        return Live()  # never written, written by another version, or deleted this instant


def is_reporting(folder: CampaignFolder) -> bool:
    """Return whether the file was written a moment ago."""
    try:
        # The time lies in the future after the clock was set back.
        return abs(time.time() - live_file(folder).stat().st_mtime) <= _STALE_S
    except OSError:
        return False


class WriterState(Enum):
    """The state of the process that a lock file names; the value is for people."""

    RUNNING = "running"
    STOPPED = "stopped"
    ELSEWHERE = "on another host"
    """Its processes are invisible from here."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The process that holds a campaign's lock, or held it last."""

    host: str
    pid: int
    since: datetime
    """When it took the lock; has a time zone."""
    state: WriterState

    def __str__(self) -> str:
        """``running: process 123 on here, begun 2026-01-31 12:00:00 UTC``."""
        since = f"{self.since:%Y-%m-%d %H:%M:%S %Z}"
        return f"{self.state.value}: process {self.pid} on {self.host}, begun {since}"


def find_writer(folder: CampaignFolder) -> Writer | None:
    """The writer that the lock file names; None if there is none yet, or it is just starting."""
    try:
        body = json.loads(folder.lock_file.read_bytes())
        host, pid, since = str(body["host"]), int(body["pid"]), str(body["since"])
        check_range("pid", pid, gt=0, lt=2**31)
        begun = datetime.fromisoformat(since).astimezone()
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, ConfigError):
        return None  # written in two steps, truncated and then filled; or damaged
    if host != socket.gethostname():
        return Writer(host, pid, begun, WriterState.ELSEWHERE)
    is_held = _has_open(pid, folder.lock_file)
    return Writer(host, pid, begun, WriterState.RUNNING if is_held else WriterState.STOPPED)


def _has_open(pid: int, path: Path) -> bool:
    """Return whether the process is alive and has ``path`` open, as far as this user may know."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:  # in containers it can stay one
            return False
        return str(path.resolve()) in {file.path for file in process.open_files()}
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True  # another user's process: that it lives is all that can be known


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes of a campaign's files, and bytes left on its disk."""

    used_bytes: int
    free_bytes: int


class DiskMeter:
    """Counts the files of one folder again and again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next_s = 0.0
        self._last = DiskUse(0, 0)

    def look(self) -> DiskUse:
        """The count; it is up to half a minute old, or older if counting takes long."""
        begun_s = time.monotonic()
        if begun_s >= self._next_s:
            used = sum(map(stored_bytes, self._path.iterdir()))
            self._last = DiskUse(used, shutil.disk_usage(self._path).free)
            end_s = time.monotonic()
            self._next_s = end_s + max(_COUNT_PERIOD_S, (end_s - begun_s) / _COUNT_SHARE)
        return self._last
