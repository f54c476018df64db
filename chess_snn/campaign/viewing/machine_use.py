"""What a campaign takes of its machine: bytes on the disk, cores and memory of its processes."""

import os
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
_STEADY: Final = ("games", "checkpoints", "matches")
"""Folders of folders whose files are put in place whole: what one of these holds has not changed
while its own time has not."""
_FAMILY_PERIOD_S: Final = 20.0
"""Between two searches for child processes, which look at every process of the machine."""


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes of a campaign's files, and bytes left on its disk."""

    used_bytes: int
    free_bytes: int


class DiskMeter:
    """Counts the files of one folder again and again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._counted: dict[str, tuple[int, int]] = {}
        """Time and bytes of a steady folder, by path."""
        self._next_s = 0.0
        self._last = DiskUse(0, 0)

    def look(self) -> DiskUse:
        """The count; it is up to half a minute old."""
        if time.monotonic() >= self._next_s:
            self._last = DiskUse(self._count(), shutil.disk_usage(self._path).free)
            self._next_s = time.monotonic() + _COUNT_PERIOD_S
        return self._last

    def _count(self) -> int:
        total = 0
        with os.scandir(self._path) as entries:
            for entry in entries:
                if entry.name in _STEADY and entry.is_dir():
                    total += self._count_steady(entry.path)
                else:
                    total += stored_bytes(Path(entry.path))
        return total

    def _count_steady(self, path: str) -> int:
        total = 0
        with os.scandir(path) as entries:
            for entry in entries:
                try:
                    changed_ns = entry.stat(follow_symlinks=False).st_mtime_ns
                except FileNotFoundError:  # a temporary one, in place by now
                    continue
                known = self._counted.get(entry.path)
                if known is None or known[0] != changed_ns:
                    known = changed_ns, stored_bytes(Path(entry.path))
                    self._counted[entry.path] = known
                total += known[1]
        return total


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
        self._family: list[psutil.Process] = []
        """The process, then its descendants."""
        self._family_until_s = 0.0
        self._cpu_s: dict[psutil.Process, float] = {}
        self._looked_s = 0.0

    def look(self, pid: int) -> ProcessUse | None:
        """What ``pid`` and its descendants take; None if it has ended."""
        now_s = time.monotonic()
        self._find_family(pid)
        cpu_s: dict[psutil.Process, float] = {}
        memory_bytes = 0
        for process in self._family:
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied), process.oneshot():
                memory_bytes += process.memory_info().rss
                times = process.cpu_times()
                cpu_s[process] = times.user + times.system
        if not self._family or self._family[0] not in cpu_s:
            self._family, self._cpu_s = [], {}
            return None
        age_s = time.time() - self._family[0].create_time()
        seconds = now_s - self._looked_s if self._cpu_s else age_s
        busy_s = sum(
            max(0.0, total_s - self._cpu_s.get(process, 0.0)) for process, total_s in cpu_s.items()
        )
        self._cpu_s, self._looked_s = cpu_s, now_s
        return ProcessUse(
            num_processes=len(cpu_s),
            cores=busy_s / seconds if seconds > 0 else 0.0,
            memory_bytes=memory_bytes,
        )

    def _find_family(self, pid: int) -> None:
        is_other = not self._family or self._family[0].pid != pid
        if not is_other and time.monotonic() < self._family_until_s:
            return
        if is_other:
            self._cpu_s = {}
        self._family = []
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            self._family = [process, *process.children(recursive=True)]
        self._family_until_s = time.monotonic() + _FAMILY_PERIOD_S
