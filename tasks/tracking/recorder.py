"""One MLflow run a campaign: its configuration, its curves by iteration, its model versions."""

import json
import logging
import math
import posixpath
import re
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, Run, RunStatus, RunTag
from mlflow.utils import chunk_list
from mlflow.utils.mlflow_tags import MLFLOW_DATASET_CONTEXT, MLFLOW_PARENT_RUN_ID, MLFLOW_RUN_NOTE
from mlflow.utils.validation import (
    MAX_ENTITY_KEY_LENGTH,
    MAX_METRICS_PER_BATCH,
    MAX_PARAM_VAL_LENGTH,
    MAX_PARAMS_TAGS_PER_BATCH,
)

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.configuration.loading import flat_values
from chess_snn.campaign.models.versions import NetworkVersion
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.viewing.figure import metric_name
from chess_snn.tasks.tracking import EXPERIMENT
from chess_snn.tasks.tracking.campaign_run import (
    CAMPAIGN_ID_TAG,
    COPY_TAG,
    FOLDER_TAG,
    find_run,
    move_champion,
    place_of,
    runs_of,
)
from chess_snn.tasks.tracking.registry import ModelRegistry
from chess_snn.tasks.tracking.store import open_store, tracking_errors
from chess_snn.training import WEIGHTS
from chess_snn.types import Json

MARKER_METRIC = metric_name("speed", "iteration")
"""Written in the same transaction as an iteration's metrics: its history says which are there."""

SUPERVISED_MARKER_METRIC = metric_name("learning", "pretraining_at_step")
"""The same for each point of supervised training, whose steps are those of the optimiser."""

FINAL_MARKER_METRIC = metric_name("strength", "final_iteration")
"""The same for the matches at the campaign's end."""

ALARMS_TAG = "chess_snn.alarms"
"""Names the alarms of the newest iteration."""

FLOW_RUN_MARK = "Prefect: "
"""Begins the part of a run's description that links to its flow run."""

CUT_MARK = "…[cut]"
"""Ends a configuration value that is longer than MLflow stores."""

_REFUSED_IN_NAMES = re.compile(r"[^/\w.\- :]")
"""Characters that no metric's name has in MLflow; opponents have them, as ``stockfish@1000``."""

DATASET_SOURCE_TYPE = "local"
"""MLflow's name of a place in the file system."""

ORIGIN_TAG = "chess_snn.origin"
"""The network that the campaign started from, or the campaign that it is a fork of."""

PARENT_TAG = "chess_snn.parent_run"
"""Id of the run of the campaign that trained that network."""

logger = logging.getLogger(__name__)


class CampaignTracker:
    """Records a campaign.

    Every method may be repeated, in this process or a later one, without a duplicate. One process
    at a time may track a campaign, as its lock guarantees.

    Raises:
        TrackingError: from every method, where the store is away or refuses.
    """

    def __init__(
        self, tracking_uri: str, folder: CampaignFolder, *,
        configuration: Mapping[str, Any] | None = None,
    ) -> None:
        """Find the folder's run or create it, and set it running.

        A store that is missing is created, and a campaign that was copied gets a run of its own.
        ``configuration``, nested settings, becomes dotted parameters; MLflow does not change those
        that the run has already.
        """
        self._uri = tracking_uri
        self._folder = folder
        with tracking_errors(tracking_uri):
            self._client = open_store(tracking_uri)
            self._run = self._adopted_run() or self._create_run()
            self.run_id: str = self._run.info.run_id
            """MLflow's name of the campaign's run."""
            self._client.update_run(self.run_id, RunStatus.to_string(RunStatus.RUNNING))
            self._log_configuration(configuration or {})

    def link_to_flow_run(self, link: str) -> None:
        """End the run's description with ``link``, Markdown, to the newest flow run in Prefect."""
        with tracking_errors(self._uri):
            note = self._client.get_run(self.run_id).data.tags.get(MLFLOW_RUN_NOTE, "")
            kept = [part for part in note.split("\n\n")
                    if part and not part.startswith(FLOW_RUN_MARK)]
            text = "\n\n".join([*kept, f"{FLOW_RUN_MARK}{link}"])
            self._client.set_tag(self.run_id, MLFLOW_RUN_NOTE, text)

    @cached_property
    def recorded_iterations(self) -> set[int]:
        """The iterations whose metrics are in the store, which is asked once."""
        with tracking_errors(self._uri):
            return self._steps_of(MARKER_METRIC)

    def record_iteration(
        self, iteration: int, metrics: Mapping[str, float],
        version: NetworkVersion | None = None, weights: Path | None = None,
        steps: Sequence[Mapping[str, float]] = (),
    ) -> bool:
        """Record what an iteration committed, unless it is recorded.

        Args:
            iteration: from 0; the step of every metric.
            metrics: by name, stored under its :func:`legal_name`; a value that is not finite is
                left out with a warning.
            version: the network that the iteration made, which becomes a version of the registered
                model and its ``candidate``; what it was trained on becomes an input of the run.
                None where it was removed on purpose.
            weights: file of that network; by default the campaign's.
            steps: figures of its training by optimiser ``step``, stored as ``step_…``.

        Returns:
            Whether the iteration's metrics were new to the store.
        """
        with tracking_errors(self._uri):
            # The version first: the marker below then vouches for both.
            model_id = None if version is None else self._register(version, weights)
            if iteration in self.recorded_iterations:
                return False
            rows = [row for point in steps for row in self._rows(
                int(point["step"]),
                {metric_name("learning", f"step_{name}"): value
                 for name, value in point.items() if name != "step"},
            )]
            rows += self._rows(iteration, metrics, model_id)
            rows += self._rows(iteration, {MARKER_METRIC: iteration}, model_id)
            for batch in chunk_list(rows, MAX_METRICS_PER_BATCH):
                self._client.log_batch(self.run_id, metrics=batch)
        self.recorded_iterations.add(iteration)
        return True

    def _register(self, version: NetworkVersion, weights: Path | None) -> str:
        """The id of the stored model of ``version``."""
        registry = ModelRegistry(
            self._client, self._run, game_of(self._folder), self._folder.config
        )
        weights = weights or self._folder.checkpoint(version.generation) / WEIGHTS
        model_id = registry.add(version, weights)
        if version.window_name is not None:
            self._log_dataset(
                version.window_name, version.window_digest, self._folder.path / "games", {
                    "campaign_id": version.campaign_id, "num_positions": version.window_positions,
                    "num_shards": len(version.window_shards),
                    "shards": list(version.window_shards),
                    "trained_generation": version.generation,
                },
            )
        return model_id

    def record_supervised(self, points: Sequence[Mapping[str, float]], games: Json) -> int:
        """Record training on a dataset, as far as it is not recorded.

        Args:
            points: figures by name, each with its optimiser ``step``.
            games: ``name``, ``digest``, ``path`` and numbers of the games; an input of the run.

        Returns:
            How many of the points were new to the store.
        """
        with tracking_errors(self._uri):
            if not self._steps_of(SUPERVISED_MARKER_METRIC):
                profile = {name: games[name] for name in ("games", "positions")}
                self._log_dataset(
                    games["name"], games["digest"], games["path"], profile, "supervised"
                )
        return self._record_points(SUPERVISED_MARKER_METRIC, {
            int(point["step"]): {
                metric_name("learning", f"pretraining_{name}"): value
                for name, value in point.items() if name != "step"
            }
            for point in points
        })

    def record_final(self, iteration: int, metrics: Mapping[str, float]) -> None:
        """Record the matches after ``iteration``, the last one, unless they are recorded."""
        self._record_points(FINAL_MARKER_METRIC, {iteration: metrics})

    def _record_points(self, marker: str, points: Mapping[int, Mapping[str, float]]) -> int:
        """Record metrics by step, those steps that ``marker`` lacks; how many they were."""
        with tracking_errors(self._uri):
            missing = points.keys() - self._steps_of(marker)
            for step in sorted(missing):
                rows = self._rows(step, {**points[step], marker: step})
                self._client.log_batch(self.run_id, metrics=rows)
        return len(missing)

    def promote(self, generation: int) -> str | None:
        """Make the version of ``generation`` the champion; returns :func:`move_champion`'s line."""
        with tracking_errors(self._uri):
            return move_champion(self._client, self._run, self._folder, generation)

    def tag(self, tags: Mapping[str, str]) -> None:
        """Set tags of the run."""
        with tracking_errors(self._uri):
            self._client.log_batch(
                self.run_id, tags=[RunTag(name, value) for name, value in tags.items()]
            )

    def keep_files(self, folder: Path) -> None:
        """Copy the files of ``folder`` to the artifacts of the run, in place of earlier ones."""
        with tracking_errors(self._uri):
            self._client.log_artifacts(self.run_id, str(folder))

    def close(self, status: str = "FINISHED") -> None:
        """End the run as ``"FINISHED"``, ``"KILLED"`` or ``"FAILED"``."""
        with tracking_errors(self._uri):
            self._client.set_terminated(self.run_id, status)

    def _adopted_run(self) -> Run | None:
        """The folder's run; it knows from now on where the folder is, and its name."""
        folder, run = self._folder, find_run(self._client, self._folder)
        if run is not None and run.data.tags.get(FOLDER_TAG) != place_of(folder):
            for name, value in _folder_tags(folder).items():
                self._client.set_tag(run.info.run_id, name, value)
            self._client.update_run(run.info.run_id, name=folder.name)
        return run

    def _create_run(self) -> Run:
        folder = self._folder
        tags = {CAMPAIGN_ID_TAG: folder.campaign_id, **_folder_tags(folder)}
        for original in runs_of(self._client, folder.campaign_id)[:1]:
            tags[COPY_TAG] = original.info.run_id
            tags[MLFLOW_RUN_NOTE] = (
                f"Recorded from {folder.path}, a copy of the campaign of run "
                f"{original.info.run_name} ({original.info.run_id})."
            )
        return self._client.create_run(
            self._client.get_experiment_by_name(EXPERIMENT).experiment_id,
            tags=tags | self._origin_tags(), run_name=folder.name,
        )

    def _origin_tags(self) -> dict[str, str]:
        """Tags of the campaign's origin; a fork's run stands below that of its parent."""
        origin = self._folder.origin
        if origin is None:
            return {}
        parents = runs_of(self._client, origin.campaign_id) if origin.campaign_id else []
        if not parents:
            return {ORIGIN_TAG: origin.describe()}
        parent: str = parents[0].info.run_id
        link = MLFLOW_PARENT_RUN_ID if origin.forked_at is not None else PARENT_TAG
        return {ORIGIN_TAG: origin.describe(), link: parent}

    def _steps_of(self, marker: str) -> set[int]:
        history = self._client.get_metric_history(self.run_id, marker)
        return {metric.step for metric in history}

    def _log_dataset(
        self, name: str, digest: str, uri: object, profile: Json, context: str = "training"
    ) -> None:
        """Make games an input of the run; the same name and digest are the same games."""
        dataset = Dataset(
            name, digest, DATASET_SOURCE_TYPE, json.dumps({"uri": str(uri)}),
            profile=json.dumps(profile),
        )
        tag = InputTag(MLFLOW_DATASET_CONTEXT, context)
        self._client.log_inputs(self.run_id, [DatasetInput(dataset, [tag])])

    def _log_configuration(self, configuration: Mapping[str, Any]) -> None:
        params = [
            Param(name, param_text(value)) for name, value in flat_values(configuration).items()
            if name not in self._run.data.params
        ]
        for batch in chunk_list(params, MAX_PARAMS_TAGS_PER_BATCH):
            self._client.log_batch(self.run_id, params=batch)

    def _rows(
        self, step: int, metrics: Mapping[str, float], model_id: str | None = None
    ) -> list[Metric]:
        finite = {name: float(value) for name, value in metrics.items() if math.isfinite(value)}
        if skipped := sorted(set(metrics) - set(finite)):
            logger.warning(
                "step %d: not recorded because not finite: %s", step, ", ".join(skipped)
            )
        now_ms = int(time.time() * 1000)
        return [
            Metric(legal_name(name), value, now_ms, step, model_id=model_id, run_id=self.run_id)
            for name, value in finite.items()
        ]


def _folder_tags(folder: CampaignFolder) -> dict[str, str]:
    return {"chess_snn.campaign": folder.name, FOLDER_TAG: place_of(folder)}


def legal_name(metric: str) -> str:
    """``metric`` as MLflow stores it: ``score_stockfish@10`` is ``score_stockfish_10`` there."""
    name = posixpath.normpath(_REFUSED_IN_NAMES.sub("_", metric))
    return name[:MAX_ENTITY_KEY_LENGTH]


def param_text(value: object) -> str:
    """``value`` as MLflow stores it; lists become JSON."""
    text = json.dumps(value) if isinstance(value, list | tuple) else str(value)
    if len(text) <= MAX_PARAM_VAL_LENGTH:
        return text
    return text[: MAX_PARAM_VAL_LENGTH - len(CUT_MARK)] + CUT_MARK
