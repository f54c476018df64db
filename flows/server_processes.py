"""Server processes: started, awaited, shared with other processes, and never left behind.

While the record of a server is locked (:mod:`chess_snn.flows.server_records`), other processes on
this machine share the server; on other machines a start is refused. A record without a lock names a
process that a dead owner left: it is stopped before the next start. On Linux the kernel has told it
to end already (:mod:`chess_snn.processes`).

A server that ends by itself is started again. Its owner has opened the socket and keeps it, so that
meanwhile clients wait for an answer, and no other process can take the port.
"""

import logging
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx
import psutil

from chess_snn import processes
from chess_snn.data.files import writing
from chess_snn.data.plain_files import open_in_place
from chess_snn.errors import ChessSnnError, UsageError
from chess_snn.flows.server_records import ServerRecord, claim_record, read_record, write_record
from chess_snn.ports import LOOPBACK, listening_socket
from chess_snn.processes import describe_exit, log_tail
from chess_snn.types import LogFn

HOST: Final = LOOPBACK
"""Embedded servers listen on loopback only: what is sent to them is not encrypted."""

POLL_INTERVAL_S: Final = 0.1
HEALTH_TIMEOUT_S: Final = 2.0

WATCH_PERIOD_S: Final = 1.0
"""Between two looks whether a server has ended."""

MOST_RESTARTS: Final = 5
"""If a server ends again and again, a restart does not remove the cause."""

STEADY_S: Final = 600.0
"""Restarts of a server that has run for so long are forgotten."""

_SOCKET_VARIABLE: Final = "UVICORN_FD"  # names the open socket that uvicorn shall listen on

_logger = logging.getLogger(__name__)


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
    """Name in messages: ``"Prefect server"``."""
    command: Sequence[str]
    environment: Mapping[str, str]
    """Added to this process's environment."""
    log_file: Path
    """Receives its standard output and error, appended."""
    url: str = ""
    """Address for those who use it."""
    health_url: str = ""
    """Answers 200 once the server works."""
    listens_on: tuple[str, int] | None = None
    """Host and port, if the command is uvicorn's: it takes its socket over from its owner."""
    prepare: Callable[[LogFn], None] | None = None
    """Called before each start, with where to report what it did."""
    stop_timeout_s: float = processes.STOP_TIMEOUT_S
    """Time between SIGTERM and SIGKILL."""
    tree_grace_s: float | None = None
    """Argument of :func:`chess_snn.processes.start`."""

    @property
    def record_file(self) -> Path:
        """Holds its :class:`ServerRecord` while it runs."""
        return self.log_file.with_suffix(".json")

    def open_socket(self) -> socket.socket | None:
        """The socket that the server takes over, if it takes one.

        Raises:
            ServerStartError: another program has the address.
        """
        if self.listens_on is None:
            return None
        try:
            return listening_socket(*self.listens_on)
        except OSError as error:
            raise ServerStartError(
                f"the {self.name} cannot listen at {self.url}: {error.strerror}; try again"
            ) from error

    def start_error(self, reason: str) -> ServerStartError:
        """An error that says what is wrong with the server, and the end of its log."""
        tail = log_tail(self.log_file.read_bytes())
        told = f"; the end of {self.log_file}:\n{tail}" if tail else (
            f" and wrote nothing to {self.log_file}; see that its disk has room, and that no limit "
            "of file sizes (`ulimit -f`) is set"
        )
        return ServerStartError(f"the {self.name} {reason}{told}")


class Server:
    """A server that this process runs until :meth:`stop`."""

    def __init__(self, spec: ServerSpec, tell: LogFn = _logger.info) -> None:
        """Start it; on Linux it ends with the *thread* that called this.

        ``tell`` gets a line for each start but the first, and for what that needed.

        Raises:
            ServerInUseError: another process runs it.
            ServerStartError: another program has its port.
            UsageError: its log or its record cannot be written.
        """
        self.spec, self._tell = spec, tell
        record = claim_record(spec.record_file)
        if record is None:
            raise ServerInUseError(
                f"another process runs the {spec.name} of {spec.log_file.parent}; end it first"
            )
        self._record, self._restarts = record, 0
        with ExitStack() as stack:
            stack.enter_context(record)
            stack.callback(record.truncate, 0)
            self._socket = spec.open_socket()
            if self._socket is not None:
                stack.enter_context(self._socket)
            self._start()
            stack.callback(self._end_process)
            self._cleanup = stack.pop_all()

    def _start(self) -> None:
        spec = self.spec
        inherited = [] if self._socket is None else [self._socket.fileno()]
        taken_over = {_SOCKET_VARIABLE: str(inherited[0])} if inherited else {}
        if spec.prepare is not None:
            spec.prepare(self._tell)
        self._began_s = time.monotonic()
        with writing(spec.log_file), open(spec.log_file, "ab", opener=open_in_place) as log:
            self.process = processes.start(
                spec.command, environment={**spec.environment, **taken_over}, stdout=log,
                stderr=subprocess.STDOUT, tree_grace_s=spec.tree_grace_s, inherited=inherited,
            )
        try:
            started = psutil.Process(self.process.pid).create_time()
            write_record(self._record, ServerRecord(
                machine=socket.gethostname(), pid=self.process.pid, started=started,
                owner_pid=os.getpid(), url=spec.url, health_url=spec.health_url,
            ))
        except BaseException:
            self._end_process()
            raise

    def _end_process(self) -> None:
        processes.stop(self.process, self.spec.stop_timeout_s)

    def restart_if_ended(self) -> None:
        """Start it again if it has ended.

        Raises:
            ServerStartError: it has ended too often.
        """
        code = self.process.poll()
        if code is None:
            return
        if time.monotonic() - self._began_s > STEADY_S:
            self._restarts = 0
        if self._restarts == MOST_RESTARTS:
            raise self.spec.start_error(f"{describe_exit(code)} after {MOST_RESTARTS} restarts")
        self._restarts += 1
        self._tell(f"the {self.spec.name} {describe_exit(code)}; starting it again")
        self._end_process()  # the rest of its session
        self._start()

    @contextmanager
    def kept_running(self) -> Iterator[None]:
        """Start it again in the block whenever it has ended, from a thread.

        If it ends too often, a line says so, and clients are refused from then on.
        """
        is_over = threading.Event()

        def watch() -> None:
            try:
                while not is_over.wait(WATCH_PERIOD_S):
                    self.restart_if_ended()
            except ChessSnnError as error:
                if self._socket is not None:
                    self._socket.close()
                self._tell(str(error).partition("\n")[0])

        watcher = threading.Thread(target=watch, name=f"watching {self.spec.name}")
        watcher.start()
        try:
            yield
        finally:
            is_over.set()
            watcher.join()

    def stop(self) -> None:
        """Stop it and everything in its session."""
        self._cleanup.close()

    def wait_until_healthy(self, timeout_s: float) -> float:
        """Return how many seconds after its start it answered; start it again if it is killed.

        Raises:
            ServerStartError: it ended, or did not answer within ``timeout_s`` seconds.
        """
        while not is_healthy(self.spec.health_url):
            code = self.process.poll()
            if code is not None and code >= 0:
                raise self.spec.start_error(describe_exit(code))
            self.restart_if_ended()
            if time.monotonic() - self._began_s > timeout_s:
                raise self.spec.start_error(f"did not answer within {timeout_s:.0f} s")
            time.sleep(POLL_INTERVAL_S)
        return time.monotonic() - self._began_s


@contextmanager
def running_server(
    spec: ServerSpec, *, tell: LogFn | None = None, start_timeout_s: float,
    meanwhile: Callable[[], None] = lambda: None,
) -> Iterator[str]:
    """Have a server for the length of the block, and yield its URL; it is restarted if it ends.

    If another process on this machine runs it, its URL is yielded once it answers, and nothing is
    started or stopped. ``tell`` gets a line that says which of both it is, and one a restart.
    ``meanwhile`` is called before the URL is yielded, and while a server that was started here gets
    ready.

    Raises:
        UsageError: a process on another machine runs it, or its log or record cannot be written.
        ServerStartError: it ended, or did not answer within ``start_timeout_s`` seconds.
    """
    tell, deadline = tell or _logger.info, time.monotonic() + start_timeout_s
    while True:
        with suppress(ServerInUseError):
            server = Server(spec, tell)
            break
        if (record := _answering_record(spec)) is not None:
            tell(f"sharing the {spec.name} of process {record.owner_pid}, which ends with it")
            meanwhile()
            yield record.url
            return
        if time.monotonic() > deadline:
            raise spec.start_error(
                f"of another process did not answer within {start_timeout_s:.0f} s"
            )
        time.sleep(POLL_INTERVAL_S)
    try:
        tell(f"starting the {spec.name}: about 10 s the first time")
        meanwhile()
        server.wait_until_healthy(start_timeout_s)
        with server.kept_running():
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
