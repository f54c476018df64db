"""Who writes a campaign, seen from outside and without touching its lock.

Trying the lock would be simpler, but a campaign that begins at the same instant would be refused.
So the process is read from the file; whether it still runs the campaign, from its open files.
"""

import json
import socket
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path

import psutil

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.config import check_range
from chess_snn.errors import ConfigError


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
    """Whether the process is alive and has ``path`` open, as far as this user may know."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:  # in containers it can stay one
            return False
        return any(_is_same(file.path, path) for file in process.open_files())
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True  # another user's process: that it lives is all that can be known


def _is_same(name: str, path: Path) -> bool:
    try:
        return path.samefile(name)
    except OSError:  # closed meanwhile
        return False
