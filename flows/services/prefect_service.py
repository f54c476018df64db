"""The Prefect server and worker of the services, and the deployments that the server knows."""

import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.objects import WorkerStatus
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_HOME,
    PREFECT_SERVER_ALLOW_EPHEMERAL_MODE,
    temporary_settings,
)
from prefect.workers.process import ProcessWorker

from chess_snn.errors import UsageError
from chess_snn.processes import KILL_TIMEOUT_S
from flows import server_specs
from flows.prefect_errors import one_line_errors
from flows.server_processes import ChildSpec, ServerSpec
from flows.services.control import WORKER_GRACE_S
from flows.services.settings import POOL, ServiceSettings

PREFECT_FILE: Final = Path(__file__).parents[1] / "prefect.yaml"
"""A link to ``deployments/prefect.yaml`` in the repository, and a copy of it once installed."""

DEPLOY_TIMEOUT_S: Final = 180.0

_QUERY_S: Final = 2
"""Seconds between two looks of the worker for new runs."""

_LEASES_ON_DISK: Final = "prefect.server.concurrency.lease_storage.filesystem"

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Deployment:
    """One deployment, for people."""

    name: str
    """``campaign/local``, as ``prefect deployment run`` takes it."""
    summary: str
    """Its first sentence."""


def client_environment(settings: ServiceSettings) -> dict[str, str]:
    """Variables by which a process finds both servers and is let in."""
    environment = {
        "PREFECT_API_URL": settings.prefect_url,
        "MLFLOW_TRACKING_URI": settings.mlflow_url,
        # Without a server a client must fail, not start one of its own that nobody stops.
        "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "1",
    }
    if settings.credentials is None:
        return environment
    return environment | {
        "PREFECT_API_AUTH_STRING": settings.credentials.text,
        "MLFLOW_TRACKING_USERNAME": settings.credentials.user,
        "MLFLOW_TRACKING_PASSWORD": settings.credentials.password,
    }


def prefect_spec(directory: Path, settings: ServiceSettings) -> ServerSpec:
    """The Prefect server, on SQLite."""
    environment = {
        # On the disk: a killed server would forget who held a lease, and never free it.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": _LEASES_ON_DISK,
    }
    if settings.credentials is not None:
        environment["PREFECT_SERVER_API_AUTH_STRING"] = settings.credentials.text
    return server_specs.prefect_spec(
        directory, settings.prefect_port, host=settings.host, environment=environment
    )


def worker_spec(directory: Path, settings: ServiceSettings) -> ChildSpec:
    """The worker that takes runs of the pool, with all that these start."""
    return ChildSpec(
        name="worker",
        command=[
            sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL,
            "--type", "process", "--name", worker_name(), "--limit", str(settings.runs),
        ],
        environment=client_environment(settings) | {
            "PREFECT_HOME": str(directory / "prefect-home"),
            "PREFECT_WORKER_QUERY_SECONDS": str(_QUERY_S),
            # The worker has no terminal, for which our command line silences Prefect: a log file.
            "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
        },
        log_file=directory / "worker.log",
        record_file=directory / "worker.json",
        tree_grace_s=WORKER_GRACE_S,
        stop_timeout_s=WORKER_GRACE_S + KILL_TIMEOUT_S,
    )


def worker_name() -> str:
    """The worker of this machine."""
    return f"worker of {socket.gethostname()}"


def is_worker_online() -> bool:
    """Whether Prefect knows this machine's worker; for a block of :func:`prefect_client`."""
    with get_client(sync_client=True) as client:
        try:
            workers = client.read_workers_for_work_pool(POOL)
        except ObjectNotFound:
            return False
    return any(
        worker.name == worker_name() and worker.status == WorkerStatus.ONLINE for worker in workers
    )


@contextmanager
def prefect_client(directory: Path, settings: ServiceSettings) -> Iterator[None]:
    """Let this process's Prefect clients use the server, for the length of the block."""
    credentials = settings.credentials
    with temporary_settings({
        PREFECT_API_URL: settings.prefect_url,
        PREFECT_API_AUTH_STRING: None if credentials is None else credentials.text,
        PREFECT_HOME: directory / "prefect-home",
        PREFECT_SERVER_ALLOW_EPHEMERAL_MODE: False,
    }):
        yield


def deploy(environment: Mapping[str, str]) -> list[Deployment]:
    """Create the work pool if it is missing, and register or update every deployment.

    Args:
        environment: added to this process's; names the server (``PREFECT_API_URL``) and, where it
            asks, a password (``PREFECT_API_AUTH_STRING``).

    Returns:
        What is registered.

    Raises:
        UsageError: the server is away, or refuses; or it took too long.
    """
    api_url = environment["PREFECT_API_URL"]
    server = {
        PREFECT_API_URL: api_url,
        PREFECT_API_AUTH_STRING: environment.get("PREFECT_API_AUTH_STRING"),
        PREFECT_SERVER_ALLOW_EPHEMERAL_MODE: False,
    }
    with (
        temporary_settings(server), one_line_errors(api_url),
        get_client(sync_client=True) as client,
    ):
        _create_pool(client)
        _run_prefect_deploy(api_url, environment)
        return _registered(client)


def _registered(client: SyncPrefectClient) -> list[Deployment]:
    """All deployments of the pool, by name."""
    found = [
        Deployment(
            f"{client.read_flow(deployment.flow_id).name}/{deployment.name}",
            (deployment.description or "").strip().partition("\n")[0],
        )
        for deployment in client.read_deployments() if deployment.work_pool_name == POOL
    ]
    return sorted(found, key=lambda deployment: deployment.name)


def _create_pool(client: SyncPrefectClient) -> None:
    pool = WorkPoolCreate(
        name=POOL, type=ProcessWorker.type,
        description="Runs of chess-snn, each a process on its worker's machine.",
        base_job_template=ProcessWorker.get_default_base_job_template(),
    )
    try:
        client.create_work_pool(pool)
    except ObjectAlreadyExists:
        return


def _run_prefect_deploy(api_url: str, environment: Mapping[str, str]) -> None:
    command = [
        sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--prefect-file",
        str(PREFECT_FILE), "--all",
    ]
    try:
        # Elsewhere Prefect would look for a repository, and for flows in the working folder.
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run(
                command, cwd=empty, env=os.environ | dict(environment), timeout=DEPLOY_TIMEOUT_S,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, check=False,
            )
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"the deployments could not be registered at {api_url} within {error.timeout:.0f} s; "
            "see by `chess-snn doctor` that it answers, and try again when this machine has less "
            "to do"
        ) from error
    if done.returncode:
        said = _COLOURS.sub("", done.stdout).strip().splitlines()
        reason = said[-1] if said else "Prefect says nothing"
        raise UsageError(f"the deployments could not be registered at {api_url}: {reason}")
