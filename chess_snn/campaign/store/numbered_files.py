"""Files numbered from 0 without gaps, each written once: read as they come, and no more often."""

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

Entry = TypeVar("Entry")

Mark = tuple[int, ...]
"""Tells a file from the one that took its place."""


class NumberedFiles(Generic[Entry]):
    """What the files hold, kept up to date by :meth:`refresh`."""

    def __init__(self, path_of: Callable[[int], Path], read: Callable[[int], Entry]) -> None:
        """Of the files ``path_of(0)``, ``path_of(1)``, … in one folder, each read by ``read``."""
        self.entries: list[Entry] = []
        self._path_of = path_of
        self._read = read
        self._marks: list[Mark | None] = []
        self._folder_mark: Mark | None = None

    def refresh(self) -> bool:
        """Whether anything has changed; where nothing has, two files were looked at.

        From a file that was replaced or removed, all that follow are read again.
        """
        folder_mark = mark_of(self._path_of(0).parent)
        has_forgotten = folder_mark != self._folder_mark and self._forget_changed()
        self._folder_mark = folder_mark
        has_read = self._read_new()
        return has_forgotten or has_read

    def _forget_changed(self) -> bool:
        for number, mark in enumerate(self._marks):
            if mark_of(self._path_of(number)) != mark:
                del self.entries[number:], self._marks[number:]
                return True
        return False

    def _read_new(self) -> bool:
        first = len(self.entries)
        while (mark := mark_of(self._path_of(len(self.entries)))) is not None:
            self.entries.append(self._read(len(self.entries)))
            self._marks.append(mark)
        return len(self.entries) > first


def mark_of(path: Path) -> Mark | None:
    """Differs when the file was replaced; None where it is missing."""
    try:
        facts = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size
