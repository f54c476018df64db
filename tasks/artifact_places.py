"""Places of the artifacts of an MLflow store without a server, for every client of MLflow.

A store of ours is a SQLite database and beside it the folder of artifacts, which the database names
relative to that folder: ``mlflow-artifacts:/…``. MLflow itself resolves such an address through a
tracking server alone. It loads :func:`artifact_repository` in every process (entry point
``mlflow.artifact_repository``), and so it reads the same models with the server, without it, behind
another port, and after both were moved to another place.

Every process that uses MLflow imports this module, so it is quick to import.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from mlflow.store.artifact.artifact_repo import ArtifactRepository

RELATIVE: Final = "mlflow-artifacts"
"""Scheme of addresses that are relative to a store's folder of artifacts."""

ARTIFACTS: Final = "mlartifacts"
"""Name of a store's folder of artifacts."""

_SQLITE: Final = "sqlite:///"


def sqlite_uri(database: Path) -> str:
    """URI of the store whose database is the file ``database``."""
    return f"{_SQLITE}{database.resolve()}"


def database_file(uri: str) -> Path | None:
    """The file of a SQLite store; None where ``uri`` names another kind."""
    return Path(uri.removeprefix(_SQLITE)) if uri.startswith(_SQLITE) else None


def artifacts_beside(database: Path) -> Path:
    """The folder of artifacts of the store whose database is the file ``database``."""
    return database.resolve().parent / ARTIFACTS


def artifact_repository(
    artifact_uri: str, tracking_uri: str | None = None, registry_uri: str | None = None
) -> "ArtifactRepository":
    """MLflow's access to the relative address ``artifact_uri`` of a store.

    Args:
        artifact_uri: begins with :data:`RELATIVE`.
        tracking_uri: of the store; by default the one that the process uses.
        registry_uri: of the registry; by default the same.
    """
    # MLflow is imported already where it calls this.
    from mlflow import get_tracking_uri  # noqa: PLC0415
    from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository  # noqa: PLC0415
    from mlflow.store.artifact.mlflow_artifacts_repo import (  # noqa: PLC0415
        MlflowArtifactsRepository,
    )

    database = database_file(tracking_uri or get_tracking_uri())
    if database is None:
        return MlflowArtifactsRepository(artifact_uri, tracking_uri, registry_uri)
    place = artifacts_beside(database) / unquote(urlsplit(artifact_uri).path).lstrip("/")
    return LocalArtifactRepository(place.as_uri(), tracking_uri, registry_uri)
