"""The process whose children the services are: starts them in order, watches them, stops them."""

import os
import secrets
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NoReturn

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import ObjectAlreadyExists
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_SERVER_ALLOW_EPHEMERAL_MODE,
    temporary_settings,
)
from prefect.workers.process import ProcessWorker

from chess_snn.credentials import CREDENTIALS_FILE_VARIABLE, Credentials
from chess_snn.data import write_text
from chess_snn.errors import UsageError
from chess_snn.flows import servers
from chess_snn.flows.prefect_access import AUTH_VARIABLE, CREDENTIALS_FILE
from chess_snn.flows.prefect_database import HOME_VARIABLE
from chess_snn.flows.prefect_errors import check_server
from chess_snn.flows.server_processes import WATCH_PERIOD_S, Server, ServerSpec
from chess_snn.flows.server_records import write_record
from chess_snn.flows.services import WORKER_GRACE_S, ServiceSettings, ServicesRecord, owned_folder
from chess_snn.processes import KILL_TIMEOUT_S
from chess_snn.tasks import tracking
from chess_snn.types import LogFn

START_TIMEOUT_S: Final = 180.0
"""Limit of each server. The first start creates databases: some 10 s for Prefect and 30 s for
MLflow on a quick machine."""

POOL: Final = "chess"
"""Work pool of ``prefect.yaml``."""
PREFECT_FILE: Final = Path(__file__).with_name("prefect.yaml")
"""A link to the file in the root of the repository, and a copy of that once installed."""
DEPLOY_TIMEOUT_S: Final = 180.0

_QUERY_S: Final = 2
"""Seconds between two looks of the worker for new runs."""

_MLFLOW_TIMEOUT_S: Final = 30.0

_PASSWORDS_FOR_MLFLOW: Final = "flask_wtf"
"""A package that MLflow needs in order to ask for passwords."""


def run_services(directory: Path, settings: ServiceSettings, tell: LogFn) -> NoReturn:
    """Run all services until a signal or an error ends them; nothing of them is left then.

    Call it from the main thread: the services end with the thread that calls.

    Args:
        directory: for data, logs and records.
        settings: where they listen.
        tell: receives a line for each event, and a summary once all services have started.

    Raises:
        UsageError: other services run on ``directory``.
        ServerStartError: a service does not start, or ended too often.
    """
    running: list[Server] = []

    def start(spec: ServerSpec) -> Server:
        running.append(server := Server(spec, tell))
        stack.callback(server.stop)
        return server

    def wait(server: Server) -> None:
        seconds = server.wait_until_healthy(START_TIMEOUT_S)
        tell(f"{server.spec.name} is up after {seconds:.0f} s")

    with owned_folder(directory) as record, ExitStack() as stack:
        running_services = ServicesRecord(
            socket.gethostname(), os.getpid(), settings.prefect_url, settings.mlflow_url,
            made_credentials=settings.credentials is None,
        )
        write_record(record, running_services)
        prefect = start(prefect_spec(directory, settings))
        mlflow = start(mlflow_spec(directory, settings))
        wait(prefect)
        deploy(client_environment(directory, settings))
        tell("deployments: campaign/local, experiment/local")
        start(worker_spec(directory, settings))
        wait(mlflow)
        summary = _summary(directory, settings, _mlflow_pages(settings, tell))
        tell(summary)  # first, so that a command that waits for the record has shown all lines
        write_record(record, replace(running_services, summary=summary))
        while True:
            time.sleep(WATCH_PERIOD_S)
            for server in running:
                server.restart_if_ended()


def deploy(environment: Mapping[str, str]) -> None:
    """Create the work pool if it is missing, and register or update the deployment.

    ``environment`` is added to this process's; it names the server (``PREFECT_API_URL``) and, if
    that demands them, has credentials (``PREFECT_API_AUTH_STRING``).

    Raises:
        UsageError: the server cannot be used, or it took too long.
    """
    api_url = environment[servers.API_URL_VARIABLE]
    pool = WorkPoolCreate(
        name=POOL, type=ProcessWorker.type,
        description="Runs of chess-snn, each a process on its worker's machine.",
        base_job_template=ProcessWorker.get_default_base_job_template(),
    )
    with temporary_settings({
        PREFECT_API_URL: api_url,
        PREFECT_API_AUTH_STRING: environment.get(AUTH_VARIABLE),
        PREFECT_SERVER_ALLOW_EPHEMERAL_MODE: False,
    }):
        check_server(api_url)
        with get_client(sync_client=True) as client, suppress(ObjectAlreadyExists):
            client.create_work_pool(pool)
    command = ["-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file"]
    try:
        # Elsewhere Prefect would look for a repository, and for flows in the working folder.
        with tempfile.TemporaryDirectory() as empty:
            subprocess.run(
                [sys.executable, *command, str(PREFECT_FILE)], cwd=empty, timeout=DEPLOY_TIMEOUT_S,
                env=os.environ | dict(environment) | {"PREFECT_CLI_COLORS": "false"},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, check=True,
            )
    except subprocess.SubprocessError as error:  # it failed, or took too long
        printed = error.output if isinstance(error, subprocess.CalledProcessError) else ""
        raise UsageError(
            f"the deployment could not be registered at {api_url}: {error}\n{printed}"
        ) from error


def _summary(directory: Path, settings: ServiceSettings, pages: Mapping[str, str]) -> str:
    """The addresses of everything, and what to do next; holds no password."""
    exports = f"export PREFECT_API_URL={settings.prefect_url}"
    if settings.credentials is None:
        # MLflow's is not needed: commands use the files of its store, which are there after `down`.
        file = shlex.quote(str(directory / CREDENTIALS_FILE))
        exports += f"\n  export {AUTH_VARIABLE}=$(cat {file})"
    else:
        if os.environ.get(CREDENTIALS_FILE_VARIABLE):
            exports = f"CHESS_SNN_CREDENTIALS=$(cat $CHESS_SNN_CREDENTIALS_FILE)\n  {exports}"
        exports += (
            f" {AUTH_VARIABLE}=$CHESS_SNN_CREDENTIALS"
            f" MLFLOW_TRACKING_URI={settings.mlflow_url}"
            " MLFLOW_TRACKING_USERNAME=${CHESS_SNN_CREDENTIALS%%:*}"
            " MLFLOW_TRACKING_PASSWORD=${CHESS_SNN_CREDENTIALS#*:}"
        )
    links = "".join(f"  {name}  {address}\n" for name, address in pages.items())
    return (
        f"Prefect  {settings.prefect_url.removesuffix('/api')}  runs, logs, deployments\n"
        f"MLflow   {settings.mlflow_url}  curves, models\n"
        f"{links}"
        f"Worker   up to {settings.runs} at once of the runs that are asked for\n"
        "A campaign of a few minutes, from any shell of this environment:\n"
        f"  {exports}\n"
        "  prefect deployment run campaign/local --watch --param preset=smoke\n"
        "End all of it: chess-snn down"
    )


def prefect_spec(directory: Path, settings: ServiceSettings) -> ServerSpec:
    """The Prefect server, on SQLite."""
    environment = {
        # On the disk: a killed server would forget who held a lease, and never free it.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE":
            "prefect.server.concurrency.lease_storage.filesystem",
    }
    return servers.prefect_spec(
        directory, settings.prefect_port, settings.prefect_credentials(directory),
        host=settings.host, environment=environment,
    )


def mlflow_spec(directory: Path, settings: ServiceSettings) -> ServerSpec:
    """The MLflow server, on SQLite and a folder of artifacts.

    Raises:
        UsageError: it is to ask for a password, and a package is missing.
    """
    host, port = settings.host, settings.mlflow_port
    options: list[str] = []
    environment: dict[str, str] = {}
    if settings.credentials is not None:
        options += ["--app-name", "basic-auth"]
        environment = _mlflow_users(directory, settings.credentials)
    return servers.mlflow_spec(
        directory, port, tracking.local_tracking_uri(directory), host=host, options=options,
        environment=environment,
    )


def _mlflow_users(directory: Path, credentials: Credentials) -> dict[str, str]:
    """MLflow keeps users in a database of its own; the credentials are its first user."""
    if find_spec(_PASSWORDS_FOR_MLFLOW) is None:
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


def _mlflow_pages(settings: ServiceSettings, tell: LogFn) -> dict[str, str]:
    """Create the experiment of all campaigns, unless it exists; return addresses of its pages.

    By MLflow's interface over HTTP, because importing MLflow takes seconds.

    Raises:
        UsageError: the server was first started with other credentials.
    """
    given = settings.credentials
    with httpx.Client(
        base_url=f"{settings.mlflow_url}/api/2.0/mlflow/experiments", timeout=_MLFLOW_TIMEOUT_S,
        auth=None if given is None else (given.user, given.password), trust_env=False,
    ) as client:
        try:
            answer = client.get("get-by-name", params={"experiment_name": tracking.EXPERIMENT})
            if answer.status_code == httpx.codes.NOT_FOUND:
                tags = [{"key": key, "value": tag} for key, tag in tracking.EXPERIMENT_TAGS.items()]
                answer = client.post("create", json={"name": tracking.EXPERIMENT, "tags": tags})
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                raise UsageError(
                    "MLflow was first started with another user and password: use those, or delete "
                    "mlflow-users.db beside its database"
                )
            found = answer.raise_for_status().json()
        except httpx.HTTPError as error:
            tell(f"MLflow has no experiment yet, the first campaign creates it: {error}")
            return {}
    experiment_id = found.get("experiment", found)["experiment_id"]
    return tracking.experiment_pages(settings.mlflow_url, experiment_id)


def worker_spec(directory: Path, settings: ServiceSettings) -> ServerSpec:
    """The worker that takes runs of the pool, with all that these start."""
    return ServerSpec(
        name="worker",
        command=[
            sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--type", "process",
            "--name", f"worker of {socket.gethostname()}", "--limit", str(settings.runs),
        ],
        environment=client_environment(directory, settings) | {
            HOME_VARIABLE: str(servers.home_in(directory)),
            "PREFECT_WORKER_QUERY_SECONDS": str(_QUERY_S),
            # The worker has no terminal, for which our command line silences Prefect: a log file.
            "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
            # Its runs would print every event that they cannot send.
            "PREFECT_INTERNAL_LOGGING_LEVEL": "CRITICAL",
        },
        log_file=directory / "worker.log",
        tree_grace_s=WORKER_GRACE_S,
        stop_timeout_s=WORKER_GRACE_S + KILL_TIMEOUT_S,
    )


def client_environment(directory: Path, settings: ServiceSettings) -> dict[str, str]:
    """Variables by which a process finds both servers and is let in."""
    environment = {
        servers.API_URL_VARIABLE: settings.prefect_url,
        AUTH_VARIABLE: settings.prefect_credentials(directory).text,
        "MLFLOW_TRACKING_URI": settings.mlflow_url,
        # Without a server a client must fail, not start one of its own that is never stopped.
        "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "1",
    }
    if settings.credentials is None:
        return environment
    return environment | {
        "MLFLOW_TRACKING_USERNAME": settings.credentials.user,
        "MLFLOW_TRACKING_PASSWORD": settings.credentials.password,
    }
