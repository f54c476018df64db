"""The option ``--json-file`` of commands that take their time, and a check of any such file."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from chess_snn.errors import UsageError

JsonFile = Annotated[Path | None, typer.Option(help="Write what was found to this file as well.")]


def check_writable(path: Path | None, option: str = "--json-file") -> None:
    """Say before the work, not after it, that the file cannot be written.

    Raises:
        UsageError: ``path`` is a folder, or lies where this user may not write.
    """
    if path is None:
        return
    nearest = next(parent for parent in path.absolute().parents if parent.exists())
    try:
        if path.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}; choose another {option}"
        ) from error
