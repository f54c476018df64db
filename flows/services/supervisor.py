"""The process whose children the services are: starts them in order, watches them, ends them."""

import base64
import http.client
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
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import WorkerStatus
from prefect.exceptions import ObjectNotFound
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_HOME,
    PREFECT_SERVER_ALLOW_EPHEMERAL_MODE,
    temporary_settings,
)

from chess_snn.errors import UsageError
from flows.child_process import (
    ChildSpec,
    Progress,
    ServerSpec,
    ServerStartError,
    exited_early,
    log_tail,
    start_child,
    stop_child,
    wait_until_healthy,
)
from flows.child_record import reap_stale
from flows.process_identity import start_of
from flows.services.deploying import deploy
from flows.services.mlflow_pages import make_experiment
from flows.services.ports import check_ports
from flows.services.record import ServicesRecord, remove_record, services_lock, write_record
from flows.services.settings import POOL, Credentials, ServiceSettings
from flows.services.specs import (
    client_environment,
    mlflow_spec,
    prefect_spec,
    worker_name,
    worker_spec,
)

START_TIMEOUT_S: Final = 180.0
"""Of each service. The first start creates databases: some 10 s for Prefect and 30 s for MLflow on
a quick machine."""

WATCH_PERIOD_S: Final = 1.0
MOST_RESTARTS: Final = 5
"""Of one service; one that ends again and again has a reason that a restart does not mend."""

Tell = Callable[[str], None]
"""Called with lines for people."""


class Service:
    """One child that is to stay."""

    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        self.restarts = 0
        self.begun_s = 0.0
        """When it was started, by the monotonic clock."""
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def child(self) -> subprocess.Popen[bytes]:
        """The process; :meth:`start` was called."""
        assert self._child is not None
        return self._child

    def start(self) -> None:
        """Start it, after ending what a supervisor that was killed left of it."""
        reap_stale(self.spec.record_file)
        self.begun_s = time.monotonic()
        self._child = start_child(self.spec)

    def stop(self) -> None:
        """End it and all it has started."""
        if self._child is not None:
            stop_child(self.spec, self._child)
            self._child = None

    def revive(self, tell: Tell) -> None:
        """Start it again if it has ended.

        Raises:
            ServerStartError: it ended too often.
        """
        code = self.child.poll()
        if code is None:
            return
        if self.restarts == MOST_RESTARTS:
            raise ServerStartError(
                f"the {self.spec.name} ended {MOST_RESTARTS + 1} times, with code {code}; the end "
                f"of {self.spec.log_file}:\n{log_tail(self.spec.log_file)}"
            )
        self.restarts += 1
        tell(f"the {self.spec.name} ended with code {code}; starting it again")
        self.stop()
        self.start()


def run_services(
    directory: Path, settings: ServiceSettings, tell: Tell, on_wait: Progress,
    on_ready: Callable[[ServicesRecord], None],
) -> None:
    """Run all services until a signal or an error ends them; nothing of them is left then.

    To be called from the main thread, for the services live as long as the thread that calls.

    Args:
        directory: for data, logs and records.
        settings: where they listen.
        tell: is told what happens.
        on_wait: called while a service comes up.
        on_ready: called once all are up.

    Raises:
        UsageError: a port is taken, or others run on ``directory``.
        ServerStartError: a service does not come up, or ended too often.
    """
    with services_lock(directory), ExitStack() as stack:
        check_ports(settings)
        servers = [Service(prefect_spec(directory, settings)),
                   Service(mlflow_spec(directory, settings))]
        worker = Service(worker_spec(directory, settings))
        write_record(directory, _record(settings))
        stack.callback(remove_record, directory)
        for service in servers:
            stack.callback(service.stop)
            service.start()
        _await_server(servers[0], tell, on_wait)
        with _prefect_client(directory, settings):
            registered = deploy(client_environment(settings))
            tell(f"deployments: {', '.join(deployment.name for deployment in registered)}")
            stack.callback(worker.stop)
            worker.start()
            _await_server(servers[1], tell, on_wait)
            check_mlflow_login(settings)
            _make_experiment(settings, tell)
            _await_worker(worker, tell, on_wait)
        ready = _record(settings, is_ready=True)
        on_ready(ready)  # first, so that who waits for the record has heard all
        write_record(directory, ready)
        services = [*servers, worker]
        while True:
            time.sleep(WATCH_PERIOD_S)
            for service in services:
                service.revive(tell)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _record(settings: ServiceSettings, *, is_ready: bool = False) -> ServicesRecord:
    return ServicesRecord(
        machine=socket.gethostname(), pid=os.getpid(), started=start_of(os.getpid()),
        prefect_url=settings.prefect_url, mlflow_url=settings.mlflow_url, runs=settings.runs,
        has_credentials=settings.credentials is not None, is_ready=is_ready,
    )


def _await_server(service: Service, tell: Tell, on_wait: Progress) -> None:
    assert isinstance(service.spec, ServerSpec)
    wait_until_healthy(service.spec, service.child, on_wait, START_TIMEOUT_S)
    tell(f"{service.spec.name} is up after {time.monotonic() - service.begun_s:.0f} s")


def _await_worker(worker: Service, tell: Tell, on_wait: Progress) -> None:
    while not _is_online():
        waited_s = time.monotonic() - worker.begun_s
        if worker.child.poll() is not None:
            raise exited_early(worker.spec, worker.child, waited_s)
        if waited_s > START_TIMEOUT_S:
            raise ServerStartError(
                f"the worker did not report to Prefect within {START_TIMEOUT_S:.0f} s; the end of "
                f"{worker.spec.log_file}:\n{log_tail(worker.spec.log_file)}"
            )
        on_wait(worker.spec.name, waited_s)
        time.sleep(0.5)
    tell(f"worker of pool {POOL!r} is up")


def _is_online() -> bool:
    with get_client(sync_client=True) as client:
        try:
            workers = client.read_workers_for_work_pool(POOL)
        except ObjectNotFound:
            return False
    return any(
        worker.name == worker_name() and worker.status == WorkerStatus.ONLINE for worker in workers
    )


def check_mlflow_login(settings: ServiceSettings) -> None:
    """Return if MLflow lets the credentials in, or wants none.

    Raises:
        UsageError: it was first started with others.
    """
    if settings.credentials is None:
        return
    connection = http.client.HTTPConnection(settings.host, settings.mlflow_port, timeout=30)
    try:
        connection.request(
            "GET", "/api/2.0/mlflow/experiments/search?max_results=1",
            headers={"Authorization": _basic(settings.credentials)},
        )
        status = connection.getresponse().status
    finally:
        connection.close()
    if status == http.HTTPStatus.UNAUTHORIZED:
        raise UsageError(
            "MLflow keeps the user and password that it was first started with, and they are "
            "others: use those, or delete mlflow-users.db beside its database"
        )


def _make_experiment(settings: ServiceSettings, tell: Tell) -> None:
    try:
        make_experiment(settings.mlflow_url, settings.credentials)
    except httpx.HTTPError as error:
        tell(f"MLflow has no experiment yet, the first campaign makes it: {error}")


def _basic(credentials: Credentials) -> str:
    return "Basic " + base64.b64encode(credentials.text.encode()).decode()


@contextmanager
def _prefect_client(directory: Path, settings: ServiceSettings) -> Iterator[None]:
    """Point this process at the server."""
    credentials = settings.credentials
    with temporary_settings({
        PREFECT_API_URL: settings.prefect_url,
        PREFECT_API_AUTH_STRING: None if credentials is None else credentials.text,
        PREFECT_HOME: directory / "prefect-home",
        PREFECT_SERVER_ALLOW_EPHEMERAL_MODE: False,
    }):
        yield
