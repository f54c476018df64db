"""The deployments that a Prefect server knows, from ``prefect.yaml``."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

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

from chess_snn.errors import UsageError
from flows.prefect_access import AUTH_VARIABLE
from flows.prefect_errors import check_server

POOL: Final = "chess"
"""The work pool of ``prefect.yaml``."""

PREFECT_FILE: Final = Path(__file__).with_name("prefect.yaml")
"""A link to the file in the root of the repository, and a copy of that once installed."""

DEPLOY_TIMEOUT_S: Final = 180.0


def deploy(environment: Mapping[str, str]) -> list[str]:
    """Create the work pool if it is missing, and register or update every deployment.

    ``environment`` is added to this process's; it names the server (``PREFECT_API_URL``) and, if
    that demands them, has credentials (``PREFECT_API_AUTH_STRING``). Returns the names of all
    deployments of the pool: ``campaign/local``.

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
        PREFECT_API_AUTH_STRING: environment.get(AUTH_VARIABLE),
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
