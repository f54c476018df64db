"""The tracking store: created and migrated by one process at a time, and opened."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from mlflow.exceptions import MlflowException
from mlflow.store.artifact.artifact_repository_registry import _artifact_repository_registry
from mlflow.tracking import MlflowClient
from sqlalchemy.exc import SQLAlchemyError

from chess_snn.tasks.artifact_places import RELATIVE, artifact_repository, database_file
from chess_snn.tasks.tracking import (
    EXPERIMENT,
    EXPERIMENT_TAGS,
    URI_VARIABLE,
    TrackingError,
    artifact_directory,
    is_server,
)

SERVER_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}
"""A server that is away costs about 5 s a call with these, and over two minutes without."""

# A clone that is not installed has no entry points.
_artifact_repository_registry.register(RELATIVE, artifact_repository)

_OWNER_ONLY = 0o700

_LOCK_PATIENCE_S = 60.0
"""Creating a store takes 2 s on a quick machine."""


def open_store(uri: str) -> MlflowClient:
    """A client of the store at ``uri``, which has the experiment.

    Several processes that create one SQLite file at the same time crash each other, so they do it
    one after the other.
    """
    for variable, value in SERVER_PATIENCE.items() if is_server(uri) else ():
        os.environ.setdefault(variable, value)
    with _only_process(database_file(uri)):
        client = MlflowClient(tracking_uri=uri, registry_uri=uri)
        experiment = client.get_experiment_by_name(EXPERIMENT)
        if experiment is None:
            client.create_experiment(
                EXPERIMENT, artifact_location=_artifact_location(uri),
                tags=EXPERIMENT_TAGS,
            )
        elif not EXPERIMENT_TAGS.keys() <= experiment.tags.keys():
            for name, value in EXPERIMENT_TAGS.items():
                client.set_experiment_tag(experiment.experiment_id, name, value)
    return client


def _artifact_location(uri: str) -> str | None:
    """The place of a new experiment's artifacts; None leaves it to the server."""
    if is_server(uri):
        return None
    if database_file(uri) is None:
        return artifact_directory(uri).as_uri()
    return f"{RELATIVE}:/{EXPERIMENT}"


@contextmanager
def _only_process(database: Path | None) -> Iterator[None]:
    """Be the only process that creates or migrates ``database``; it can be opened at once."""
    if database is None:
        yield
        return
    database.parent.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
    descriptor = os.open(database.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor)
        # MLflow tries for minutes before it says that it cannot open a file.
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA schema_version")
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Raise BlockingIOError if another process holds the lock for too long."""
    deadline = time.monotonic() + _LOCK_PATIENCE_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)


@contextmanager
def tracking_errors(uri: str) -> Iterator[None]:
    """Turn what MLflow raises about the store at ``uri`` into TrackingError."""
    try:
        yield
    except (MlflowException, SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise TrackingError(f"the tracking store {uri} {_fault(uri, error)}") from error


def _fault(uri: str, error: Exception) -> str:
    """Say what is wrong with the store at ``uri``, and how to go on."""
    if is_server(uri) and isinstance(error.__context__, OSError):
        return (
            f"does not answer; see that its server runs (chess-snn up), or unset {URI_VARIABLE} to "
            "use the store of this home"
        )
    reason = str(error).partition("\n")[0]
    if "database is locked" in reason:
        return "is locked by another process; try again once that has ended"
    return f"failed: {reason}; see that it is there and can be written"
