"""The Prefect server and the MLflow server: how each is run, and a campaign's own.

A campaign's own servers are views of its folder and keep their data there. None is started if one
is given: a Prefect server by ``PREFECT_API_URL``, an MLflow server by its tracking URI.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.client.schemas.objects import TERMINAL_STATES, StateType
from prefect.events.worker import EventsWorker
from prefect.logging import get_logger
from prefect.logging.handlers import APILogWorker
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_HOME,
    PREFECT_SERVER_ALLOW_EPHEMERAL_MODE,
    temporary_settings,
)

from chess_snn.credentials import Credentials
from chess_snn.errors import without_credentials
from chess_snn.flows.prefect_access import (
    AUTH_VARIABLE,
    kept_credentials,
    new_credentials,
    sign_in_link,
)
from chess_snn.flows.prefect_database import (
    HOME_VARIABLE,
    PREFECT_DATABASE,
    database_variables,
    prepare_database,
)
from chess_snn.flows.prefect_errors import ServerGoneError, answering, check_server
from chess_snn.flows.server_processes import HOST, ServerSpec, running_server
from chess_snn.flows.server_records import is_claimed
from chess_snn.ports import free_port
from chess_snn.tasks.tracking import artifact_directory, is_server, tracking_uri
from chess_snn.types import LogFn
from chess_snn.web.guard import own_names

_Result = TypeVar("_Result")

_PREFECT_LOG: Final = "prefect-server.log"
API_URL_VARIABLE: Final = "PREFECT_API_URL"

EMBEDDED: Final = {
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
    **{f"PREFECT_SERVER_SERVICES_{service}_ENABLED": "false" for service in (
        "CANCELLATION_CLEANUP", "CLEANUP_RECONCILER", "FOREMAN", "LATE_RUNS", "PAUSE_EXPIRATIONS",
        "REPOSSESSOR", "SCHEDULER", "TRIGGERS",
    )},
}
"""Variables of a campaign's own Prefect server. The disabled services watch deployments, work
pools, schedules and automations, which an embedded run does not have. The event persister and the
task-run recorder stay: task-run states arrive through them."""

PREFECT_START_TIMEOUT_S: Final = 600.0
"""A start takes seconds on a quick machine, and minutes where many others compute. A server that
died is noticed at once."""

MOST_SERVERS: Final = 5
"""Limit for one call, if each server is lost."""

MLFLOW_START_TIMEOUT_S: Final = 90.0

FLUSH_TIMEOUT_S: Final = 5.0
"""Longest wait, when a server is about to stop, for the states of task runs that have ended."""

FLUSH_POLL_S: Final = 0.1


def prefect_spec(
    directory: Path, port: int, credentials: Credentials, *, host: str = HOST,
    environment: Mapping[str, str] = EMBEDDED,
) -> ServerSpec:
    """How to run a Prefect server, with its database, home and log in ``directory``."""
    url, database = f"http://{host}:{port}/api", directory / PREFECT_DATABASE
    return ServerSpec(
        name="Prefect server",
        command=[
            sys.executable, "-m", "uvicorn", "--factory", "chess_snn.flows.prefect_app:create_app",
            "--host", host, "--port", str(port), "--log-level", "warning",
        ],
        environment={
            **database_variables(database, home_in(directory)),
            "PREFECT_SERVER_API_AUTH_STRING": credentials.text,
            "PREFECT_SERVER_API_HOST": host,
            "PREFECT_UI_API_URL": "/api",  # of the name and port that the browser knows
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            **environment,
        },
        log_file=directory / _PREFECT_LOG,
        url=url,
        health_url=f"{url}/health",
        listens_on=(host, port),
        prepare=partial(prepare_database, database),
    )


def mlflow_spec(
    directory: Path, port: int, store: str, *, host: str = HOST, options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> ServerSpec:
    """How to run an MLflow server on ``store``, with its log in ``directory``."""
    url = f"http://{host}:{port}"
    names = sorted(own_names(host) - {"::1"})
    return ServerSpec(
        name="MLflow server",
        command=[
            sys.executable, "-m", "mlflow", "server", "--host", host, "--port", str(port),
            "--workers", "1", "--artifacts-destination", artifact_directory(store).as_uri(),
            # MLflow's default admits names that begin as private addresses do: 10.evil.example.
            "--allowed-hosts", ",".join([*names, *(f"{name}:*" for name in names)]),
            "--cors-allowed-origins", ",".join(f"http://{name}:{port}" for name in names),
            *options,
        ],
        environment={
            # Not an option: the address of a database may hold a password.
            "MLFLOW_BACKEND_STORE_URI": store,
            "MLFLOW_DISABLE_TELEMETRY": "true",
            # Seven job runners that nothing here uses, and that outlive the server's parent.
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            **(environment or {}),
        },
        log_file=directory / "mlflow-server.log",
        url=url,
        health_url=f"{url}/health",
    )


def home_in(directory: Path) -> Path:
    """Prefect's home of a server in ``directory``."""
    return directory.resolve() / "prefect-home"


def is_embedded(directory: Path) -> bool:
    """Whether this process uses the server that :func:`prefect_server` runs on ``directory``."""
    return bool(PREFECT_HOME.value() == home_in(directory))


def page_link(api_url: str, directory: Path) -> str:
    """The address of the server's page; of the one on ``directory``, a link that signs in."""
    if is_embedded(directory):
        return sign_in_link(api_url, kept_credentials(directory))
    return api_url.removesuffix("/api")


@contextmanager
def prefect_server(
    directory: Path, *, tell: LogFn | None = None, meanwhile: Callable[[], None] = lambda: None
) -> Iterator[str]:
    """Have a Prefect server for the length of the block, and yield its API URL.

    The server that ``PREFECT_API_URL`` names is used, if it is set. Otherwise one runs on loopback,
    with its data in ``directory``, until the block ends, and this process and those it starts use
    it (:func:`chess_snn.flows.server_processes.running_server`). ``meanwhile`` is called before the
    block.

    Raises:
        UsageError: the given server cannot be used; or a process on another machine runs one.
        ServerStartError: the server did not start.
        ServerGoneError: it did not answer in the block, or failed.
    """
    if given_url := os.environ.get(API_URL_VARIABLE):
        check_server(given_url)
        meanwhile()
        with answering(given_url):
            yield given_url
        return
    directory = directory.resolve()
    is_shared = is_claimed((directory / _PREFECT_LOG).with_suffix(".json"))
    credentials = kept_credentials(directory) if is_shared else new_credentials(directory)
    spec = prefect_spec(directory, free_port(), credentials)
    with (
        running_server(
            spec, tell=tell, start_timeout_s=PREFECT_START_TIMEOUT_S, meanwhile=meanwhile
        ) as api_url,
        _prefect_client_settings(api_url, credentials, directory),
    ):
        try:
            with answering(api_url):
                yield api_url
        finally:
            _flush_prefect_client(api_url)


def call_with_server(
    work: Callable[[], _Result], directory: Path, tell: LogFn, meanwhile: Callable[[], None]
) -> _Result:
    """Return what ``work`` returns with a Prefect server as :func:`prefect_server` has it.

    If its own server is lost, or the database, ``work`` is called again, with another server.

    Raises:
        ServerGoneError: a given server is lost, or another one again and again.
    """
    servers_left = 1 if os.environ.get(API_URL_VARIABLE) else MOST_SERVERS
    while True:
        servers_left -= 1
        try:
            with prefect_server(directory, tell=tell, meanwhile=meanwhile):
                result = work()
        except ServerGoneError as error:
            if servers_left == 0:
                raise
            tell(f"{error.what}; going on with another one")
        else:
            return result


@contextmanager
def mlflow_server(
    directory: Path, *, store: str | None = None, tell: LogFn | None = None
) -> Iterator[str]:
    """Have MLflow's web pages for the length of the block, and yield their URL.

    They show ``store``, by default :func:`chess_snn.tasks.tracking.tracking_uri`; if that is the
    address of a server, it is yielded and nothing started. The log goes to ``directory``.

    Raises:
        UsageError: a process on another machine runs it.
        ServerStartError: the server did not start.
    """
    store = store or tracking_uri()
    if is_server(store):
        yield store
        return
    spec = mlflow_spec(directory.resolve(), free_port(), store)
    with running_server(spec, tell=tell, start_timeout_s=MLFLOW_START_TIMEOUT_S) as url:
        yield url


@contextmanager
def _prefect_client_settings(
    api_url: str, credentials: Credentials, directory: Path
) -> Iterator[None]:
    """Point this process, and those it starts, at the embedded server."""
    home = home_in(directory)
    variables = {
        API_URL_VARIABLE: api_url, AUTH_VARIABLE: credentials.text, HOME_VARIABLE: str(home),
    }
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        with temporary_settings({
            PREFECT_API_URL: api_url,
            PREFECT_API_AUTH_STRING: credentials.text,
            PREFECT_HOME: home,
            # A client that cannot reach the server must fail, not start a server of its own.
            PREFECT_SERVER_ALLOW_EPHEMERAL_MODE: False,
        }):
            yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)


def _flush_prefect_client(api_url: str) -> None:
    """Wait until the server has written what this process told it.

    A task run's state travels as an event: from a background thread here to a queue in the server
    and from there to the database. A server stopped too early leaves finished tasks "Running".
    """
    senders = tuple(EventsWorker._instances.values())  # of logs too; draining forgets them
    EventsWorker.drain_all(timeout=FLUSH_TIMEOUT_S)
    APILogWorker.drain_all(timeout=FLUSH_TIMEOUT_S)
    deadline = time.monotonic() + FLUSH_TIMEOUT_S
    try:
        with get_client(sync_client=True) as client:
            while (unwritten := _count_unwritten_states(client)) and time.monotonic() < deadline:
                time.sleep(FLUSH_POLL_S)
        if unwritten:
            get_logger(__name__).warning(
                "Stopping the Prefect server with %d task states not yet written", unwritten
            )
    except httpx.HTTPError as error:
        get_logger(__name__).warning(
            without_credentials(f"The Prefect server at {api_url} is gone: {error}")
        )
        for sender in senders:
            # At exit a sender would try each unsent item for a minute.
            with sender._queue.mutex:
                sender._queue.queue.clear()
            sender._queue.put_nowait(None)  # ends it


def _count_unwritten_states(client: SyncPrefectClient) -> int:
    """Task runs that look open although their flow run has ended."""
    open_states = [state for state in StateType if state not in TERMINAL_STATES]
    ended_states = [StateType.COMPLETED, StateType.FAILED]
    return len(client.read_task_runs(
        flow_run_filter=FlowRunFilter.model_validate({"state": {"type": {"any_": ended_states}}}),
        task_run_filter=TaskRunFilter.model_validate({"state": {"type": {"any_": open_states}}}),
    ))
