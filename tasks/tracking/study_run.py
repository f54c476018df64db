"""One MLflow run a study: its request, the figures of each network, its table and its plots."""

import json
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
from mlflow.utils.validation import MAX_METRICS_PER_BATCH, MAX_PARAMS_TAGS_PER_BATCH

from chess_snn.data import json_digest
from chess_snn.tasks.tracking import EXPERIMENT
from chess_snn.tasks.tracking.recorder import legal_name, param_text
from chess_snn.tasks.tracking.store import open_store, tracking_errors
from chess_snn.types import Json

STUDY_ID_TAG: Final = "chess_snn.study_id"
RESULTS_TAG: Final = "chess_snn.study_digest"
"""Digest of the results that are recorded."""
_ROW: Final = (
    "elo", "elo_low", "elo_high", "spikes_per_evaluation", "evaluations_per_move",
    "ms_per_move_measured", "ms_per_evaluation_measured",
)
_MATCH: Final = ("score", "score_low", "score_high", "likelihood_of_superiority")


def record_study(tracking_uri: str, body: Json, files: Sequence[Path]) -> str:
    """Record a study's results, unless they are recorded, and return the id of its run.

    Args:
        tracking_uri: of the store, which is created where it is missing.
        body: see :func:`chess_snn.study.results.results_json`.
        files: the artifacts, which lie in the study's folder.

    Raises:
        TrackingError: the store is away or refuses.
    """
    digest = json_digest(body)
    with tracking_errors(tracking_uri):
        client = open_store(tracking_uri)
        run = _find_run(client, body["id"]) or _create_run(client, body, files[0].parent.name)
        run_id: str = run.info.run_id
        if run.data.tags.get(RESULTS_TAG) == digest:
            return run_id
        parameters = [
            Param(name, param_text(value)) for name, value in _parameters(body)
            if name not in run.data.params
        ]
        for batch in chunk_list(parameters, MAX_PARAMS_TAGS_PER_BATCH):
            client.log_batch(run_id, params=batch)
        now_ms = int(time.time() * 1000)
        metrics = [
            Metric(legal_name(name), float(value), now_ms, 0) for name, value in study_metrics(body)
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


def study_metrics(body: Json) -> Iterator[tuple[str, float | None]]:
    """The metrics of a study by name: ``ticks-4/elo_at_64``, ``ticks-4/elo_equal_time``.

    Energies of a move and of an evaluation have the name of their model.
    """
    for network in body["networks"]:
        for name, value in network["losses"].items():
            yield f"{network['name']}/{name}", value
    for row in body["rows"]:
        figures = {name: row[name] for name in _ROW} | {
            f"{model}_model_pj_per_{unit}": next(iter(row[f"{model}_model_pj"][unit].values()))
            for model in body["energy_models"] for unit in ("position", "move")
        }
        for suffix in _suffixes(row):
            for name, value in figures.items():
                yield f"{row['variant']}/{name}_{suffix}", value
            if suffix == "equal_time":
                yield f"{row['variant']}/simulations_equal_time", row["simulations"]
    for match in body["matches"]:
        for suffix in _suffixes(match):
            for name in _MATCH:
                yield f"{match['variant']}/match_{name}_{suffix}", match[name]


def _suffixes(row: Json) -> list[str]:
    return [f"at_{row['simulations']}"] * row["is_budget"] + ["equal_time"] * row["is_equal_time"]


def _parameters(body: Json) -> Iterator[tuple[str, object]]:
    request = dict(body["request"])
    for name, overrides in request.pop("variants").items():
        yield f"variant.{name}", ", ".join(overrides) or "none"
    yield from request.items()
    yield from (("positions", body["games"]["positions"]), ("version", body["version"]))
    yield "energy_models", json.dumps(body["energy_models"])


def _find_run(client: MlflowClient, study_id: str) -> Run | None:
    experiment = client.get_experiment_by_name(EXPERIMENT)
    found = client.search_runs(
        [experiment.experiment_id], f"tags.`{STUDY_ID_TAG}` = '{study_id}'", max_results=1
    )
    return found[0] if found else None


def _create_run(client: MlflowClient, body: Json, name: str) -> Run:
    return client.create_run(
        client.get_experiment_by_name(EXPERIMENT).experiment_id,
        tags={STUDY_ID_TAG: body["id"]}, run_name=name,
    )
