"""Records of server processes: which process a server is, who owns it, and where it answers.

A record is a file beside the server's data. The process that started the server, its owner, holds a
lock on the record until it ends, however it ends.
"""

import fcntl
import json
import os
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TypeVar

import psutil

from chess_snn import processes
from chess_snn.campaign.store.typed_json import from_json
from chess_snn.data import read_json
from chess_snn.data.files import make_folder, writing
from chess_snn.data.plain_files import open_in_place
from chess_snn.errors import CorruptDataError, UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_CLOCK_DRIFT_S: Final = 10.0
"""The clock is corrected by less than this; no process gets the id of another one so soon."""

Record = TypeVar("Record", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """Process of a server, who owns it, and where it answers."""

    machine: str
    """Host name of both processes."""
    pid: int
    started: float
    """When, in seconds since 1970; tells the process from a later one with the same id."""
    owner_pid: int
    url: str
    health_url: str


def claim_record(record_file: Path) -> IO[str] | None:
    """Lock a record, after which nothing runs that a dead owner left.

    Returns:
        The record, empty and locked until it is closed or this process ends; None if another
        process has the lock.

    Raises:
        UsageError: the file cannot be written or locked.
    """
    with writing(record_file):
        make_folder(record_file.parent)
        file = open(record_file, "a", opener=open_in_place)  # noqa: SIM115 - the caller closes it
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if isinstance(error, BlockingIOError):
            return None
        raise UsageError(
            f"cannot lock {record_file}: {error.strerror}; choose a folder on a disk with locks"
        ) from error
    left = read_record(ServerRecord, record_file)
    if left is not None and left.machine == socket.gethostname():
        _stop_leftover(left)
    file.truncate(0)
    return file


def is_claimed(record_file: Path) -> bool:
    """Whether a process holds the lock of a record."""
    try:
        with record_file.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there is no record, or there are no locks
        return False
    return False


def _stop_leftover(left: ServerRecord) -> None:
    """Stop a server whose owner is dead; a process that has got its id is left alone."""
    with suppress(psutil.NoSuchProcess, ValueError):
        process = psutil.Process(left.pid)
        if abs(process.create_time() - left.started) < _CLOCK_DRIFT_S:
            processes.end(partial(os.killpg, left.pid), lambda: has_ended(process))


def has_ended(process: psutil.Process) -> bool:
    """Whether a process has, even if its parent has not noticed."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def write_record(file: IO[str], record: "DataclassInstance") -> None:
    """Replace what is in a claimed record."""
    with writing(Path(file.name)):
        file.truncate(0)
        file.write(json.dumps(asdict(record)))
        file.flush()


def read_record(kind: type[Record], record_file: Path) -> Record | None:
    """A record; None if there is none, or its owner is just writing it."""
    try:
        return from_json(kind, read_json(record_file))
    except (CorruptDataError, ValueError):
        return None
