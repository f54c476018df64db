"""The record by which one command finds the services that another one started."""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil

from chess_snn.campaign.store.typed_json import from_json
from chess_snn.data import read_json, write_json
from chess_snn.data.files import make_folder, writing
from chess_snn.errors import CorruptDataError, UsageError
from flows.process_identity import same_process

RECORD_FILE: Final = "services.json"
LOCK_FILE: Final = "services.lock"
OWNER_ONLY: Final = 0o700
"""Mode of the folder: databases and logs tell what was run, and hold hashes of passwords."""


@dataclass(frozen=True, slots=True)
class ServicesRecord:
    """Which process runs the services, and where they are."""

    machine: str
    """Host name."""
    pid: int
    """Of the supervisor."""
    started: str
    """As :func:`flows.process_identity.start_of` has it: tells it from another with its pid."""
    prefect_url: str
    """Of the API."""
    mlflow_url: str
    runs: int
    """Runs at once."""
    has_credentials: bool
    is_ready: bool
    """Whether all of them have come up."""

    @property
    def prefect_page(self) -> str:
        """For a browser."""
        return self.prefect_url.removesuffix("/api")

    @property
    def supervisor(self) -> psutil.Process | None:
        """The process, if it is this machine's and alive."""
        if self.machine != socket.gethostname():
            return None
        return same_process(self.pid, self.started)


def read_record(directory: Path) -> ServicesRecord | None:
    """The record in ``directory``; None where there is none, or one cut short by a crash."""
    try:
        return from_json(ServicesRecord, read_json(directory / RECORD_FILE))
    except (CorruptDataError, ValueError):
        return None


def write_record(directory: Path, record: ServicesRecord) -> None:
    """Put it there for others to find."""
    write_json(directory / RECORD_FILE, asdict(record))


def remove_record(directory: Path) -> None:
    """Take it away."""
    (directory / RECORD_FILE).unlink(missing_ok=True)


def find_running(directory: Path) -> ServicesRecord | None:
    """The record of services that run now.

    Raises:
        UsageError: they run on another machine that shares the disk, or may do so.
    """
    record = read_record(directory)
    if record is None:
        return None
    if record.machine != socket.gethostname():
        raise UsageError(
            f"{directory} belongs to services on {record.machine} (process {record.pid}): go "
            "there, or give this machine a home of its own with CHESS_SNN_HOME; if "
            f"{record.machine} is gone for good, delete {directory / RECORD_FILE}"
        )
    return None if record.supervisor is None else record


@contextmanager
def services_lock(directory: Path) -> Iterator[None]:
    """Be the only supervisor on ``directory`` for the length of the block.

    The kernel drops the lock when the process ends, however it ends.

    Raises:
        UsageError: another one is, or the folder cannot be written.
    """
    with writing(directory):
        make_folder(directory)
        directory.chmod(OWNER_ONLY)
        descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"other services are starting or running on {directory}; see `chess-snn up`, or "
                "end them with `chess-snn down`"
            ) from None
        yield
    finally:
        os.close(descriptor)
