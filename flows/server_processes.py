"""Server processes: started, awaited, shared with other processes, and never left behind.

A server is stopped on every way out of :func:`running_server`; the kernel stops it when this
process is killed (:mod:`chess_snn.processes`). Beside its data is a record of its process, of its
owner's and of the machine; on other systems than Linux, the next start finds the record and stops
what was left. If the recorded owner is alive, the server is shared once it answers. If that is on
another machine, a start is refused: a lock on the record says whether the owner lives, as a
campaign's lock does.
"""

import fcntl
import http.client
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from chess_snn import processes
from chess_snn.campaign.store.typed_json import from_json
from chess_snn.data import read_json, write_json
from chess_snn.data.files import writing
from chess_snn.errors import ChessSnnError, CorruptDataError, UsageError
from chess_snn.ports import LOOPBACK
from chess_snn.processes import is_running, log_tail, start_of, stop_leftover
from chess_snn.types import LogFn

HOST = LOOPBACK
"""Embedded servers listen on loopback only, because they have no password."""

POLL_INTERVAL_S = 0.1
HEALTH_TIMEOUT_S = 2.0

OnWait: TypeAlias = Callable[[str, float], None]
"""Called while a child starts, with its name and the seconds waited so far."""


class ServerStartError(ChessSnnError):
    """A server did not start; the message ends with the last lines of its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """How to run one child."""

    name: str
    """For messages: ``"Prefect server"``."""
    command: Sequence[str]
    """Program and arguments."""
    environment: Mapping[str, str]
    """Added to this process's environment."""
    log_file: Path
    """Receives its standard output and error, appended."""
    record_file: Path
    """Holds its :class:`ChildRecord` while it runs."""
    url: str = ""
    """Given to its users, if it is a server."""
    stop_timeout_s: float = processes.STOP_TIMEOUT_S
    """Time between SIGTERM and SIGKILL."""
    tree_grace_s: float | None = None
    """As for :func:`chess_snn.processes.start`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec(ChildSpec):
    """How to run one server."""

    host: str = HOST
    """Address it listens on."""
    port: int
    health_path: str
    """Answers 200 once the server works."""


@dataclass(frozen=True, slots=True)
class ChildRecord:
    """Which process a child is, and who owns it; starts are as :func:`start_of` returns them."""

    pid: int
    started: str
    owner_pid: int
    owner_started: str
    url: str
    machine: str
    """Host name of both."""


@contextmanager
def running_server(
    spec: ServerSpec, *, progress: OnWait | None = None, tell: LogFn | None = None,
    start_timeout_s: float,
) -> Iterator[str]:
    """Run a server for the length of the block and yield its URL.

    If another live process already runs it (same record file), nothing is started or stopped: its
    URL is yielded once it answers, and ``tell`` is told which process owns it.

    On Linux the server ends with the *thread* that enters: enter from one that lasts.

    Raises:
        UsageError: a process on another machine runs it, or its log or record cannot be written.
        ServerStartError: it exited early, or was not healthy after ``start_timeout_s`` seconds.
    """
    shared = _await_shared(spec, progress, start_timeout_s)
    if shared is not None:
        if tell is not None:
            tell(
                f"sharing the {spec.name} of process {shared.owner_pid}, which ends with that "
                "process"
            )
        yield shared.url
        return
    child = start_child(spec)
    with ExitStack() as stack:
        try:
            stack.callback(os.close, _lock_record(spec.record_file))
            wait_until_healthy(spec, child, progress, start_timeout_s)
            yield spec.url
        finally:
            stop_child(spec, child)


def _await_shared(
    spec: ServerSpec, progress: OnWait | None, timeout_s: float
) -> ChildRecord | None:
    """The record of a server that another live process runs, once it answers; None without one."""
    begun = time.monotonic()
    while (record := remove_stale(spec.record_file)) is not None:
        if is_healthy(replace(spec, port=urlsplit(record.url).port or spec.port)):
            return record
        waited_s = time.monotonic() - begun
        if waited_s > timeout_s:
            raise ServerStartError(
                f"the {spec.name} of process {record.owner_pid} did not answer {spec.health_path} "
                f"within {timeout_s:.0f} s; end that process, then try again. The end of "
                f"{spec.log_file}:\n{log_tail(spec.log_file)}"
            )
        if progress is not None:
            progress(spec.name, waited_s)
        time.sleep(POLL_INTERVAL_S)
    return None


def start_child(spec: ChildSpec) -> "subprocess.Popen[bytes]":
    """Start a child and write its record; on Linux it ends with the *thread* that called this.

    Raises:
        UsageError: its log or its record cannot be written.
    """
    with writing(spec.log_file):
        spec.log_file.parent.mkdir(parents=True, exist_ok=True)
        log = spec.log_file.open("ab")
    with log:
        child = processes.start(
            spec.command, environment=spec.environment, stdout=log, stderr=subprocess.STDOUT,
            tree_grace_s=spec.tree_grace_s,
        )
    owner = os.getpid()
    try:
        record = ChildRecord(
            pid=child.pid, started=start_of(child.pid), owner_pid=owner,
            owner_started=start_of(owner), url=spec.url, machine=socket.gethostname(),
        )
        write_json(spec.record_file, asdict(record))
    except BaseException:
        stop_child(spec, child)
        raise
    return child


def stop_child(spec: ChildSpec, child: "subprocess.Popen[bytes]") -> None:
    """Stop a child, everything in its session, and remove its record."""
    processes.stop(child, spec.stop_timeout_s)
    spec.record_file.unlink(missing_ok=True)


def wait_until_healthy(
    spec: ServerSpec, child: "subprocess.Popen[bytes]", progress: OnWait | None, timeout_s: float
) -> None:
    """Return once the server answers.

    Raises:
        ServerStartError: it exited early, or did not answer within ``timeout_s`` seconds.
    """
    wait_until(
        lambda: is_healthy(spec), spec, child, progress, timeout_s, f"answer {spec.health_path}"
    )


def wait_until(
    is_up: Callable[[], bool], spec: ChildSpec, child: "subprocess.Popen[bytes]",
    progress: OnWait | None, timeout_s: float, sign: str,
) -> None:
    """Return once ``is_up()``; ``sign`` describes it in "the server did not …".

    Raises:
        ServerStartError: the child exited early, or ``timeout_s`` seconds passed.
    """
    begun = time.monotonic()
    while not is_up():
        waited_s = time.monotonic() - begun
        if child.poll() is not None:
            raise ServerStartError(
                f"{spec.name} {processes.describe_exit(child.returncode)} after {waited_s:.0f} s; "
                f"the end of {spec.log_file}:\n{log_tail(spec.log_file)}"
            )
        if waited_s > timeout_s:
            raise ServerStartError(
                f"{spec.name} did not {sign} within {timeout_s:.0f} s; "
                f"the end of {spec.log_file}:\n{log_tail(spec.log_file)}"
            )
        if progress is not None:
            progress(spec.name, waited_s)
        time.sleep(POLL_INTERVAL_S)


def is_healthy(spec: ServerSpec) -> bool:
    """Whether the server answers 200."""
    connection = http.client.HTTPConnection(spec.host, spec.port, timeout=HEALTH_TIMEOUT_S)
    try:
        connection.request("GET", spec.health_path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def remove_stale(record_file: Path) -> ChildRecord | None:
    """Stop the child that a dead owner left, and remove its record; the record of a live owner.

    A process is stopped only if both its pid and its start are the recorded ones.

    Raises:
        UsageError: its owner is alive on another machine, or may be; nothing was stopped. Or the
            record cannot be removed.
    """
    with writing(record_file):
        record = _read_record(record_file)
        if record is not None and record.machine != socket.gethostname():
            if _is_locked(record_file):
                raise UsageError(_elsewhere(record, record_file))
        elif record is not None and is_running(record.pid, record.started):
            if is_running(record.owner_pid, record.owner_started):
                return record
            stop_leftover(record.pid, record.started)
        record_file.unlink(missing_ok=True)
    return None


def _read_record(record_file: Path) -> ChildRecord | None:
    """The record; None where there is none, or a crash or an earlier version left another text."""
    try:
        return from_json(ChildRecord, read_json(record_file))
    except (CorruptDataError, ValueError):
        return None


def _lock_record(record_file: Path) -> int:
    """Lock it until the returned descriptor is closed, or this process ends, however it ends."""
    descriptor = os.open(record_file, os.O_RDWR)
    with suppress(OSError):  # a disk without locks: the owner is taken to be alive
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _is_locked(record_file: Path) -> bool:
    """Whether its owner is alive; on a disk without locks, it may be."""
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
