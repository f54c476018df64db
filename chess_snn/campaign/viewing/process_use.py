"""Cores and memory that a process and its descendants take, from /proc."""

import os
import time
from dataclasses import dataclass
from typing import Final

from chess_snn.campaign.viewing.writer import PROC

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")

# Of /proc/<pid>/stat, counted from behind the name, which may hold spaces and brackets.
_PARENT, _USER_TICKS, _SYSTEM_TICKS, _START_TICKS, _PAGES = 1, 11, 12, 19, 21

_FAMILY_PERIOD_S: Final = 20.0
"""Between two searches for descendants, which read a line of every process there is."""


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What a family of processes takes."""

    num_processes: int
    cores: float
    """Mean cores kept busy since the last look; at the first, since the family began."""
    memory_bytes: int
    """Resident; pages that are shared count for each."""


@dataclass(frozen=True, slots=True)
class _Process:
    parent: int
    cpu_s: float
    start_s: float
    """Seconds after the machine started."""
    memory_bytes: int


class ProcessMeter:
    """Watches one family of processes after another."""

    def __init__(self) -> None:
        self._root = 0
        self._family: list[int] = []
        self._family_until_s = 0.0
        self._cpu_s: dict[int, float] = {}
        self._looked_s = 0.0

    def look(self, pid: int) -> ProcessUse | None:
        """What ``pid`` and its descendants take; None where it has ended or /proc is missing."""
        now_s = time.monotonic()
        if pid != self._root or now_s >= self._family_until_s:
            if pid != self._root:
                self._cpu_s = {}
            self._root, self._family = pid, _family(pid)
            self._family_until_s = now_s + _FAMILY_PERIOD_S
        found = {member: process for member in self._family
                 if (process := _read_process(member)) is not None}
        if pid not in found:
            self._root = 0
            return None
        seconds = now_s - self._looked_s if self._cpu_s else _uptime_s() - found[pid].start_s
        busy_s = sum(
            max(0.0, process.cpu_s - self._cpu_s.get(member, 0.0))
            for member, process in found.items()
        )
        self._cpu_s = {member: process.cpu_s for member, process in found.items()}
        self._looked_s = now_s
        return ProcessUse(
            num_processes=len(found),
            cores=busy_s / seconds if seconds > 0 else 0.0,
            memory_bytes=sum(process.memory_bytes for process in found.values()),
        )


def _family(root: int) -> list[int]:
    """``root`` and all its descendants."""
    children: dict[int, list[int]] = {}
    if not PROC.is_dir():
        return []
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (process := _read_process(int(entry.name))) is not None:
            children.setdefault(process.parent, []).append(int(entry.name))
    family = [root]
    for member in family:  # grows while it is gone through
        family += children.get(member, [])
    return family


def _read_process(pid: int) -> _Process | None:
    try:
        line = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # ended
        return None
    fields = line.rpartition(")")[2].split()
    return _Process(
        parent=int(fields[_PARENT]),
        cpu_s=(int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])) / _TICKS_PER_S,
        start_s=int(fields[_START_TICKS]) / _TICKS_PER_S,
        memory_bytes=int(fields[_PAGES]) * _PAGE_BYTES,
    )


def _uptime_s() -> float:
    return float((PROC / "uptime").read_text(encoding="ascii").split()[0])
