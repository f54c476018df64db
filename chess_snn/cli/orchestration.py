"""The one door from the command line to Prefect, Dask and MLflow, which are an extra."""

import importlib
import os
from types import ModuleType

from chess_snn.errors import UsageError

_ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    # Without a server a client must fail, not start one of its own that is never stopped.
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # Our own progress is on the terminal; Prefect's lines are in its UI, and an error that ends
    # the campaign reaches the terminal as the error it is.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
}
"""Read when the libraries are imported; what the user has set wins."""


def load_flows(module: str) -> ModuleType:
    """The module ``flows.<module>``; it takes seconds to load, so only commands that need it ask.

    Raises:
        UsageError: the extra ``orchestration`` is not installed.
    """
    return _load(f"flows.{module}", "orchestration")


def load_cluster(module: str) -> ModuleType:
    """The module ``tasks.cluster.<module>``, for which Dask is enough.

    Raises:
        UsageError: the extra ``worker`` is not installed.
    """
    return _load(f"tasks.cluster.{module}", "worker")


def load_tracking(module: str = "campaign_run") -> ModuleType:
    """The module ``tasks.tracking.<module>``; MLflow takes over a second to load.

    Raises:
        UsageError: the extra ``orchestration`` is not installed.
    """
    return _load(f"tasks.tracking.{module}", "orchestration")


def tracking_store() -> str | None:
    """Where MLflow's store is; None without one, or without MLflow, which is not loaded here."""
    uri: str | None = _load("tasks.tracking", "orchestration").existing_store()
    return uri


def _load(module: str, extra: str) -> ModuleType:
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"this command needs {error.name}; install it with: pip install 'chess-snn[{extra}]'"
        ) from error
