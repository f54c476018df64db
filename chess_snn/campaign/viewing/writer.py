"""Who writes a campaign, seen from outside and without touching its lock.

To try the lock would be simpler, and would now and then have a campaign refused that begins at the
same instant. So the holder's name is read from the file, and whether it still holds it from /proc.
"""

import json
import socket
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Final

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.config import check_range
from chess_snn.data import is_alive
from chess_snn.errors import ConfigError

PROC: Final = Path("/proc")


class WriterState(Enum):
    """What can be said of the process that a lock file names; the value is for people."""

    RUNNING = "running"
    STOPPED = "stopped"
    ELSEWHERE = "on another host"
    """So that its processes cannot be seen from here."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The process that holds a campaign's lock, or was the last to hold it."""

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
    """The writer that the lock file names; None where there is none yet, or it is just starting."""
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
    """Whether the process is alive and has ``path`` open, as far as this user may know."""
    if not is_alive(pid) or _is_zombie(pid):
        return False
    descriptors = PROC / str(pid) / "fd"
    try:
        return any(_is_same(entry, path) for entry in descriptors.iterdir())
    except (FileNotFoundError, PermissionError):
        # Another user's process, or a system without /proc: alive is all that can be told.
        return is_alive(pid)


def _is_zombie(pid: int) -> bool:
    """Whether it has ended, and nobody has asked how; in containers that can stay so."""
    try:
        line = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return line.rpartition(")")[2].split()[0] == "Z"


def _is_same(descriptor: Path, path: Path) -> bool:
    try:
        return descriptor.samefile(path)
    except OSError:  # closed meanwhile
        return False
