"""Campaigns as processes: started as a user does, found again part by part, never left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from chess_snn import processes

MARK = "CHESS_SNN_SOAK"
"""Environment variable that every process of a soak's campaigns inherits, orphans too."""

POLL_S = 0.3
SERVER_RECORD = "services/prefect-server.json"


class RunningCampaign:
    """One run of ``chess-snn campaign start`` or ``resume``."""

    def __init__(
        self, arguments: Sequence[str], log: Path, environment: Mapping[str, str]
    ) -> None:
        """Start it; its output is appended to ``log``, and it ends with this process."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT", "MLFLOW"))}
        launcher = [sys.executable, "-I", processes.__file__, str(os.getpid())]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*launcher, sys.executable, "-m", "chess_snn", "campaign", *arguments],
                env=inherited | dict(environment), stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )
        self.pid = self._process.pid

    def exit_code(self) -> int | None:
        """None while it runs; negative where a signal ended it."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """kill -9, to this one process."""
        self._process.kill()
        self._process.wait()

    def workers(self) -> list[psutil.Process]:
        """Its Dask workers."""
        return self._having("spawn_main")

    def ranks(self) -> list[psutil.Process]:
        """The processes that train together just now."""
        return self._having("chess_snn.campaign.stages.training_program")

    def computing(self) -> list[psutil.Process]:
        """The campaign itself and its workers: everything that writes its folder."""
        return [psutil.Process(self.pid), *self.workers()]

    def _having(self, word: str) -> list[psutil.Process]:
        try:
            children = psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return sorted((c for c in children if _has(c, word)), key=lambda process: process.pid)


def prefect_server_of(directory: Path) -> int | None:
    """The process of a campaign's embedded Prefect server; None where none is up."""
    try:
        return int(json.loads((directory / SERVER_RECORD).read_text())["pid"])
    except (FileNotFoundError, ValueError):
        return None


def marked_processes(mark: str) -> Iterator[psutil.Process]:
    """Every living process that inherited ``mark``, whoever its parent is by now."""
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


def command_line(process: psutil.Process) -> str:
    """For people; empty where it has ended."""
    try:
        return " ".join(process.cmdline())[:120]
    except psutil.NoSuchProcess:
        return ""


def _has(process: psutil.Process, word: str) -> bool:
    try:
        return any(word in part for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False
