"""The tracking store: created and migrated by one process at a time, and opened."""

import fcntl
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from mlflow.entities import Run
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from sqlalchemy.exc import SQLAlchemyError

from chess_snn.campaign.store.naming import services_directory
from tasks.tracking import (
    EXPERIMENT,
    EXPERIMENT_TAGS,
    RELATIVE_ARTIFACTS,
    TrackingError,
    artifact_directory,
    artifact_folder,
    database_file,
    is_server,
    local_tracking_uri,
)

SERVER_PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}
"""A server that is away costs about 5 s a call with these, and over two minutes without."""

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


def store_files(uri: str, artifact_uri: str, folder: Path, subfolder: str = "") -> bool:
    """Copy the files of ``folder`` to ``artifact_uri``; False where MLflow's client must do it."""
    target = artifact_folder(uri, artifact_uri)
    if target is None:
        return False
    shutil.copytree(folder, target / subfolder, dirs_exist_ok=True)
    return True


def store_run_files(
    client: MlflowClient, uri: str, run: Run, folder: Path, subfolder: str | None = None
) -> None:
    """Copy the files of ``folder`` to the artifacts of ``run``, in place of earlier ones."""
    if not store_files(uri, run.info.artifact_uri, folder, subfolder or ""):
        client.log_artifacts(run.info.run_id, str(folder), subfolder)


def _artifact_location(uri: str) -> str | None:
    if is_server(uri):
        return None  # it has a place of its own
    if uri == local_tracking_uri(services_directory()):
        return f"{RELATIVE_ARTIFACTS}{EXPERIMENT}"
    return artifact_directory(uri).as_uri()


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
        reason = str(error).partition("\n")[0]
        raise TrackingError(
            f"the tracking store {uri} failed: {reason}; see that it is there and can be written, "
            "what is missing in it can be recorded later"
        ) from error
