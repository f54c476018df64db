"""Services that stay: a Prefect server, an MLflow server and a worker, for any number of campaigns.

``chess-snn up`` starts one *supervisor* (:mod:`chess_snn.flows.supervisor`), whose children they
are, and ``chess-snn down`` stops it. Their data is in ``$CHESS_SNN_HOME/services``, and so is the
record by which the next command finds them; the supervisor holds a lock on it::

    supervisor ─┬─ Prefect server     runs, logs, deployments; SQLite
                ├─ MLflow server      curves, models; SQLite and a folder of artifacts
                └─ tree ── worker ─── a process for each run ── its Dask workers

Light to import: only the supervisor needs Prefect.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import psutil

from chess_snn import processes
from chess_snn.credentials import Credentials, check_host
from chess_snn.data.files import make_folder, writing
from chess_snn.errors import ChessSnnError, ConfigError, UsageError
from chess_snn.flows.prefect_access import kept_credentials
from chess_snn.flows.server_processes import HOST
from chess_snn.flows.server_records import claim_record, has_ended, is_claimed, read_record
from chess_snn.ports import check_port
from chess_snn.settings import check_range
from chess_snn.types import LogFn

RECORD_FILE: Final = "services.json"
LOG_FILE: Final = "up.log"

WORKER_GRACE_S: Final = 45.0
"""Time that a campaign has to reach its next safe point when the worker receives a stop signal."""

STOP_TIMEOUT_S: Final = 2 * WORKER_GRACE_S
"""Time that the supervisor has: the worker's grace, and some for the servers after it."""

OWNER_ONLY: Final = 0o700
"""Mode of the folder: databases and logs show what was run, and hold hashes of passwords."""

_POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """How the services are run."""

    host: str = HOST
    """Address of this machine that the servers listen on."""
    prefect_port: int = 4200
    mlflow_port: int = 5000
    runs: int = 1
    """Runs of deployments at once; a campaign alone takes every core or GPU."""
    credentials: Credentials | None = None
    """Required from every client of a server; without them, on loopback alone, Prefect's server
    demands those of :func:`chess_snn.flows.prefect_access.kept_credentials` and MLflow's none."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, or would open a server to everyone."""
        check_range("--prefect-port", self.prefect_port, ge=1, le=65_535)
        check_range("--mlflow-port", self.mlflow_port, ge=1, le=65_535)
        if self.prefect_port == self.mlflow_port:
            raise ConfigError(
                f"--prefect-port and --mlflow-port are both {self.mlflow_port}; give each its own"
            )
        check_range("--runs", self.runs, ge=1, le=64)
        check_host(
            self.host, (self.prefect_port, self.mlflow_port), "the servers need",
            has_password=self.credentials is not None,
        )

    @property
    def prefect_url(self) -> str:
        """Address of Prefect's API."""
        return f"http://{self.host}:{self.prefect_port}/api"

    @property
    def mlflow_url(self) -> str:
        """Address of the MLflow server, as a tracking URI too."""
        return f"http://{self.host}:{self.mlflow_port}"

    def prefect_credentials(self, directory: Path) -> Credentials:
        """Required from every client of the Prefect server on ``directory``."""
        return self.credentials or kept_credentials(directory)

    def check_ports(self) -> None:
        """Return if both servers could listen now.

        Raises:
            UsageError: one could not; says why.
        """
        check_port(self.host, self.prefect_port, "Prefect server", "--prefect-port")
        check_port(self.host, self.mlflow_port, "MLflow server", "--mlflow-port")


class ServicesError(ChessSnnError):
    """The services did not start."""

    code = "services"


@dataclass(frozen=True, slots=True)
class ServicesRecord:
    """Process that runs the services, and where they are."""

    machine: str
    """Host name."""
    pid: int
    """Process of the supervisor."""
    prefect_url: str
    """Address of the API."""
    mlflow_url: str
    made_credentials: bool = False
    """Whether the Prefect server demands those of :func:`.prefect_access.kept_credentials`."""
    summary: str = ""
    """Places of everything and the next steps; empty until all services have started."""


def find_running(directory: Path) -> ServicesRecord | None:
    """The record of services that run on this machine now."""
    record = read_record(ServicesRecord, directory / RECORD_FILE)
    is_here = record is not None and record.machine == socket.gethostname()
    return record if is_here and is_claimed(directory / RECORD_FILE) else None


@contextmanager
def owned_folder(directory: Path) -> Iterator[IO[str]]:
    """Be the only supervisor on ``directory`` for the length of the block; yield its record.

    Raises:
        UsageError: there is another one, or the folder cannot be written.
    """
    file = claim_record(directory / RECORD_FILE)
    if file is None:
        other = read_record(ServicesRecord, directory / RECORD_FILE)
        raise UsageError(
            f"{directory} belongs to services that run already"
            + ("" if other is None else f", on {other.machine} (process {other.pid})")
            + "; end them there with `chess-snn down`, or set CHESS_SNN_HOME to another home"
        )
    with file:
        with writing(directory):
            directory.chmod(OWNER_ONLY)
        yield file


def start_in_background(options: Sequence[str], directory: Path, tell: LogFn) -> None:
    """Run ``chess-snn up --foreground`` in a session of its own; return once all services run.

    Args:
        options: more of the command line.
        directory: of the services; the supervisor's output goes to ``up.log`` in it.
        tell: receives the same output.

    Raises:
        ServicesError: they did not start; nothing of them is left.
        KeyboardInterrupt: Ctrl-C; nothing of them is left.
    """
    log_file = directory / LOG_FILE
    with writing(log_file):
        make_folder(directory)
        log = log_file.open("wb")
    with log:
        supervisor = processes.start(
            [sys.executable, "-m", "chess_snn", "up", "--foreground", *options],
            stdout=log, stderr=subprocess.STDOUT, stays=True,
            # Each line is in the file at once.
            environment={"PYTHONUNBUFFERED": "1"},
        )
    try:
        _follow(supervisor, log_file, tell)
    except BaseException:
        processes.stop(supervisor, STOP_TIMEOUT_S)
        raise


def _follow(supervisor: "subprocess.Popen[bytes]", log_file: Path, tell: LogFn) -> None:
    """Pass on what the supervisor prints until all services have started."""
    with log_file.open(errors="replace") as lines:
        while True:
            # Both are read before the lines, so that the last line is not missed.
            code = supervisor.poll()
            record = read_record(ServicesRecord, log_file.with_name(RECORD_FILE))
            for line in lines:
                tell(line.rstrip("\n"))
            if code is not None:
                raise ServicesError(
                    f"the services {processes.describe_exit(code)}; see {log_file}"
                )
            if record is not None and record.pid == supervisor.pid and record.summary:
                return
            time.sleep(_POLL_S)


def stop_services(directory: Path) -> bool:
    """Stop the supervisor and its services; return False if none runs on this machine."""
    supervisor = find_running(directory)
    if supervisor is None:
        return False
    with suppress(psutil.NoSuchProcess):  # it has just ended
        process = psutil.Process(supervisor.pid)
        processes.end(process.send_signal, lambda: has_ended(process), STOP_TIMEOUT_S)
    return True
