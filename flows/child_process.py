"""Servers that run as our children: started, awaited, and never left behind.

A server is one child in a session of its own, so a Ctrl-C in the terminal reaches it only through
us. It is stopped on every way out of :func:`running_server`; the kernel stops it when this process
is killed (:mod:`chess_snn.reaped`); and where that is not possible either, the next start finds
the record the child left and reaps it. A record whose owner still lives is not stale: its server is
shared once it answers, not killed; where its owner is on another machine, a start is refused.
"""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from chess_snn import reaped
from chess_snn.data.files import writing
from chess_snn.errors import ChessSnnError
from flows.child_record import ChildRecord, lock_record, reap_stale, write_record

HOST = "127.0.0.1"
"""Embedded servers listen on loopback only: they ask nobody for a password."""

ORIGINS_VARIABLE = "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"
"""Whose pages may use a Prefect server by a browser; Prefect itself allows every page."""

POLL_INTERVAL_S = 0.1
HEALTH_TIMEOUT_S = 2.0
STOP_TIMEOUT_S = 10.0
"""What a child has to end by itself, unless its :class:`ChildSpec` says otherwise."""

LOG_TAIL_LINES = 15

Progress = Callable[[str, float], None]
"""Called while a server starts, with its name and the seconds waited so far."""

Tell = Callable[[str], None]
"""Called with a line for people."""


class ServerStartError(ChessSnnError):
    """A server did not come up; the message ends with the tail of its log."""


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
    """Holds its :class:`flows.child_record.ChildRecord` while it runs."""
    url: str = ""
    """What its users are given, if it is a server."""
    stop_timeout_s: float = STOP_TIMEOUT_S
    """Longest wait for it to end when asked to; then it is killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec(ChildSpec):
    """How to run one server."""

    host: str = HOST
    """Address it listens on."""
    port: int
    health_path: str
    """Answers 200 once the server works."""


def free_port() -> int:
    """A TCP port on loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def own_origins(host: str, port: int) -> str:
    """A server's own pages alone, by either name of loopback."""
    names = [host, "localhost"] if host == HOST else [host]
    return ",".join(f"http://{name}:{port}" for name in names)


@contextmanager
def running_server(
    spec: ServerSpec, *, progress: Progress | None = None, tell: Tell | None = None,
    start_timeout_s: float,
) -> Iterator[str]:
    """Run a server for the length of the block and yield its URL.

    If another live process already runs it (same record file), nothing is started or stopped: once
    that one answers its URL is yielded, and ``tell`` is told whose it is.

    On Linux the server's life hangs on the *thread* that enters: enter from one that lasts.

    Raises:
        UsageError: a process on another machine runs it, or its log or record cannot be written.
        ServerStartError: it exited early, or was not healthy after ``start_timeout_s`` seconds.
    """
    shared = _await_shared(spec, progress, start_timeout_s)
    if shared is not None:
        if tell is not None:
            tell(f"the {spec.name} is that of process {shared.owner_pid}, and ends with it")
        yield shared.url
        return
    with _locked_child(spec) as child:
        wait_until_healthy(spec, child, progress, start_timeout_s)
        yield spec.url


def _await_shared(
    spec: ServerSpec, progress: Progress | None, timeout_s: float
) -> ChildRecord | None:
    """The record of a server that another live process runs, once it answers; None without one."""
    begun = time.monotonic()
    while (record := reap_stale(spec.record_file)) is not None:
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


@contextmanager
def _locked_child(spec: ChildSpec) -> Iterator[subprocess.Popen[bytes]]:
    """A child for the length of the block, its record locked until it has ended."""
    child = start_child(spec)
    with ExitStack() as stack:
        try:
            stack.callback(os.close, lock_record(spec.record_file))
            yield child
        finally:
            stop_child(spec, child)


def start_child(spec: ChildSpec) -> subprocess.Popen[bytes]:
    """Start a child and its record; on Linux it ends with the *thread* that called this.

    Raises:
        UsageError: its log or its record cannot be written.
    """
    launcher = [sys.executable, "-I", reaped.__file__, str(os.getpid())]
    with writing(spec.log_file):
        spec.log_file.parent.mkdir(parents=True, exist_ok=True)
        log = spec.log_file.open("ab")
    with log:
        child = subprocess.Popen(
            [*launcher, *spec.command],
            env=os.environ | dict(spec.environment),
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        write_record(spec.record_file, child.pid, spec.url)
    except BaseException:
        stop_child(spec, child)
        raise
    return child


def stop_child(spec: ChildSpec, child: subprocess.Popen[bytes]) -> None:
    """End a child, everything in its session, and its record: TERM, then KILL."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, signal_number)
        except ProcessLookupError:  # all of them have ended
            break
        try:
            child.wait(spec.stop_timeout_s)
        except subprocess.TimeoutExpired:
            continue
    child.wait()
    spec.record_file.unlink(missing_ok=True)


def wait_until_healthy(
    spec: ServerSpec, child: subprocess.Popen[bytes], progress: Progress | None, timeout_s: float
) -> None:
    """Return once the server answers.

    Raises:
        ServerStartError: it exited early, or did not answer within ``timeout_s`` seconds.
    """
    begun = time.monotonic()
    while not is_healthy(spec):
        waited_s = time.monotonic() - begun
        if child.poll() is not None:
            raise exited_early(spec, child, waited_s)
        if waited_s > timeout_s:
            raise ServerStartError(
                f"{spec.name} did not answer {spec.health_path} within {timeout_s:.0f} s; "
                f"the end of {spec.log_file}:\n{log_tail(spec.log_file)}"
            )
        if progress is not None:
            progress(spec.name, waited_s)
        time.sleep(POLL_INTERVAL_S)


def exited_early(
    spec: ChildSpec, child: subprocess.Popen[bytes], waited_s: float
) -> ServerStartError:
    """The error that says how a child ended and what it said last."""
    return ServerStartError(
        f"{spec.name} exited with code {child.returncode} after {waited_s:.0f} s; "
        f"the end of {spec.log_file}:\n{log_tail(spec.log_file)}"
    )


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


def log_tail(log_file: Path) -> str:
    """Its last lines."""
    lines = log_file.read_text(errors="replace").splitlines()
    return "\n".join(lines[-LOG_TAIL_LINES:]) or "(empty)"
