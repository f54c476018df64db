"""A Prefect server: whether it answers, its errors in one line, and the deployments it knows."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import ObjectAlreadyExists
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    PREFECT_SERVER_ALLOW_EPHEMERAL_MODE,
    temporary_settings,
)
from prefect.workers.process import ProcessWorker

from chess_snn.errors import ChessSnnError, UsageError
from chess_snn.types import LogFn
from tasks import compute

ASK_TIMEOUT_S: Final = 15.0
"""Longest wait for a given server's first answer; Prefect tries four times to be connected."""

AWAY_S: Final = 60.0
"""How long a server may be away where a run begins."""
_ASK_AGAIN_S: Final = 1.0


class ServerGoneError(ChessSnnError):
    """The Prefect server stopped answering, or fails; everything committed is safe."""

    code = "server.gone"


def check_server(api_url: str) -> None:
    """Return if the server at ``api_url`` answers, lets this process in and fits its Prefect.

    Raises:
        UsageError: it does not.
    """
    settings = {
        PREFECT_API_URL: api_url,
        PREFECT_CLIENT_MAX_RETRIES: 0,
        PREFECT_SERVER_ALLOW_EPHEMERAL_MODE: False,
    }
    try:
        with (
            temporary_settings(settings),
            get_client(sync_client=True, httpx_settings={"timeout": ASK_TIMEOUT_S}) as client,
        ):
            client.raise_for_api_version_mismatch()
    except (httpx.HTTPError, RuntimeError) as error:
        raise UsageError(
            f"the Prefect server at {api_url} cannot be used: {_reason(error.__cause__ or error)}; "
            "correct PREFECT_API_URL, which ends with /api, and PREFECT_API_AUTH_STRING "
            "(user:password), or unset both; `chess-snn up` starts a server"
        ) from error


def await_server(tell: LogFn) -> None:
    """Return once the server answers, for a run that is to begin; ``tell`` hears of a wait.

    Prefect's clients wait about a minute for a server that they were connected to, and not at all
    for one that they were not; where a run begins there is a new client.

    Raises:
        httpx.TransportError: it has not answered for :data:`AWAY_S`.
        StoppedError: the campaign is stopping.
    """
    deadline: float | None = None
    while True:
        with get_client(sync_client=True) as client:
            error = client.api_healthcheck()
        if not isinstance(error, httpx.TransportError):
            return  # if it answers with an error, the run that begins reports that
        compute.give_up_if_stopping()
        if deadline is None:
            tell(f"the Prefect server does not answer ({error}); waiting for it")
            deadline = time.monotonic() + AWAY_S
        elif time.monotonic() > deadline:
            raise error
        time.sleep(_ASK_AGAIN_S)


@contextmanager
def answering(api_url: str) -> Iterator[None]:
    """Raise a ServerGoneError of one line if the server stops answering in the block, or fails."""
    try:
        yield
    except (httpx.TransportError, httpx.HTTPStatusError, RuntimeError) as error:
        # Where a flow begins, Prefect raises a RuntimeError from the error of its client.
        cause = error.__cause__ if isinstance(error, RuntimeError) else error
        is_status = isinstance(cause, httpx.HTTPStatusError) and cause.response.is_server_error
        if cause is None or not (is_status or isinstance(cause, httpx.TransportError)):
            raise
        raise ServerGoneError(
            f"the Prefect server at {api_url} failed ({_reason(cause)}); everything committed is "
            "safe. See that it runs and that its disk has room, then `chess-snn campaign resume`"
        ) from error


def _reason(error: BaseException) -> str:
    """The first line of an error; Prefect's errors go on with the whole answer."""
    return str(error).partition("\n")[0] or type(error).__name__


POOL: Final = "chess"
"""The work pool of ``deployments/prefect.yaml``."""

PREFECT_FILE: Final = Path(__file__).with_name("prefect.yaml")
"""A link to ``deployments/prefect.yaml`` in the repository, and a copy of it once installed."""

DEPLOY_TIMEOUT_S: Final = 180.0


def deploy(environment: Mapping[str, str]) -> list[str]:
    """Create the work pool if it is missing, and register or update every deployment.

    ``environment`` is added to this process's; it names the server (``PREFECT_API_URL``) and, where
    that asks, a password (``PREFECT_API_AUTH_STRING``). Returns the names of all deployments of the
    pool: ``campaign/local``.

    Raises:
        UsageError: the server cannot be used, or it took too long.
    """
    api_url = environment["PREFECT_API_URL"]
    pool = WorkPoolCreate(
        name=POOL, type=ProcessWorker.type,
        description="Runs of chess-snn, each a process on its worker's machine.",
        base_job_template=ProcessWorker.get_default_base_job_template(),
    )
    with temporary_settings({
        PREFECT_API_URL: api_url,
        PREFECT_API_AUTH_STRING: environment.get("PREFECT_API_AUTH_STRING"),
        PREFECT_SERVER_ALLOW_EPHEMERAL_MODE: False,
    }):
        check_server(api_url)
        with get_client(sync_client=True) as client:
            with suppress(ObjectAlreadyExists):
                client.create_work_pool(pool)
            _run_prefect_deploy(api_url, environment)
            return sorted(
                f"{client.read_flow(deployment.flow_id).name}/{deployment.name}"
                for deployment in client.read_deployments() if deployment.work_pool_name == POOL
            )


def _run_prefect_deploy(api_url: str, environment: Mapping[str, str]) -> None:
    command = [
        sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--prefect-file",
        str(PREFECT_FILE), "--all",
    ]
    try:
        # Elsewhere Prefect would look for a repository, and for flows in the working folder.
        with tempfile.TemporaryDirectory() as empty:
            subprocess.run(
                command, cwd=empty, timeout=DEPLOY_TIMEOUT_S, stdin=subprocess.DEVNULL,
                env=os.environ | dict(environment) | {"PREFECT_CLI_COLORS": "false"},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
            )
    except subprocess.SubprocessError as error:  # it failed, or took too long
        printed = error.output if isinstance(error, subprocess.CalledProcessError) else ""
        raise UsageError(
            f"the deployments could not be registered at {api_url}: {error}\n{printed}"
        ) from error
