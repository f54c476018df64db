"""One MLflow run an experiment: its file, verdicts and page; the runs of its campaigns below it."""

import math
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from mlflow.entities import Metric, Param, Run
from mlflow.tracking import MlflowClient
from mlflow.utils import chunk_list
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID
from mlflow.utils.validation import MAX_METRICS_PER_BATCH, MAX_PARAMS_TAGS_PER_BATCH

from chess_snn.campaign.configuration.loading import flat_values
from chess_snn.data import json_digest
from chess_snn.tasks.tracking import EXPERIMENT
from chess_snn.tasks.tracking.campaign_run import runs_of
from chess_snn.tasks.tracking.recorder import legal_name, param_text
from chess_snn.tasks.tracking.store import open_store, tracking_errors
from chess_snn.types import Json

ID_TAG: Final = "chess_snn.experiment_id"
"""Id of the experiment."""
RESULTS_TAG: Final = "chess_snn.experiment_results"
"""Digest of the results that are recorded."""
_ROW: Final = ("elo", "elo_low", "elo_high", "spikes_per_evaluation", "ms_per_move_measured")
_VERDICT: Final = ("mean", "low", "high", "num_seeds")


def record_experiment(tracking_uri: str, body: Json, files: Sequence[Path]) -> str:
    """Record an experiment's results, unless they are recorded, and return the id of its run.

    Args:
        tracking_uri: of the store, which is created where it is missing.
        body: see :func:`chess_snn.experiment.results.results_json`.
        files: the artifacts, which lie in the experiment's folder.

    Raises:
        TrackingError: the store is away or refuses.
    """
    digest = json_digest(body)
    with tracking_errors(tracking_uri):
        client = open_store(tracking_uri)
        run = _find_run(client, body["id"]) or _create_run(client, body)
        run_id: str = run.info.run_id
        for campaign_id in filter(None, (each["campaign_id"] for each in body["runs"])):
            for child in runs_of(client, campaign_id):
                client.set_tag(child.info.run_id, MLFLOW_PARENT_RUN_ID, run_id)
        if run.data.tags.get(RESULTS_TAG) == digest:
            return run_id
        parameters = [
            Param(name, param_text(value)) for name, value in flat_values(body["file"]).items()
            if name not in run.data.params
        ]
        for batch in chunk_list(parameters, MAX_PARAMS_TAGS_PER_BATCH):
            client.log_batch(run_id, params=batch)
        now_ms = int(time.time() * 1000)
        metrics = [
            Metric(legal_name(name), float(value), now_ms, 0)
            for name, value in experiment_metrics(body)
            if value is not None and math.isfinite(value)
        ]
        for batch in chunk_list(metrics, MAX_METRICS_PER_BATCH):
            client.log_batch(run_id, metrics=batch)
        with tempfile.TemporaryDirectory() as scratch:
            for path in files:
                shutil.copy(path, scratch)
            client.log_artifacts(run_id, scratch)
        client.set_tag(run_id, RESULTS_TAG, digest)
        client.set_terminated(run_id, "FINISHED")
    return run_id


def experiment_metrics(body: Json) -> Iterator[tuple[str, float | None]]:
    """The metrics by name: ``small/mean_at_64``, ``small-1/elo_at_64``, ``…_equal_time``."""
    for verdict in body["verdicts"]:
        for name in _VERDICT:
            yield f"{verdict['variant']}/{name}_{_suffix(verdict)}", verdict[name]
    for row in body["rows"]:
        for name in _ROW:
            yield f"{row['variant']}-{row['seed']}/{name}_{_suffix(row)}", row.get(name)


def _suffix(row: Json) -> str:
    return "equal_time" if row["is_equal_time"] else f"at_{row['simulations']}"


def _find_run(client: MlflowClient, experiment_id: str) -> Run | None:
    experiment = client.get_experiment_by_name(EXPERIMENT)
    found = client.search_runs(
        [experiment.experiment_id], f"tags.`{ID_TAG}` = '{experiment_id}'", max_results=1
    )
    return found[0] if found else None


def _create_run(client: MlflowClient, body: Json) -> Run:
    return client.create_run(
        client.get_experiment_by_name(EXPERIMENT).experiment_id,
        tags={ID_TAG: body["id"]}, run_name=body["name"],
    )
