"""A disk that can be full: a small one of its own where we may mount, else a file-size limit."""

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import psutil

TMPFS_MIB = 192
"""Of memory, at most; a campaign of a soak takes some 30 MiB, half of them Prefect's database."""

MOST_LEFT = 1 << 20
"""Bytes: on a full disk less than this is free, which a checkpoint does not fit into."""

SMALLEST_LIMIT, LARGEST_LIMIT = 128 << 10, 800 << 10
"""Bytes: of a file, where there is no disk of our own. What a campaign prints stays below, the
optimiser's state does not."""

BALLAST = "ballast"


class Disk(Protocol):
    """Where the campaigns of a soak lie."""

    path: Path
    description: str

    def fill(self, share: float, writers: Sequence[psutil.Process]) -> str:
        """Leave next to no room, ``share`` in [0, 1) of the most that is left; says how."""
        ...

    def free(self) -> None:
        """Make room again."""
        ...


class SmallDisk:
    """A tmpfs; needs root."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.description = f"a tmpfs of {TMPFS_MIB} MiB at {path}"

    def fill(self, share: float, writers: Sequence[psutil.Process]) -> str:
        """See :class:`Disk`."""
        del writers  # whoever writes here meets it
        left = int(share * MOST_LEFT)
        with (self.path / BALLAST).open("wb") as ballast:
            while not self._take_all_but(left, ballast.fileno()):
                pass  # others have written meanwhile
        return f"{left // 1024} KiB left"

    def _take_all_but(self, left: int, ballast: int) -> bool:
        free = shutil.disk_usage(self.path).free
        if free <= left:
            return True
        try:
            os.posix_fallocate(ballast, 0, free - left)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return False
        return True

    def free(self) -> None:
        """See :class:`Disk`."""
        (self.path / BALLAST).unlink(missing_ok=True)


class SizeLimit:
    """RLIMIT_FSIZE of the processes that write: no file may grow beyond it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.description = f"RLIMIT_FSIZE of the writers; there is no tmpfs at {path} without root"
        self._limited: list[psutil.Process] = []

    def fill(self, share: float, writers: Sequence[psutil.Process]) -> str:
        """See :class:`Disk`."""
        limit = SMALLEST_LIMIT + int(share * (LARGEST_LIMIT - SMALLEST_LIMIT))
        for process in writers:
            _, hard = process.rlimit(psutil.RLIMIT_FSIZE)
            process.rlimit(psutil.RLIMIT_FSIZE, (limit, hard))
            self._limited.append(process)
        return f"files of at most {limit // 1024} KiB"

    def free(self) -> None:
        """See :class:`Disk`."""
        for process in self._limited:
            # Workers that were started meanwhile have inherited it.
            for limited in _with_children(process):
                _lift(limited)
        self._limited.clear()


def _with_children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _lift(process: psutil.Process) -> None:
    try:
        _, hard = process.rlimit(psutil.RLIMIT_FSIZE)
        process.rlimit(psutil.RLIMIT_FSIZE, (hard, hard))
    except psutil.NoSuchProcess:
        return  # it has ended, and its limit with it


@contextmanager
def campaign_disk(path: Path) -> Iterator[Disk]:
    """A disk mounted at ``path`` for the length of the block, or the next best."""
    path.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_MIB}m", "tmpfs", str(path)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield SizeLimit(path)
        return
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
        path.rmdir()
