"""What lies beside a campaign's matches: what a suite or a climb came to, with a digest of it."""

from pathlib import Path
from typing import Final

from chess_snn.data import StoredFormat, read_json, write_json
from chess_snn.types import Json

_FORMAT: Final = StoredFormat("report", version=2, upgrades={1: dict}, first_with_digest=2)
_FIRST: Final = {"schema": 1}
"""The first version did not say so."""
_WAY_OUT: Final = "restore it from a copy"


def write_report(path: Path, body: Json) -> None:
    """Put ``body`` at ``path``.

    Raises:
        UsageError: the place cannot be written.
    """
    write_json(path, _FORMAT.sealed(body))


def read_report(path: Path) -> Json:
    """What :func:`write_report` was given.

    Raises:
        UnknownVersionError: it is of a version that is not read.
        CorruptDataError: it is missing or damaged.
    """
    return _FORMAT.unsealed(_FIRST | read_json(path, _WAY_OUT), path, _WAY_OUT)
