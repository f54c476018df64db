"""The process whose children the services are: starts them in order, watches them, stops them."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import httpx

from chess_snn.processes import describe_exit, log_tail, start_of
from chess_snn.types import LogFn
from flows.server_processes import (
    ChildSpec,
    OnWait,
    ServerSpec,
    ServerStartError,
    remove_stale,
    start_child,
    stop_child,
    wait_until,
    wait_until_healthy,
)
from flows.services.control import ServicesRecord, remove_record, services_lock, write_record
from flows.services.mlflow_service import make_experiment, mlflow_spec
from flows.services.prefect_service import (
    client_environment,
    deploy,
    is_worker_online,
    prefect_client,
    prefect_spec,
    worker_spec,
)
from flows.services.settings import POOL, ServiceSettings, check_ports

START_TIMEOUT_S: Final = 180.0
"""Of each service. The first start creates databases: some 10 s for Prefect and 30 s for MLflow on
a quick machine."""

WATCH_PERIOD_S: Final = 1.0
MOST_RESTARTS: Final = 5
"""Of one service; if one ends again and again, a restart does not remove the cause."""


class Service:
    """One child that is to stay."""

    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        self.restarts = 0
        self._begun_s = 0.0
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, after stopping what a killed supervisor left of it."""
        remove_stale(self.spec.record_file)
        self._begun_s = time.monotonic()
        self._child = start_child(self.spec)

    def stop(self) -> None:
        """Stop it and all it has started."""
        if self._child is not None:
            stop_child(self.spec, self._child)
            self._child = None

    def await_server(self, tell: LogFn, on_wait: OnWait) -> None:
        """Return once it answers; it is a server, and was started.

        Raises:
            ServerStartError: it does not.
        """
        assert isinstance(self.spec, ServerSpec)
        assert self._child is not None
        wait_until_healthy(self.spec, self._child, on_wait, START_TIMEOUT_S)
        tell(f"{self.spec.name} is up after {time.monotonic() - self._begun_s:.0f} s")

    def await_worker(self, tell: LogFn, on_wait: OnWait) -> None:
        """Return once Prefect knows it; it is a worker, and was started.

        Raises:
            ServerStartError: it does not report.
        """
        assert self._child is not None
        wait_until(
            is_worker_online, self.spec, self._child, on_wait, START_TIMEOUT_S, "report to Prefect"
        )
        tell(f"worker of pool {POOL!r} is up")

    def restart_if_ended(self, tell: LogFn) -> None:
        """Start it again if it has ended.

        Raises:
            ServerStartError: it ended too often.
        """
        assert self._child is not None
        code = self._child.poll()
        if code is None:
            return
        if self.restarts == MOST_RESTARTS:
            raise ServerStartError(
                f"the {self.spec.name} ended {MOST_RESTARTS + 1} times, and last "
                f"{describe_exit(code)}; the end of {self.spec.log_file}:\n"
                f"{log_tail(self.spec.log_file)}"
            )
        self.restarts += 1
        tell(f"the {self.spec.name} {describe_exit(code)}; starting it again")
        self.stop()
        self.start()


def run_services(
    directory: Path, settings: ServiceSettings, tell: LogFn, on_wait: OnWait,
    on_ready: Callable[[ServicesRecord], None],
) -> None:
    """Run all services until a signal or an error ends them; nothing of them is left then.

    Call it from the main thread: the services end with the thread that calls.

    Args:
        directory: for data, logs and records.
        settings: where they listen.
        tell: receives a line for each event.
        on_wait: called while a service starts.
        on_ready: called once all are up.

    Raises:
        UsageError: a port is taken, or others run on ``directory``.
        ServerStartError: a service does not start, or ended too often.
    """
    with services_lock(directory), ExitStack() as stack:
        check_ports(settings)
        prefect = Service(prefect_spec(directory, settings))
        mlflow = Service(mlflow_spec(directory, settings))
        worker = Service(worker_spec(directory, settings))
        write_record(directory, _record(settings, is_ready=False))
        stack.callback(remove_record, directory)
        for server in (prefect, mlflow):
            stack.callback(server.stop)
            server.start()
        prefect.await_server(tell, on_wait)
        with prefect_client(directory, settings):
            registered = deploy(client_environment(settings))
            tell(f"deployments: {', '.join(deployment.name for deployment in registered)}")
            stack.callback(worker.stop)
            worker.start()
            mlflow.await_server(tell, on_wait)
            try:
                make_experiment(settings)
            except httpx.HTTPError as error:
                tell(f"MLflow has no experiment yet, the first campaign creates it: {error}")
            worker.await_worker(tell, on_wait)
        ready = _record(settings, is_ready=True)
        on_ready(ready)  # first, so that a command that waits for the record has shown all lines
        write_record(directory, ready)
        while True:
            time.sleep(WATCH_PERIOD_S)
            for service in (prefect, mlflow, worker):
                service.restart_if_ended(tell)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _record(settings: ServiceSettings, *, is_ready: bool) -> ServicesRecord:
    return ServicesRecord(
        machine=socket.gethostname(), pid=os.getpid(), started=start_of(os.getpid()),
        prefect_url=settings.prefect_url, mlflow_url=settings.mlflow_url, runs=settings.runs,
        has_credentials=settings.credentials is not None, is_ready=is_ready,
    )
