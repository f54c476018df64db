"""Secrets in files, which nobody but their owner may be able to read."""

import os
import stat
from pathlib import Path
from typing import Final

from chess_snn.errors import ConfigError

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_MOST_BYTES: Final = 4096


def read_secret(path: Path, variable: str) -> str:
    """The first line of the file at ``path``.

    Args:
        path: an ordinary file of this user, of mode 0600 or less.
        variable: that names it, for messages.

    Raises:
        ConfigError: it cannot be read, or others may do something with it; tells no content.
    """
    try:
        # What is looked at is what is read, whatever becomes of the path meanwhile.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"cannot read {path}, which {variable} names: {reason}") from error
    try:
        _check_owner_only(f"{path}, which {variable} names,", path, os.fstat(descriptor))
        line = os.read(descriptor, _MOST_BYTES).partition(b"\n")[0]
    finally:
        os.close(descriptor)
    try:
        return line.decode().strip()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}, which {variable} names, is no text in UTF-8") from error


def _check_owner_only(named: str, path: Path, facts: os.stat_result) -> None:
    mode = stat.S_IMODE(facts.st_mode)
    if not stat.S_ISREG(facts.st_mode):
        raise ConfigError(f"{named} is no file; give an ordinary file")
    if facts.st_uid != os.getuid():
        raise ConfigError(f"{named} belongs to user {facts.st_uid}; give a file of your own")
    if mode & _OTHERS:
        raise ConfigError(
            f"{named} has mode {mode:04o}, by which others may read or change it; run chmod 600 "
            f"{path}, and choose another password if they did"
        )
