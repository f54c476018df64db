"""The record that a child leaves beside its data: which process it is, whose, and on which machine.

It is there as long as the child is; that of a server is locked as long as its owner lives. Which
processes of another machine are alive cannot be asked; on a shared disk the lock says so, as a
campaign's does.
"""

import fcntl
import json
import os
import signal
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psutil

from chess_snn.data.files import writing
from chess_snn.errors import UsageError
from flows.process_identity import same_process, start_of

END_TIMEOUT_S: Final = 10.0
"""What a process that is reaped has to end by itself."""


@dataclass(frozen=True, slots=True)
class ChildRecord:
    """Which process a server is and who owns it; a start tells a process from a reused pid."""

    pid: int
    started: str
    """As :func:`start_of` has it."""
    owner_pid: int
    owner_started: str
    url: str
    machine: str = ""
    """Host name of both; empty in a record of an earlier version."""

    def __post_init__(self) -> None:
        """Raise TypeError for what no child left: processes are ended by what is said here."""
        for field in fields(self):
            if type(getattr(self, field.name)) is not field.type:
                raise TypeError(f"{field.name} must be of type {field.type}")


def write_record(record_file: Path, pid: int, url: str) -> None:
    """Record child ``pid`` of this process.

    Raises:
        UsageError: the place may not be written, or its disk is full.
    """
    owner_pid = os.getpid()
    record = ChildRecord(
        pid, start_of(pid), owner_pid, start_of(owner_pid), url, socket.gethostname()
    )
    partial = record_file.with_suffix(".partial")
    with writing(record_file):
        partial.write_text(json.dumps(asdict(record)))
        partial.replace(record_file)


def lock_record(record_file: Path) -> int:
    """Lock it until the returned descriptor is closed, or this process ends, however it ends."""
    descriptor = os.open(record_file, os.O_RDWR)
    with suppress(OSError):  # a disk without locks: its owner passes for alive
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def reap_stale(record_file: Path) -> ChildRecord | None:
    """End the server that a dead owner left behind; return its record if its owner is alive.

    A process is touched only if both its pid and its start are the recorded ones.

    Raises:
        UsageError: its owner is alive on another machine, or may be; nothing was touched. Or this
            user may not do away with the record.
    """
    with writing(record_file):
        return _reap(record_file)


def _reap(record_file: Path) -> ChildRecord | None:
    record = _read_record(record_file)
    if record is None:
        return None
    if record.machine in ("", socket.gethostname()):
        server = same_process(record.pid, record.started)
        if server is not None:
            if same_process(record.owner_pid, record.owner_started) is not None:
                return record
            _end_processes([server, *server.children(recursive=True)])
    elif _is_locked(record_file):
        raise UsageError(_elsewhere(record, record_file))
    record_file.unlink(missing_ok=True)
    return None


def _read_record(record_file: Path) -> ChildRecord | None:
    """The record, if there is one; what a crash cut short is removed."""
    try:
        return ChildRecord(**json.loads(record_file.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, RecursionError):  # it names no process
        record_file.unlink(missing_ok=True)
        return None


def _is_locked(record_file: Path) -> bool:
    """Whether its owner is alive; where the disk has no locks, it may be."""
    try:
        with record_file.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:  # it has just ended
        return False
    except OSError:
        return True
    return False


def _elsewhere(record: ChildRecord, record_file: Path) -> str:
    port = urlsplit(record.url).port
    tunnel = f" (ssh -L {port}:127.0.0.1:{port} {record.machine} brings its pages here)"
    return (
        f"{record_file.parent} has a server on {record.machine}, of process {record.owner_pid}, "
        f"and its database is for one machine at a time: look at it there{tunnel if port else ''}, "
        f"or end that process; if {record.machine} is gone for good, delete {record_file}"
    )


def _end_processes(processes: list[psutil.Process]) -> None:
    for process in processes:
        _signal(process, signal.SIGTERM)
    _, alive = psutil.wait_procs(processes, timeout=END_TIMEOUT_S)
    for process in alive:
        _signal(process, signal.SIGKILL)
    psutil.wait_procs(alive, timeout=END_TIMEOUT_S)


def _signal(process: psutil.Process, signal_number: signal.Signals) -> None:
    try:
        process.send_signal(signal_number)
    except psutil.NoSuchProcess:
        return  # it ended by itself
