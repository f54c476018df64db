"""How commands find, start and stop the services; the record and the lock that make it possible."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from chess_snn import processes
from chess_snn.campaign.store.typed_json import from_json
from chess_snn.data import read_json, write_json
from chess_snn.data.files import make_folder, writing
from chess_snn.errors import ChessSnnError, CorruptDataError, UsageError
from chess_snn.processes import is_running
from chess_snn.types import LogFn
from flows.server_processes import remove_stale

RECORD_FILE: Final = "services.json"
LOCK_FILE: Final = "services.lock"
LOG_FILE: Final = "up.log"
CHILD_RECORDS: Final = ("prefect-server.json", "mlflow-server.json", "worker.json")
"""Of the children, in the order in which they are started."""

OWNER_ONLY: Final = 0o700
"""Mode of the folder: databases and logs show what was run, and hold hashes of passwords."""

WORKER_GRACE_S: Final = 45.0
"""Time that a campaign has to reach its next safe point when the worker is told to stop."""

STOP_TIMEOUT_S: Final = 2 * WORKER_GRACE_S
"""Time that the supervisor has: the worker's grace, and some for the servers after it."""

ERROR_MARK: Final = "error: "
"""Begins the line in which one of our commands says why it failed."""

_POLL_S: Final = 0.1


class ServicesError(ChessSnnError):
    """The services did not start."""


@dataclass(frozen=True, slots=True)
class ServicesRecord:
    """Which process runs the services, and where they are."""

    machine: str
    """Host name."""
    pid: int
    """Of the supervisor."""
    started: str
    """As :func:`chess_snn.processes.start_of` returns it."""
    prefect_url: str
    """Of the API."""
    mlflow_url: str
    runs: int
    """Runs at once."""
    has_credentials: bool
    is_ready: bool
    """Whether all of them have started."""

    @property
    def prefect_page(self) -> str:
        """For a browser."""
        return self.prefect_url.removesuffix("/api")

    @property
    def is_alive(self) -> bool:
        """Whether the supervisor runs on this machine."""
        return self.machine == socket.gethostname() and is_running(self.pid, self.started)


def read_record(directory: Path) -> ServicesRecord | None:
    """The record in ``directory``; None where there is none, or one truncated by a crash."""
    try:
        return from_json(ServicesRecord, read_json(directory / RECORD_FILE))
    except (CorruptDataError, ValueError):
        return None


def write_record(directory: Path, record: ServicesRecord) -> None:
    """Write the record for other commands to find."""
    write_json(directory / RECORD_FILE, asdict(record))


def remove_record(directory: Path) -> None:
    """Remove the record."""
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
    return record if record.is_alive else None


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


def start_in_background(options: Sequence[str], directory: Path, tell: LogFn) -> ServicesRecord:
    """Run ``chess-snn up --foreground`` in a session of its own; return once all services run.

    Args:
        options: more of the command line.
        directory: of the services; their output goes to ``up.log`` in it.
        tell: receives the supervisor's output meanwhile.

    Returns:
        Where the services are.

    Raises:
        ServicesError: they did not start; nothing of them is left.
        KeyboardInterrupt: Ctrl-C; nothing of them is left.
    """
    log_file = directory / LOG_FILE
    with writing(log_file):
        make_folder(directory)
        log = log_file.open("wb")
    with log:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "chess_snn", "up", "--foreground", *options],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            # So that each line is in the file at once.
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
    try:
        return _follow(supervisor, log_file, directory, tell)
    except BaseException:
        processes.stop(supervisor, STOP_TIMEOUT_S)
        raise


def _follow(
    supervisor: "subprocess.Popen[bytes]", log_file: Path, directory: Path, tell: LogFn
) -> ServicesRecord:
    num_told = 0
    while True:
        # Both are read before the lines, so that none of the last is missed.
        has_ended = supervisor.poll() is not None
        record = read_record(directory)
        lines = log_file.read_text(errors="replace").splitlines()
        if has_ended:
            raise ServicesError(_reason(lines, supervisor.returncode, log_file))
        for line in lines[num_told:]:
            tell(line)
        num_told = len(lines)
        if record is not None and record.pid == supervisor.pid and record.is_ready:
            return record
        time.sleep(_POLL_S)


def _reason(lines: list[str], code: int, log_file: Path) -> str:
    for number, line in enumerate(lines):
        if line.startswith(ERROR_MARK):
            return "\n".join([line.removeprefix(ERROR_MARK), *lines[number + 1 :]])
    return f"the services {processes.describe_exit(code)}; see {log_file}"


def stop_services(directory: Path, on_wait: Callable[[float], None]) -> bool:
    """Stop the supervisor and its services; also those that a killed supervisor left.

    A process is stopped only if both its pid and its start are the recorded ones.

    Args:
        directory: of the services.
        on_wait: called with the seconds waited so far.

    Returns:
        Whether there was anything to stop.

    Raises:
        UsageError: they run on another machine.
    """
    supervisor = find_running(directory)
    if supervisor is not None:
        _stop_supervisor(supervisor, on_wait)
    left = [directory / name for name in CHILD_RECORDS if (directory / name).exists()]
    for record_file in reversed(left):
        remove_stale(record_file)
    remove_record(directory)
    return supervisor is not None or bool(left)


def _stop_supervisor(supervisor: ServicesRecord, on_wait: Callable[[float], None]) -> None:
    # After SIGKILL the kernel stops its children on Linux; elsewhere their records are used next.
    for number, timeout_s in (
        (signal.SIGTERM, STOP_TIMEOUT_S), (signal.SIGKILL, processes.KILL_TIMEOUT_S),
    ):
        with suppress(ProcessLookupError):  # it ended by itself
            os.kill(supervisor.pid, number)
        begun = time.monotonic()
        while (waited_s := time.monotonic() - begun) < timeout_s:
            if not supervisor.is_alive:
                return
            on_wait(waited_s)
            time.sleep(_POLL_S)
