"""Registers the deployments of ``deployments/prefect.yaml`` with a Prefect server."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import ObjectAlreadyExists
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    PREFECT_SERVER_ALLOW_EPHEMERAL_MODE,
    temporary_settings,
)
from prefect.workers.process import ProcessWorker

from chess_snn.errors import UsageError
from flows.prefect_errors import one_line_errors
from flows.services.settings import POOL

PREFECT_FILE: Final = Path(__file__).parents[1] / "prefect.yaml"
"""A link to ``deployments/prefect.yaml`` in the repository, and a copy of it once installed."""

DEPLOY_TIMEOUT_S: Final = 180.0

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Deployment:
    """One deployment as people see it."""

    name: str
    """``campaign/local``, as ``prefect deployment run`` takes it."""
    summary: str
    """Its first sentence."""


def deploy(environment: Mapping[str, str]) -> list[Deployment]:
    """Create the work pool where it is missing, and register or update every deployment.

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
