"""The one door from the command line to Prefect, Dask and MLflow, which are an extra."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from chess_snn.cli.console import print_message, print_notice
from chess_snn.errors import ChessSnnError
from chess_snn.extras import load_extra

if TYPE_CHECKING:
    from chess_snn.types import Json


def load_flows(module: str) -> ModuleType:
    """The module ``chess_snn.flows.<module>``; it takes seconds to load.

    Raises:
        ExtraError: the extra ``orchestration`` is not installed.
    """
    return load_extra(f"chess_snn.flows.{module}", "orchestration")


def load_cluster(module: str) -> ModuleType:
    """The module ``chess_snn.tasks.cluster.<module>``, for which Dask is enough.

    Raises:
        ExtraError: the extra ``worker`` is not installed.
    """
    return load_extra(f"chess_snn.tasks.cluster.{module}", "worker")


def load_web(module: str) -> ModuleType:
    """The module ``chess_snn.web.<module>``.

    Raises:
        ExtraError: the extra ``web`` is not installed.
    """
    return load_extra(f"chess_snn.web.{module}", "web")


def registered_versions(game: str, name: str | None) -> list[str]:
    """Addresses of the registered model ``name``, or else of that of all campaigns of ``game``.

    Those with an alias come first, then the versions, newest first.
    """
    wanted = name or load_extra("chess_snn.tasks.tracking", "orchestration").model_name(game)
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
    # MLflow takes a second.
    registry = load_extra("chess_snn.tasks.tracking.fetching", "orchestration")
    models: list[Json] = registry.registered_models(store)
    return models


def ask_mlflow(function: str, *arguments: object, problem: str, done: str = "") -> Any:
    """Call ``<function>`` of ``chess_snn.tasks.tracking.campaign_run`` with MLflow's store.

    Prints ``done`` afterwards. Returns None where MLflow has no store, and where the call fails:
    then a line on standard error says so, which begins with ``problem``.
    """
    try:
        store = load_extra("chess_snn.tasks.tracking", "orchestration").existing_store()
        if store is None:
            return None
        module = load_extra("chess_snn.tasks.tracking.campaign_run", "orchestration")
        found = getattr(module, function)(store, *arguments)
    except ChessSnnError as error:
        print_notice(f"{problem}: {error}")
        return None
    if done:
        print_message(done)
    return found


def existing_store() -> str | None:
    """The address of MLflow's store; None without MLflow, or if its file is missing."""
    found: str | None = load_extra("chess_snn.tasks.tracking", "orchestration").existing_store()
    return found


def record_experiment(body: Json, files: Sequence[Path]) -> None:
    """Record an experiment in MLflow's store; without the extra ``orchestration``, nothing.

    Where the store is away, a line on standard error says so.
    """
    if find_spec("mlflow") is None:
        return
    try:
        module = load_extra("chess_snn.tasks.tracking.experiment_run", "orchestration")
        tracking = load_extra("chess_snn.tasks.tracking", "orchestration")
        run_id = module.record_experiment(tracking.tracking_uri(), body, files)
    except ChessSnnError as error:
        print_notice(f"MLflow does not have the experiment; the same command records it: {error}")
    else:
        print_message(f"MLflow: run {run_id}")
