"""The tracking store: found, and created and migrated before any other process opens it."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from sqlalchemy.exc import SQLAlchemyError

from tasks.tracking.facts import EXPERIMENT, TrackingError
from tasks.tracking.places import (
    artifact_directory,
    database_file,
    is_server,
    local_tracking_uri,
    tracking_uri_of,
)

SERVER_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}
"""A server that is away costs about 5 s a call with these, and over two minutes without."""


def prepare_store(directory: Path, tracking_uri: str | None = None) -> str:
    """Make the tracking store ready, where it is not, and return its URI.

    The store is the one at ``tracking_uri``, or else that of
    :func:`tasks.tracking.places.tracking_uri_of`; a database has its artifacts in ``directory``.
    Call this in one process: several that create or migrate one SQLite file at the same time crash
    each other.

    Raises:
        TrackingError: the store cannot be reached or opened.
    """
    uri = tracking_uri or tracking_uri_of(directory)
    be_patient(uri)
    with tracking_errors(uri):
        if uri == local_tracking_uri(directory):
            _check_database(directory)
        client = MlflowClient(tracking_uri=uri, registry_uri=uri)
        if client.get_experiment_by_name(EXPERIMENT) is None:
            # A server has a place of its own for artifacts.
            location = None if is_server(uri) else artifact_directory(directory).as_uri()
            client.create_experiment(EXPERIMENT, artifact_location=location)
    return uri


def be_patient(uri: str) -> None:
    """Set how long is waited for a server that is away; before the first call to it."""
    if is_server(uri):
        for variable, value in SERVER_PATIENCE.items():
            os.environ.setdefault(variable, value)


def _check_database(directory: Path) -> None:
    """Open the SQLite file at once: MLflow tries for minutes before it says that it cannot."""
    directory.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(database_file(directory))) as database:
        database.execute("PRAGMA schema_version")


@contextmanager
def tracking_errors(uri: str) -> Iterator[None]:
    """Turn what MLflow raises about the store at ``uri`` into TrackingError."""
    try:
        yield
    except (MlflowException, SQLAlchemyError, sqlite3.Error, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise TrackingError(
            f"the tracking store {uri} failed: {reason}; see that it is there and can be written, "
            "what is missing in it can be recorded later"
        ) from error
