"""Disks: where campaigns go, and where compiled kernels are kept."""

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

from chess_snn.caches import cache_root
from chess_snn.doctor.findings import Finding, broken, note, ok

LEAST_FREE_GIB: Final = 3.0
"""What the preset `smoke` and its servers are promised to fit in."""
GOOD_FREE_GIB: Final = 20.0
SLOW_SYNC_S: Final = 0.5
"""A shard waits for a dozen of these."""

_GIB: Final = 2**30


def check_storage(home: Path) -> list[Finding]:
    """The disk of ``home``, where deployed campaigns and services are, and the kernels' cache."""
    return [check_disk("disk", home), check_cache(cache_root())]


def check_disk(subject: str, folder: Path) -> Finding:
    """Whether ``folder`` may be written, has room, and keeps what it was told to."""
    nearest = nearest_existing(folder)
    free_gib = shutil.disk_usage(nearest).free / _GIB
    fact = f"{free_gib:.1f} GiB free for {folder}"
    try:
        seconds = sync_seconds(nearest)
    except OSError as error:
        return broken(
            subject, f"{folder} cannot be written: {error.strerror}",
            "mend its permissions, or choose another place with CHESS_SNN_HOME",
        )
    if free_gib < LEAST_FREE_GIB:
        return broken(
            subject, fact,
            f"free some space, {LEAST_FREE_GIB:g} GiB are the least, or choose another place with "
            "CHESS_SNN_HOME",
        )
    fact += f", a file is safe on it after {1000 * seconds:.0f} ms"
    if seconds > SLOW_SYNC_S:
        return note(subject, fact, "choose a faster disk with CHESS_SNN_HOME")
    if free_gib < GOOD_FREE_GIB:
        return note(subject, fact, "campaigns of many hours want more")
    return ok(subject, fact)


def check_cache(folder: Path) -> Finding:
    """Whether compiled kernels can be kept."""
    nearest = nearest_existing(folder)
    if not os.access(nearest, os.W_OK):
        return broken(
            "kernel cache", f"{folder} cannot be written",
            "set CHESS_SNN_CACHE to a folder that can; else kernels are compiled by every process",
        )
    return ok("kernel cache", str(folder))


def nearest_existing(folder: Path) -> Path:
    """``folder``, or the nearest of its parents that is there."""
    folder = folder.absolute()
    return next(path for path in (folder, *folder.parents) if path.exists())


def sync_seconds(folder: Path) -> float:
    """How long it takes until a small file is on the disk.

    Raises:
        OSError: it cannot be written.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        begun = time.perf_counter()
        file.write(b"chess-snn")
        file.flush()
        os.fsync(file.fileno())
        return time.perf_counter() - begun
