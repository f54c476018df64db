"""What Prefect and MLflow show of a finished campaign, once both are back."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from mlflow.tracking import MlflowClient

from chess_snn.campaign import CampaignFolder, read_receipts
from tasks.tracking import EXPERIMENT, MODEL_NAME

from .checks import Check

PREFECT_DATABASE = "services/prefect.db"
OPEN_STATES = ("PENDING", "RUNNING", "CANCELLING")
"""Of runs that a living process should be at."""

MARKER = "iteration"
"""The metric that each recorded iteration has."""
CAMPAIGN_TAG = "chess_snn.campaign_id"


def audit_views(directory: Path, tracking_uri: str) -> list[Check]:
    """Whether both tell what the folder does; neither a server nor a run of Prefect is needed.

    Args:
        directory: the campaign's folder.
        tracking_uri: of the MLflow server it logged to, which answers.
    """
    folder = CampaignFolder.open(directory)
    return [
        Check("Prefect has no run left open", tuple(_open_runs(directory)), "its database"),
        Check("MLflow has everything once", tuple(_mlflow_faults(folder, tracking_uri)),
              f"{len(read_receipts(folder))} iterations"),
    ]


def _open_runs(directory: Path) -> Iterator[str]:
    """From the database itself: its server is gone with the campaign."""
    address = f"file:{directory / PREFECT_DATABASE}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as database:
        for table in ("flow_run", "task_run"):
            rows = database.execute(f"SELECT name, state_type FROM {table}").fetchall()
            if not rows:
                yield f"no {table} at all"
            yield from (f"{table} {name} is {state}" for name, state in rows
                        if state in OPEN_STATES)


def _mlflow_faults(folder: CampaignFolder, tracking_uri: str) -> Iterator[str]:
    client = MlflowClient(tracking_uri=tracking_uri, registry_uri=tracking_uri)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    runs = client.search_runs(
        [experiment.experiment_id], f"tags.`{CAMPAIGN_TAG}` = '{folder.campaign_id}'"
    )
    if len(runs) != 1:
        yield f"{len(runs)} runs of the campaign"
        return
    (run,) = runs
    if run.info.status != "FINISHED":
        yield f"the run is {run.info.status}"
    iterations = list(range(len(read_receipts(folder))))
    for metric in sorted(run.data.metrics):
        history = client.get_metric_history(run.info.run_id, metric)
        steps = [point.step for point in history]
        yield from (f"{metric} has step {step} {times} times"
                    for step, times in Counter(steps).items() if times > 1)
        if metric == MARKER and sorted(steps) != iterations:
            yield f"the recorded iterations are {sorted(steps)}"
    if MARKER not in run.data.metrics:
        yield "no iteration is recorded"
    versions = client.search_model_versions(
        f"name = '{MODEL_NAME}' and tags.campaign_id = '{folder.campaign_id}'"
    )
    generations = sorted(int(version.tags["generation"]) for version in versions)
    if generations != [iteration + 1 for iteration in iterations]:
        yield f"the registered generations are {generations}"
