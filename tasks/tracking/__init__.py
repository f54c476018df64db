"""A campaign's curves and model versions in MLflow; this module says where its store is.

MLflow is a view on the campaign folder. Whatever is recorded can be recorded again from receipts
and checkpoints, any number of times, without a duplicate; so a store that is away delays its curves
and nothing else: catch :class:`TrackingError`, go on, and record what is missing later. MLflow
takes over a second to import, and is not imported here.

There is one store for all campaigns of a home, ``$CHESS_SNN_HOME/services``, by default
``~/chess-snn/services``, or the one that the user names: a SQLite database and beside it the folder
of artifacts. The database names artifacts relative to that folder
(:mod:`chess_snn.tasks.artifact_places`), so that a server on this store can hand them to other
machines, and both may be moved together.
"""

import os
from importlib.util import find_spec
from pathlib import Path

from chess_snn.campaign.configuration.settings import RunSettings
from chess_snn.campaign.store.naming import services_directory
from chess_snn.errors import ChessSnnError
from chess_snn.tasks.artifact_places import ARTIFACTS, artifacts_beside, database_file, sqlite_uri

# MLflow reads the first two when it is imported. The bars would write over our own progress.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

EXPERIMENT = "chess-snn"
"""The MLflow experiment that holds one run a campaign."""

EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}
"""Tags of the experiment: it holds training runs, not LLM traces."""

MODEL_NAME = "chess-snn"
"""The registered model whose versions are the checkpoints of all campaigns of chess."""

PAGES_OF_TRAINING = "workflowType=machine_learning"
"""Query of MLflow's pages; without it a browser that is new to MLflow shows those for LLM traces,
whatever the experiment's tags say."""

CANDIDATE = "candidate"
"""Alias of the newest version."""
CHAMPION = "champion"
"""Alias of the strongest champion of all campaigns that share a store, on their common scale; and
the beginning of each campaign's own alias."""
_ID_DIGITS = 8
"""Digits of a campaign's id, enough to tell those of one store apart."""

URI_VARIABLE = "MLFLOW_TRACKING_URI"
"""Names a store to use instead of the home's."""


def model_name(game: str) -> str:
    """The registered model of all campaigns of ``game``: ``chess-snn``, or ``chess-snn-2048``."""
    return MODEL_NAME if game == RunSettings().game else f"{MODEL_NAME}-{game}"


def experiment_pages(server: str, experiment_id: str) -> dict[str, str]:
    """Addresses on the MLflow server at ``server``: the runs of the experiment, and all models."""
    return {
        "runs": f"{server}/#/experiments/{experiment_id}/runs?{PAGES_OF_TRAINING}",
        "models": f"{server}/#/models/{MODEL_NAME}?{PAGES_OF_TRAINING}",
    }


def champion_of_campaign(identity: str) -> str:
    """Alias of the champion of one campaign: ``champion-1a2b3c4d``.

    Args:
        identity: the campaign's id; of a copy beside its original, the id of its run.
    """
    return f"{CHAMPION}-{identity[:_ID_DIGITS]}"


class TrackingError(ChessSnnError):
    """The tracking store is away or refused; the campaign folder has everything to try again."""

    code = "tracking"


def tracking_uri() -> str:
    """URI of the store of ``MLFLOW_TRACKING_URI``, or else of the home's; it may not exist."""
    return os.environ.get(URI_VARIABLE) or local_tracking_uri(services_directory())


def local_tracking_uri(directory: Path) -> str:
    """URI of the SQLite store in ``directory``."""
    return sqlite_uri(directory / "mlflow.db")


def existing_store() -> str | None:
    """:func:`tracking_uri`; None without MLflow, or if that is a SQLite file that is missing."""
    if find_spec("mlflow") is None:
        return None
    uri = tracking_uri()
    database = database_file(uri)
    return None if database is not None and not database.is_file() else uri


def artifact_directory(uri: str) -> Path:
    """Folder of the artifacts of a store without a server: beside its SQLite file."""
    database = database_file(uri)
    return services_directory() / ARTIFACTS if database is None else artifacts_beside(database)


def is_server(uri: str) -> bool:
    """Whether ``uri`` is the address of a server rather than a database."""
    return uri.startswith(("http://", "https://"))
