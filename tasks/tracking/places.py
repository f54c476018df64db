"""Where MLflow's store is: one for all campaigns of a home, or the one that the user names.

The store of a home is ``$CHESS_SNN_HOME/services``, by default ``~/chess-snn/services``: a SQLite
database and beside it the folder of artifacts. The database names artifacts relative to that folder
(``mlflow-artifacts:/…``), so that a server on this store can hand them to other machines.
"""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from chess_snn.campaign.store.naming import services_directory

URI_VARIABLE = "MLFLOW_TRACKING_URI"
"""Names a store to use instead of the home's."""

RELATIVE_ARTIFACTS = "mlflow-artifacts:/"
"""Scheme of places that are relative to a store's folder of artifacts."""

_SQLITE = "sqlite:///"


def tracking_uri() -> str:
    """URI of the store of ``MLFLOW_TRACKING_URI``, or else of the home's; it may not exist."""
    return os.environ.get(URI_VARIABLE) or local_tracking_uri(services_directory())


def local_tracking_uri(directory: Path) -> str:
    """URI of the SQLite store in ``directory``."""
    return f"{_SQLITE}{directory.resolve() / 'mlflow.db'}"


def database_file(uri: str) -> Path | None:
    """The file of a SQLite store; None where ``uri`` names another kind."""
    return Path(uri.removeprefix(_SQLITE)) if uri.startswith(_SQLITE) else None


def existing_store() -> str | None:
    """:func:`tracking_uri`; None where that is a SQLite file that is not there."""
    uri = tracking_uri()
    database = database_file(uri)
    return None if database is not None and not database.is_file() else uri


def artifact_directory(uri: str) -> Path:
    """Folder of the artifacts of a store without a server: beside its SQLite file."""
    database = database_file(uri)
    return (services_directory() if database is None else database.resolve().parent) / "mlartifacts"


def artifact_folder(uri: str, artifact_uri: str) -> Path | None:
    """The folder that ``artifact_uri`` names in a store without a server.

    None where MLflow's own client finds it: behind a server, or at an absolute place.
    """
    if is_server(uri) or not artifact_uri.startswith(RELATIVE_ARTIFACTS):
        return None
    return artifact_directory(uri) / unquote(urlsplit(artifact_uri).path).lstrip("/")


def is_server(uri: str) -> bool:
    """Whether ``uri`` is the address of a server rather than a database."""
    return uri.startswith(("http://", "https://"))
