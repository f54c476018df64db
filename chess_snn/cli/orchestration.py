"""The one door from the command line to Prefect, Dask and MLflow, which are an extra."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from chess_snn.cli.console import print_message, print_notice
from chess_snn.errors import ChessSnnError, UsageError

if TYPE_CHECKING:
    from chess_snn.types import Json

_ENVIRONMENT = {
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


def load_flows(module: str) -> ModuleType:
    """The module ``chess_snn.flows.<module>``; it takes seconds to load.

    Raises:
        UsageError: the extra ``orchestration`` is not installed.
    """
    return _load(f"chess_snn.flows.{module}", "orchestration")


def load_cluster(module: str) -> ModuleType:
    """The module ``chess_snn.tasks.cluster.<module>``, for which Dask is enough.

    Raises:
        UsageError: the extra ``worker`` is not installed.
    """
    return _load(f"chess_snn.tasks.cluster.{module}", "worker")


def load_web(module: str) -> ModuleType:
    """The module ``chess_snn.web.<module>``.

    Raises:
        UsageError: the extra ``web`` is not installed.
    """
    return _load(f"chess_snn.web.{module}", "web")


def fetch_model(address: str) -> Path:
    """The folder of a registered model; ``chess_snn.tasks.tracking.fetching`` finds it."""
    folder: Path = _load("chess_snn.tasks.tracking.fetching", "orchestration").fetch_model(address)
    return folder


def registered_versions(game: str, name: str | None) -> list[str]:
    """Addresses of the registered model ``name``, or else of that of all campaigns of ``game``.

    Those with an alias come first, then the versions, newest first.
    """
    wanted = name or _load("chess_snn.tasks.tracking", "orchestration").model_name(game)
    found = [
        version for version in registered_models()
        if version["address"].startswith(f"models:/{wanted}/")
    ]
    aliases = sorted(alias for version in found for alias in version["aliases"])
    return [
        *(f"models:/{wanted}@{alias}" for alias in aliases),
        *(version["address"] for version in found),
    ]


def registered_models() -> list[Json]:
    """List MLflow's registry; empty without MLflow, or without a store.

    See :func:`chess_snn.tasks.tracking.fetching.registered_models`.
    """
    store = existing_store()
    if store is None:
        return []
    registry = _load("chess_snn.tasks.tracking.fetching", "orchestration")  # MLflow takes a second
    models: list[Json] = registry.registered_models(store)
    return models


def ask_mlflow(function: str, *arguments: object, problem: str, done: str = "") -> Any:
    """Call ``<function>`` of ``chess_snn.tasks.tracking.campaign_run`` with MLflow's store.

    Prints ``done`` afterwards. Returns None where MLflow has no store, and where the call fails:
    then a line on standard error says so, which begins with ``problem``.
    """
    try:
        store = _load("chess_snn.tasks.tracking", "orchestration").existing_store()
        if store is None:
            return None
        module = _load("chess_snn.tasks.tracking.campaign_run", "orchestration")
        found = getattr(module, function)(store, *arguments)
    except ChessSnnError as error:
        print_notice(f"{problem}: {error}")
        return None
    if done:
        print_message(done)
    return found


def existing_store() -> str | None:
    """The address of MLflow's store; None without MLflow, or if its file is missing."""
    found: str | None = _load("chess_snn.tasks.tracking", "orchestration").existing_store()
    return found


def record_study(body: Json, files: Sequence[Path]) -> None:
    """Record a study as one run in MLflow's store; without the extra ``orchestration``, nothing.

    Where the store is away, a line on standard error says so.
    """
    if find_spec("mlflow") is None:
        return
    try:
        module = _load("chess_snn.tasks.tracking.study_run", "orchestration")
        tracking = _load("chess_snn.tasks.tracking", "orchestration")
        run_id = module.record_study(tracking.tracking_uri(), body, files)
    except ChessSnnError as error:
        print_notice(f"MLflow does not have the study; the same command records it: {error}")
    else:
        print_message(f"MLflow: run {run_id}")


def _load(module: str, extra: str) -> ModuleType:
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"this command needs {error.name}; install it with: pip install 'chess-snn[{extra}]'"
        ) from error
