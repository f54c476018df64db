"""Bytes that a campaign takes on the disk, counted without walking what cannot have changed."""

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn.data.manifest import stored_bytes

_PERIOD_S: Final = 30.0
"""Between two counts."""
_STEADY: Final = ("games", "checkpoints", "matches")
"""Folders of folders whose files are put in place whole: what one of these holds has not changed
while its own time has not."""


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
            self._next_s = time.monotonic() + _PERIOD_S
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
