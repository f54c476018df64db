"""Where a campaign's tracking data lies."""

import os
from pathlib import Path

URI_VARIABLE = "MLFLOW_TRACKING_URI"
"""Names a store, instead of the campaign's own."""


def tracking_uri_of(directory: Path) -> str:
    """URI of the store somebody named, or else of SQLite in ``directory``; it may not exist."""
    return os.environ.get(URI_VARIABLE) or local_tracking_uri(directory)


def database_file(directory: Path) -> Path:
    """The SQLite store in ``directory``."""
    return directory.resolve() / "mlflow.db"


def local_tracking_uri(directory: Path) -> str:
    """URI of that store."""
    return f"sqlite:///{database_file(directory)}"


def existing_store(directory: Path) -> str | None:
    """URI of the store that a campaign with its services in ``directory`` has; None without one.

    A server named by ``MLFLOW_TRACKING_URI`` is taken to be there.
    """
    if given := os.environ.get(URI_VARIABLE):
        return given
    return local_tracking_uri(directory) if database_file(directory).is_file() else None


def artifact_directory(directory: Path) -> Path:
    """Folder of the stored models beside that store."""
    return directory.resolve() / "mlartifacts"


def is_server(tracking_uri: str) -> bool:
    """Whether ``tracking_uri`` is the address of a server rather than a database."""
    return tracking_uri.startswith(("http://", "https://"))
