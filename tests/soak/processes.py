"""Campaigns and an MLflow server as processes: started, found part by part, never left behind."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from chess_snn import processes
from chess_snn.ports import free_port

MARK = "CHESS_SNN_SOAK"
"""Environment variable that every process of a soak's campaigns inherits, orphans too."""

POLL_S = 0.3
SERVER_RECORD = "services/prefect-server.json"
MLFLOW_TIMEOUT_S = 300.0
"""It takes half a minute to start on an idle machine."""


class RunningCampaign:
    """One run of ``chess-snn campaign start`` or ``resume``."""

    def __init__(
        self, arguments: Sequence[str], log: Path, environment: Mapping[str, str]
    ) -> None:
        """Start it; its output is appended to ``log``, and it ends with this process."""
        with log.open("ab") as output:
            self._process = processes.start(
                [sys.executable, "-m", "chess_snn", "campaign", *arguments],
                environment=environment, stdout=output, stderr=subprocess.STDOUT,
            )
        self.pid = self._process.pid

    def exit_code(self) -> int | None:
        """None while it runs; negative where a signal ended it."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to this one process."""
        self._process.send_signal(number)
        if number is signal.SIGKILL:
            self._process.wait()

    def workers(self) -> list[psutil.Process]:
        """Its Dask workers."""
        return self._having("spawn_main")

    def ranks(self) -> list[psutil.Process]:
        """The processes that train together just now."""
        return self._having("chess_snn.campaign.stages.training_program")

    def _having(self, word: str) -> list[psutil.Process]:
        try:
            children = psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return sorted((c for c in children if _has(c, word)), key=lambda process: process.pid)


class MlflowServer:
    """A server at one address, however often it is killed and started."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self._directory, self._port = directory.resolve(), free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it if it is not running; it answers some time later."""
        if self._child is None:
            with (self._directory / "mlflow.log").open("ab") as log:
                self._child = processes.start(
                    [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1",
                     "--port", str(self._port), "--workers", "1",
                     "--backend-store-uri", f"sqlite:///{self._directory / 'mlflow.db'}",
                     "--artifacts-destination", (self._directory / "artifacts").as_uri()],
                    environment={
                        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
                        "MLFLOW_DISABLE_TELEMETRY": "true",
                    },
                    stdout=log, stderr=subprocess.STDOUT,
                )

    def kill(self) -> int | None:
        """kill -9 all its processes; its pid, None if it was not running."""
        child, self._child = self._child, None
        if child is None:
            return None
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return child.pid

    def wait(self) -> None:
        """Start it if it is not running, and return once it answers."""
        self.start()
        deadline = time.monotonic() + MLFLOW_TIMEOUT_S
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=POLL_S).close()
            except OSError as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{self.url} does not answer: {error}") from error
                time.sleep(POLL_S)
            else:
                return


def prefect_server_of(directory: Path) -> int | None:
    """The process of a campaign's embedded Prefect server; None if none is up."""
    try:
        return int(json.loads((directory / SERVER_RECORD).read_text())["pid"])
    except (FileNotFoundError, ValueError):
        return None


def marked_processes(mark: str) -> Iterator[psutil.Process]:
    """Every living process that inherited ``mark``, whatever its parent is by now."""
    for process in psutil.process_iter():
        try:
            is_alive = process.status() != psutil.STATUS_ZOMBIE
            if is_alive and process.environ().get(MARK) == mark:
                yield process
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it has ended meanwhile, or is another user's


def wait_until_gone(mark: str, timeout_s: float) -> list[psutil.Process]:
    """The marked processes that are left after ``timeout_s`` seconds; returns once none is."""
    deadline = time.monotonic() + timeout_s
    while (left := list(marked_processes(mark))) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return left


def end_all(mark: str) -> None:
    """Kill every marked process."""
    while left := list(marked_processes(mark)):
        for process in left:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue  # it was faster
        psutil.wait_procs(left, timeout=1.0)


def _has(process: psutil.Process, word: str) -> bool:
    try:
        return any(word in part for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False
