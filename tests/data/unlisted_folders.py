"""Folders whose files may be read by who knows their names, and that nobody may list."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534
READ_BY_NAME = 0o333
FOR_ALL = 0o777


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A new folder that others may reach and write to, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(FOR_ALL)
        yield Path(made)


@contextmanager
def unlisted(folder: Path) -> Iterator[None]:
    """In the block this process may not list ``folder``, root though it be."""
    is_root = os.geteuid() == 0
    mode = folder.stat().st_mode
    folder.chmod(READ_BY_NAME)
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(mode)
