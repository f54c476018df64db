"""Folders that may come from elsewhere: what is written to one or deleted from it stays inside."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from chess_snn.errors import UsageError


def refuse_links(folder: Path, levels: int) -> None:
    """Return if nothing in ``folder`` is a symbolic link; deeper than ``levels``, links may be.

    Raises:
        UsageError: something is; it is named.
    """
    if link := _find_link(folder, levels):
        raise UsageError(
            f"{link} is a link, which could lead writing and deleting out of {folder}; put the "
            "file or folder itself there, or delete the link"
        )


def _find_link(folder: Path, levels: int) -> Path | None:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:  # a writer removed the folder
        for entry in entries:
            path = Path(entry.path)
            if entry.is_symlink():
                return path
            if levels > 1 and entry.is_dir() and (link := _find_link(path, levels - 1)):
                return link
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
