"""A small disk of its own, which can be full; without root, a folder."""

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TMPFS_MIB = 192
"""Of memory, at most; a campaign of a soak takes some 30 MiB, half of them Prefect's database."""

MOST_LEFT = 1 << 20
"""Bytes: on a full disk less than this is free, which a checkpoint does not fit into."""


def fill(disk: Path, left: int) -> None:
    """Leave ``left`` bytes free on ``disk``."""
    with (disk / "ballast").open("wb") as ballast:
        while (free := shutil.disk_usage(disk).free) > left:
            try:
                os.posix_fallocate(ballast.fileno(), 0, free - left)
            except OSError as error:
                if error.errno != errno.ENOSPC:  # others have written meanwhile
                    raise


def free(disk: Path) -> None:
    """Make room again."""
    (disk / "ballast").unlink(missing_ok=True)


@contextmanager
def campaign_disk(path: Path) -> Iterator[bool]:
    """Mount a small disk at ``path`` for the length of the block; False where we may not."""
    path.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_MIB}m", "tmpfs", str(path)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
        path.rmdir()
