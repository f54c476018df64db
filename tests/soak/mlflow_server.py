"""The MLflow server that the campaigns of a soak log to: killed with -9 now and then."""

import os
import signal
import subprocess
from pathlib import Path

from chess_snn.ports import free_port
from flows.server_processes import start_child, stop_child, wait_until_healthy
from flows.services.mlflow_service import mlflow_spec
from flows.services.settings import ServiceSettings

START_TIMEOUT_S = 300.0
"""It takes half a minute on a machine that has nothing else to do."""


class MlflowServer:
    """One server at one address, however often it is started."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self._spec = mlflow_spec(directory.resolve(), ServiceSettings(mlflow_port=free_port()))
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._spec.url

    def start(self) -> None:
        """Start it where it is not running; it answers some time later."""
        if self._child is None:
            self._child = start_child(self._spec)

    def kill(self) -> int | None:
        """kill -9 all its processes; its pid, None where it was not running."""
        child, self._child = self._child, None
        if child is None:
            return None
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return child.pid

    def wait(self) -> None:
        """Start it where it is not running, and return once it answers."""
        self.start()
        assert self._child is not None
        wait_until_healthy(self._spec, self._child, None, START_TIMEOUT_S)

    def stop(self) -> None:
        """End it."""
        child, self._child = self._child, None
        if child is not None:
            stop_child(self._spec, child)
