"""What a campaign takes of its machine: bytes on the disk, cores and memory of its processes."""

import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from chess_snn.data.manifest import stored_bytes

_COUNT_PERIOD_S: Final = 30.0
"""Between two counts of the files."""
_COUNT_SHARE: Final = 0.02
"""Share of the time that counting may take, in a campaign of many files or on a slow disk."""


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


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What a process and its descendants take."""

    num_processes: int
    cores: float
    """Mean cores kept busy since the last look; at the first, since the process began."""
    memory_bytes: int
    """Resident; shared pages count for each process."""


class ProcessMeter:
    """Measures one process and its descendants again and again."""

    def __init__(self) -> None:
        self._busy_s: dict[psutil.Process, float] = {}
        """Seconds of processor time at the last look."""
        self._looked_s = 0.0

    def look(self, pid: int) -> ProcessUse | None:
        """What ``pid`` and its descendants take; None if it has ended."""
        now_s, memory_bytes = time.time(), 0
        busy_s: dict[psutil.Process, float] = {}
        with suppress(psutil.NoSuchProcess):
            root = psutil.Process(pid)
            for process in (root, *root.children(recursive=True)):
                with suppress(psutil.NoSuchProcess, psutil.AccessDenied), process.oneshot():
                    memory_bytes += process.memory_info().rss
                    times = process.cpu_times()
                    busy_s[process] = times.user + times.system
        if not busy_s or root not in busy_s:
            self._busy_s = {}
            return None
        seconds = now_s - (self._looked_s if root in self._busy_s else root.create_time())
        spent_s = sum(max(0.0, total - self._busy_s.get(process, 0.0))
                      for process, total in busy_s.items())
        self._busy_s, self._looked_s = busy_s, now_s
        return ProcessUse(len(busy_s), spent_s / seconds if seconds > 0 else 0.0, memory_bytes)
