"""Server processes: started, awaited, shared with other processes, and never left behind.

Beside the data of a server is its record, which names its process and its address. The process that
started the server, its owner, holds a lock on the record until it ends, however it ends. While the
record is locked, other processes on this machine share the server; on other machines a start is
refused. A record without a lock names a process that a dead owner left: it is stopped before the
next start. On Linux the kernel has told it to end already (:mod:`chess_snn.processes`).
"""

import fcntl
import json
import logging
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

import httpx
import psutil

from chess_snn import processes
from chess_snn.campaign.store.typed_json import from_json
from chess_snn.data import read_json
from chess_snn.data.files import make_folder, writing
from chess_snn.data.plain_files import open_in_place
from chess_snn.errors import ChessSnnError, CorruptDataError, UsageError
from chess_snn.ports import LOOPBACK
from chess_snn.processes import describe_exit, log_tail
from chess_snn.types import LogFn

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

HOST: Final = LOOPBACK
"""Embedded servers listen on loopback only: what is sent to them is not encrypted."""

POLL_INTERVAL_S: Final = 0.1
HEALTH_TIMEOUT_S: Final = 2.0

_CLOCK_DRIFT_S: Final = 10.0
"""The clock is corrected by less than this; no process gets the id of another one so soon."""

_logger = logging.getLogger(__name__)

Record = TypeVar("Record", bound="DataclassInstance")


class ServerStartError(ChessSnnError):
    """A server did not start; the message ends with the last lines of its log."""

    code = "server.start"


class ServerInUseError(ChessSnnError):
    """Another process runs the server."""

    code = "server.in-use"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """How to run a server, or another process that stays."""

    name: str
    """For messages: ``"Prefect server"``."""
    command: Sequence[str]
    environment: Mapping[str, str]
    """Added to this process's environment."""
    log_file: Path
    """Receives its standard output and error, appended."""
    url: str = ""
    """For those who use it."""
    health_url: str = ""
    """Answers 200 once the server works."""
    stop_timeout_s: float = processes.STOP_TIMEOUT_S
    """Time between SIGTERM and SIGKILL."""
    tree_grace_s: float | None = None
    """As for :func:`chess_snn.processes.start`."""

    @property
    def record_file(self) -> Path:
        """Holds its :class:`ServerRecord` while it runs."""
        return self.log_file.with_suffix(".json")

    def start_error(self, reason: str) -> ServerStartError:
        """An error that says what is wrong with the server, and the end of its log."""
        return ServerStartError(
            f"the {self.name} {reason}; the end of {self.log_file}:\n{log_tail(self.log_file)}"
        )


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """Which process a server is, who owns it, and where it answers."""

    machine: str
    """Host name of both processes."""
    pid: int
    started: float
    """When, in seconds since 1970; tells the process from a later one with the same id."""
    owner_pid: int
    url: str
    health_url: str


class Server:
    """A server that this process runs until :meth:`stop`."""

    def __init__(self, spec: ServerSpec) -> None:
        """Start it; on Linux it ends with the *thread* that called this.

        Raises:
            ServerInUseError: another process runs it.
            UsageError: its log or its record cannot be written.
        """
        self.spec = spec
        record = claim_record(spec.record_file)
        if record is None:
            raise ServerInUseError(
                f"another process runs the {spec.name} of {spec.log_file.parent}; end it first"
            )
        self._began_s = time.monotonic()
        with ExitStack() as stack:
            stack.enter_context(record)
            stack.callback(record.truncate, 0)
            with writing(spec.log_file), open(spec.log_file, "ab", opener=open_in_place) as log:
                self.process = processes.start(
                    spec.command, environment=spec.environment, stdout=log,
                    stderr=subprocess.STDOUT, tree_grace_s=spec.tree_grace_s,
                )
            stack.callback(processes.stop, self.process, spec.stop_timeout_s)
            pid = self.process.pid
            write_record(record, ServerRecord(
                machine=socket.gethostname(), pid=pid, started=psutil.Process(pid).create_time(),
                owner_pid=os.getpid(), url=spec.url, health_url=spec.health_url,
            ))
            self._cleanup = stack.pop_all()

    def stop(self) -> None:
        """Stop it and everything in its session."""
        self._cleanup.close()

    def wait_until_healthy(self, timeout_s: float) -> float:
        """Return how many seconds after its start it answered.

        Raises:
            ServerStartError: it ended, or did not answer within ``timeout_s`` seconds.
        """
        while not is_healthy(self.spec.health_url):
            if (code := self.process.poll()) is not None:
                raise self.spec.start_error(describe_exit(code))
            if time.monotonic() - self._began_s > timeout_s:
                raise self.spec.start_error(f"did not answer within {timeout_s:.0f} s")
            time.sleep(POLL_INTERVAL_S)
        return time.monotonic() - self._began_s


@contextmanager
def running_server(
    spec: ServerSpec, *, tell: LogFn | None = None, start_timeout_s: float
) -> Iterator[str]:
    """Have a server for the length of the block, and yield its URL.

    If another process on this machine runs it, its URL is yielded once it answers, and nothing is
    started or stopped. ``tell`` gets a line that says which of both it is.

    Raises:
        UsageError: a process on another machine runs it, or its log or record cannot be written.
        ServerStartError: it ended, or did not answer within ``start_timeout_s`` seconds.
    """
    tell, deadline = tell or _logger.info, time.monotonic() + start_timeout_s
    while True:
        with suppress(ServerInUseError):
            server = Server(spec)
            break
        if (record := _answering_record(spec)) is not None:
            tell(f"sharing the {spec.name} of process {record.owner_pid}, which ends with it")
            yield record.url
            return
        if time.monotonic() > deadline:
            raise spec.start_error(
                f"of another process did not answer within {start_timeout_s:.0f} s"
            )
        time.sleep(POLL_INTERVAL_S)
    try:
        tell(f"starting the {spec.name}: about 10 s the first time")
        server.wait_until_healthy(start_timeout_s)
        yield spec.url
    finally:
        server.stop()


def _answering_record(spec: ServerSpec) -> ServerRecord | None:
    """The record of the server that another process on this machine runs, once it answers."""
    record = read_record(ServerRecord, spec.record_file)
    if record is None:
        return None
    if record.machine != socket.gethostname():
        port = urlsplit(record.url).port
        raise UsageError(
            f"process {record.owner_pid} on {record.machine} runs the {spec.name} of "
            f"{spec.log_file.parent}, whose database is for one machine at a time: look at it "
            f"there (ssh -L {port}:127.0.0.1:{port} {record.machine}), or end that process"
        )
    return record if is_healthy(record.health_url) else None


def is_healthy(health_url: str) -> bool:
    """Whether a server answers 200."""
    try:
        # The way to this machine is not through a proxy that the environment names.
        answer = httpx.get(health_url, timeout=HEALTH_TIMEOUT_S, trust_env=False)
    except httpx.HTTPError:
        return False
    return answer.status_code == httpx.codes.OK


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
            processes.end_session(left.pid, lambda: has_ended(process))


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
