"""The one door to what the extras install: Prefect, Dask and MLflow, pandas, the page, PettingZoo.

Modules that need them are named as text here, so that the library can be used without them.
"""

import importlib
import os
from pathlib import Path
from types import ModuleType
from typing import Final

from chess_snn.errors import ExtraError

_ENVIRONMENT: Final = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    # Without a server a client must fail, not start one of its own that is never stopped.
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # Our own progress is on the terminal; Prefect's lines are in its UI, and an error that ends
    # the campaign reaches the terminal as the error it is.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    # While its server is away, it would print every event that it cannot send.
    "PREFECT_INTERNAL_LOGGING_LEVEL": "CRITICAL",
}
"""Read when the libraries are imported; what the user has set wins."""


def load_extra(module: str, extra: str) -> ModuleType:
    """Import ``module``, which needs what ``chess-snn[extra]`` installs.

    Raises:
        ExtraError: the extra is not installed.
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ExtraError(
            f"this needs {error.name}; install it with: pip install 'chess-snn[{extra}]'"
        ) from error


def fetch_model(address: str) -> Path:
    """The folder of a registered model; see :func:`chess_snn.tasks.tracking.fetching.fetch_model`.

    Raises:
        ExtraError: the extra ``orchestration`` is not installed.
    """
    registry = load_extra("chess_snn.tasks.tracking.fetching", "orchestration")
    folder: Path = registry.fetch_model(address)
    return folder
