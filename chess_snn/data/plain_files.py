"""Folders that may come from elsewhere: what is written to one or deleted from it stays inside."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from chess_snn.errors import UsageError


def check_plain(folder: Path, levels: int) -> None:
    """Return if all in ``folder``, down to so many ``levels``, are plain files and folders.

    Raises:
        UsageError: something is a link, a pipe or a device; it is named.
    """
    if (odd := _find_odd(folder, levels)) is not None:
        kind = "a link" if odd.is_symlink() else "a pipe or a device"
        raise UsageError(
            f"{odd} is {kind}, through which reading, writing and deleting could leave {folder}; "
            "put the file or folder itself there, or delete it"
        )


def _find_odd(folder: Path, levels: int) -> Path | None:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:  # a writer removed the folder
        for entry in entries:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                if levels > 1 and (odd := _find_odd(path, levels - 1)):
                    return odd
            elif not entry.is_file(follow_symlinks=False):
                return path
    return None


def open_in_place(path: str | Path, flags: int) -> int:
    """A descriptor of the file ``path`` to be written in place; it is made where it is missing.

    Through a link, a pipe, a device or a second name of the file, the writing would go elsewhere.
    It is an opener of :func:`open`: ``open(path, "a", opener=open_in_place)``.

    Raises:
        OSError: it is not a plain file with one name, or cannot be opened.
    """
    flags |= os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o644)
    facts = os.fstat(descriptor)
    if stat.S_ISREG(facts.st_mode) and facts.st_nlink <= 1:
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EMLINK, "it is not a plain file with one name", str(path))
