"""How each of the services is started."""

import secrets
import socket
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from chess_snn.data import write_text
from chess_snn.errors import UsageError
from flows import guard
from flows.child_process import ORIGINS_VARIABLE, ChildSpec, ServerSpec, own_origins
from flows.services.settings import POOL, Credentials, ServiceSettings
from tasks.tracking import artifact_directory, local_tracking_uri

WORKER_GRACE_S: Final = 45.0
"""What a campaign has to reach its next safe point when the worker is told to stop."""

WORKER_QUERY_S: Final = 2
"""Seconds between two looks of the worker for new runs."""

_NEEDED_FOR_PASSWORDS: Final = "flask_wtf"
"""What MLflow's user management imports beyond the rest of it."""

_LEASES_ON_DISK: Final = "prefect.server.concurrency.lease_storage.filesystem"

RECORDS: Final = ("prefect-server.json", "mlflow-server.json", "worker.json")
"""Of the children, in the order in which they are started."""


def client_environment(settings: ServiceSettings) -> dict[str, str]:
    """What a process needs to find both servers and be let in."""
    environment = {
        "PREFECT_API_URL": settings.prefect_url,
        "MLFLOW_TRACKING_URI": settings.mlflow_url,
        # Without a server a client must fail, not start one of its own that nobody reaps.
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
        "PREFECT_HOME": str(directory / "prefect-home"),
        "PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{directory / 'prefect.db'}",
        "PREFECT_UI_API_URL": settings.prefect_url,
        ORIGINS_VARIABLE: own_origins(settings.host, settings.prefect_port),
        # On the disk: one that was killed would forget who held a place, and never give it away.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": _LEASES_ON_DISK,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    if settings.credentials is not None:
        environment["PREFECT_SERVER_API_AUTH_STRING"] = settings.credentials.text
    return ServerSpec(
        name="Prefect server",
        command=[
            sys.executable, "-m", "flows.prefect_app", settings.host, str(settings.prefect_port),
        ],
        environment=environment,
        url=settings.prefect_url,
        host=settings.host,
        port=settings.prefect_port,
        health_path="/api/health",
        log_file=directory / "prefect-server.log",
        record_file=directory / RECORDS[0],
    )


def mlflow_spec(directory: Path, settings: ServiceSettings) -> ServerSpec:
    """The MLflow server, on SQLite and a folder of artifacts.

    Raises:
        UsageError: it is to ask for a password, and cannot.
    """
    host, port, store = settings.host, str(settings.mlflow_port), local_tracking_uri(directory)
    command = [
        sys.executable, "-m", "mlflow", "server", "--host", host, "--port", port, "--workers", "1",
        "--backend-store-uri", store, "--artifacts-destination", artifact_directory(store).as_uri(),
    ]
    environment = {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        # Seven job runners that nothing here uses, and that outlive the server's parent.
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    if not settings.is_loopback:
        command += ["--allowed-hosts", f"{host},{host}:{port}"]
        command += ["--cors-allowed-origins", settings.mlflow_url]
    if settings.credentials is not None:
        command += ["--app-name", "basic-auth"]
        environment |= _mlflow_users(directory, settings.credentials)
    return ServerSpec(
        name="MLflow server",
        command=command,
        environment=environment,
        url=settings.mlflow_url,
        host=host,
        port=settings.mlflow_port,
        health_path="/health",
        log_file=directory / "mlflow-server.log",
        record_file=directory / RECORDS[1],
    )


def worker_spec(directory: Path, settings: ServiceSettings) -> ChildSpec:
    """The worker that takes runs of the pool, and all it starts, under a guard."""
    worker = [
        sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--type", "process",
        "--name", worker_name(), "--limit", str(settings.runs),
    ]
    return ChildSpec(
        name="worker",
        command=[sys.executable, "-I", guard.__file__, str(WORKER_GRACE_S), *worker],
        environment=_worker_environment(directory, settings),
        log_file=directory / "worker.log",
        record_file=directory / RECORDS[2],
        stop_timeout_s=WORKER_GRACE_S + guard.KILL_TIMEOUT_S,
    )


def worker_name() -> str:
    """The worker of this machine."""
    return f"worker of {socket.gethostname()}"


def _worker_environment(directory: Path, settings: ServiceSettings) -> Mapping[str, str]:
    return client_environment(settings) | {
        "PREFECT_HOME": str(directory / "prefect-home"),
        "PREFECT_WORKER_QUERY_SECONDS": str(WORKER_QUERY_S),
        # Into worker.log; a terminal, for which our command line is silent, is not there.
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
    }


def _mlflow_users(directory: Path, credentials: Credentials) -> dict[str, str]:
    """MLflow's users are in a database of their own, whose first user we are."""
    if find_spec(_NEEDED_FOR_PASSWORDS) is None:
        raise UsageError(
            "MLflow needs another package to ask for passwords; install it with: "
            "pip install 'chess-snn[auth]'"
        )
    users = directory / "mlflow-users.ini"
    write_text(users, (
        "[mlflow]\n"
        "default_permission = READ\n"
        f"database_uri = sqlite:///{directory / 'mlflow-users.db'}\n"
    ))
    return {
        "MLFLOW_AUTH_CONFIG_PATH": str(users),
        "MLFLOW_AUTH_ADMIN_USERNAME": credentials.user,
        "MLFLOW_AUTH_ADMIN_PASSWORD": credentials.password,
        "MLFLOW_FLASK_SERVER_SECRET_KEY": secrets.token_hex(),
    }
