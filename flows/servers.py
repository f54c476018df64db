"""The servers a campaign brings along: Prefect's, and MLflow's for looking at its results.

Both are views on the campaign folder and keep their own data in it. Neither is started where one
is given: a Prefect server by ``PREFECT_API_URL``, an MLflow server by its tracking URI.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import TERMINAL_STATES, StateType
from prefect.events.worker import EventsWorker
from prefect.logging import get_logger
from prefect.logging.handlers import APILogWorker
from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_HOME,
    PREFECT_SERVER_ALLOW_EPHEMERAL_MODE,
    temporary_settings,
)

from chess_snn.errors import without_credentials
from chess_snn.ports import free_port
from chess_snn.types import LogFn
from flows.prefect_errors import answering, check_server
from flows.server_processes import OnWait, running_server
from flows.server_specs import HOME_VARIABLE, PREFECT_DATABASE, home_in, mlflow_spec, prefect_spec
from tasks.tracking import is_server, tracking_uri

API_URL_VARIABLE = "PREFECT_API_URL"
PREFECT_START_TIMEOUT_S = 600.0
"""The first start creates the database, which takes about 8 s on a quick machine, and minutes where
many others compute. A server that died is noticed at once."""

MLFLOW_START_TIMEOUT_S = 90.0

FLUSH_TIMEOUT_S = 5.0
"""Longest wait, when a server is about to stop, for the states of task runs that have ended."""

FLUSH_POLL_S = 0.1


def has_prefect_server(directory: Path) -> bool:
    """Whether one is given, or has left its database in ``directory``."""
    return bool(os.environ.get(API_URL_VARIABLE)) or (directory / PREFECT_DATABASE).is_file()


def is_embedded(directory: Path) -> bool:
    """Whether this process uses the server that :func:`prefect_server` runs on ``directory``."""
    return bool(PREFECT_HOME.value() == home_in(directory))


@contextmanager
def prefect_server(
    directory: Path, *, progress: OnWait | None = None, tell: LogFn | None = None,
    start_timeout_s: float = PREFECT_START_TIMEOUT_S,
) -> Iterator[str]:
    """Have a Prefect server for the length of the block, and yield its API URL.

    Where ``PREFECT_API_URL`` is set in the environment, that server is used and nothing started.
    Otherwise one is started on loopback with its database, home and log in ``directory``, and
    exported to this process and to those it starts. It is gone when the block ends, however it
    ends; if another live process runs one on ``directory`` already, that one is shared, and
    ``tell`` is told whose it is.

    Raises:
        UsageError: the given server is away, or refuses; or a process on another machine runs one.
        ServerStartError: the server did not come up.
        ServerGoneError: it did not answer in the block, or failed.
    """
    if given_url := os.environ.get(API_URL_VARIABLE):
        check_server(given_url)
        with answering(given_url):
            yield given_url
        return
    directory = directory.resolve()
    spec = prefect_spec(directory, free_port())
    with (
        running_server(
            spec, progress=progress, tell=tell, start_timeout_s=start_timeout_s
        ) as api_url,
        _prefect_client_settings(api_url, directory),
    ):
        try:
            with answering(api_url):
                yield api_url
        finally:
            _flush_prefect_client(api_url)


@contextmanager
def mlflow_server(
    directory: Path, port: int | None = None, *, store: str | None = None,
    progress: OnWait | None = None, tell: LogFn | None = None,
    start_timeout_s: float = MLFLOW_START_TIMEOUT_S,
) -> Iterator[str]:
    """Have MLflow's web pages for the length of the block, and yield their URL.

    Args:
        directory: where the log goes.
        port: on loopback; a free one by default.
        store: to show; by default :func:`tasks.tracking.tracking_uri`. Where it is a
            server's address already, that is yielded and nothing started.
        progress: called while the server starts.
        tell: is told whose it is, where another process runs one already.
        start_timeout_s: longest wait for it.

    Raises:
        UsageError: a process on another machine runs it.
        ServerStartError: the server did not come up.
    """
    store = store or tracking_uri()
    if is_server(store):
        yield store
        return
    spec = mlflow_spec(directory.resolve(), port or free_port(), store)
    with running_server(
        spec, progress=progress, tell=tell, start_timeout_s=start_timeout_s
    ) as url:
        yield url


@contextmanager
def _prefect_client_settings(api_url: str, directory: Path) -> Iterator[None]:
    """Point this process, and those it starts, at the embedded server."""
    home = home_in(directory)
    with (
        _environment({API_URL_VARIABLE: api_url, HOME_VARIABLE: str(home)}),
        temporary_settings({
            PREFECT_API_URL: api_url,
            PREFECT_HOME: home,
            # A client that loses its way must fail, not start a server of its own.
            PREFECT_SERVER_ALLOW_EPHEMERAL_MODE: False,
        }),
    ):
        yield


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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
            while unwritten := _count_unwritten_states(client):
                if time.monotonic() > deadline:
                    get_logger(__name__).warning(
                        "Stopping the Prefect server with %d task states not yet written", unwritten
                    )
                    return
                time.sleep(FLUSH_POLL_S)
    except httpx.HTTPError as error:
        get_logger(__name__).warning(
            without_credentials(f"The Prefect server at {api_url} is gone: {error}")
        )
        for sender in senders:
            _drop_unsent(sender._queue)


def _drop_unsent(queue: Queue[Any]) -> None:
    """Let a sender of Prefect's end, which at exit tries each item in ``queue`` for a minute."""
    with queue.mutex:
        queue.queue.clear()
    queue.put_nowait(None)  # what it ends at


def _count_unwritten_states(client: SyncPrefectClient) -> int:
    """Task runs that look open although their flow run has ended."""
    open_states = [state for state in StateType if state not in TERMINAL_STATES]
    ended_states = [StateType.COMPLETED, StateType.FAILED]
    return len(
        client.read_task_runs(
            flow_run_filter=FlowRunFilter(
                state=FlowRunFilterState(type=FlowRunFilterStateType(any_=ended_states))
            ),
            task_run_filter=TaskRunFilter(
                state=TaskRunFilterState(type=TaskRunFilterStateType(any_=open_states))
            ),
        )
    )
