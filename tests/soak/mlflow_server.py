"""The MLflow server that the campaigns of a soak log to: killed with -9 now and then."""

import os
import signal
from pathlib import Path

from chess_snn.ports import free_port
from flows.server_processes import Server
from flows.service_settings import ServiceSettings
from flows.supervisor import mlflow_spec

START_TIMEOUT_S = 300.0
"""It takes half a minute on a machine that has nothing else to do."""


class MlflowServer:
    """One server at one address, however often it is started."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self._spec = mlflow_spec(directory.resolve(), ServiceSettings(mlflow_port=free_port()))
        self._server: Server | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._spec.url

    def start(self) -> None:
        """Start it where it is not running; it answers some time later."""
        if self._server is None:
            self._server = Server(self._spec)

    def kill(self) -> int | None:
        """kill -9 all its processes; its pid, None where it was not running."""
        if self._server is None:
            return None
        pid = self._server.process.pid
        os.killpg(pid, signal.SIGKILL)
        self.stop()
        return pid

    def wait(self) -> None:
        """Start it where it is not running, and return once it answers."""
        self.start()
        assert self._server is not None
        self._server.wait_until_healthy(START_TIMEOUT_S)

    def stop(self) -> None:
        """End it."""
        if self._server is not None:
            self._server.stop()
            self._server = None
