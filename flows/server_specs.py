"""How a Prefect and an MLflow server are run, for one campaign and for `chess-snn up`."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from flows.server_processes import HOST, ServerSpec
from tasks.tracking import artifact_directory

PREFECT_DATABASE = "prefect.db"
HOME_VARIABLE = "PREFECT_HOME"

EMBEDDED = {
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
    **{f"PREFECT_SERVER_SERVICES_{service}_ENABLED": "false" for service in (
        "CANCELLATION_CLEANUP", "CLEANUP_RECONCILER", "FOREMAN", "LATE_RUNS", "PAUSE_EXPIRATIONS",
        "REPOSSESSOR", "SCHEDULER", "TRIGGERS",
    )},
}
"""Variables of a campaign's own Prefect server. The disabled services watch deployments, work
pools, schedules and automations, which an embedded run does not have. The event persister and the
task-run recorder stay: task-run states arrive through them."""


def prefect_spec(
    directory: Path, port: int, *, host: str = HOST, environment: Mapping[str, str] = EMBEDDED
) -> ServerSpec:
    """How to run a Prefect server, with its database, home and log in ``directory``."""
    # Prefect itself allows the pages of every site to use a server through the browser.
    own_names = [host, "localhost"] if host == HOST else [host]
    return ServerSpec(
        name="Prefect server",
        command=[sys.executable, "-m", "flows.prefect_app", host, str(port)],
        environment={
            HOME_VARIABLE: str(home_in(directory)),
            "PREFECT_API_DATABASE_CONNECTION_URL":
                f"sqlite+aiosqlite:///{directory / PREFECT_DATABASE}",
            "PREFECT_UI_API_URL": f"http://{host}:{port}/api",
            "PREFECT_SERVER_CORS_ALLOWED_ORIGINS":
                ",".join(f"http://{name}:{port}" for name in own_names),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            **environment,
        },
        url=f"http://{host}:{port}/api",
        host=host,
        port=port,
        health_path="/api/health",
        log_file=directory / "prefect-server.log",
        record_file=directory / "prefect-server.json",
    )


def mlflow_spec(
    directory: Path, port: int, store: str, *, host: str = HOST, options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> ServerSpec:
    """How to run an MLflow server on ``store``, with its log in ``directory``."""
    return ServerSpec(
        name="MLflow server",
        command=[
            sys.executable, "-m", "mlflow", "server", "--host", host, "--port", str(port),
            "--workers", "1", "--artifacts-destination", artifact_directory(store).as_uri(),
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
        url=f"http://{host}:{port}",
        host=host,
        port=port,
        health_path="/health",
        log_file=directory / "mlflow-server.log",
        record_file=directory / "mlflow-server.json",
    )


def home_in(directory: Path) -> Path:
    """Prefect's home of a server in ``directory``."""
    return directory.resolve() / "prefect-home"
