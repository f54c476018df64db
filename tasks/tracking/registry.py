"""Checkpoints as versions of the registered model, callable with a FEN and free of pickle."""

import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from mlflow import pyfunc
from mlflow.entities import LoggedModel, LoggedModelOutput
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from mlflow.models import Model, ModelSignature
from mlflow.protos.databricks_pb2 import RESOURCE_ALREADY_EXISTS, ErrorCode
from mlflow.tracking import MlflowClient
from mlflow.types.schema import Array, ColSpec, DataType, Map, Schema

from tasks.tracking.campaign_run import find_version, move_champion
from tasks.tracking.facts import CANDIDATE, MODEL_NAME, ModelVersionFacts

MODEL_ID_TAG = "model_id"
"""Which stored model a version is; MLflow's own field for it is empty in a local store."""

SERVED_MODEL = Path(__file__).with_name("served_model.py")

SERVED_WITH = ("chess-snn", "mlflow", "torch")
"""Packages that the served model needs, at the versions that stored it."""

START_FEN = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"

SIGNATURE = ModelSignature(
    inputs=Schema([ColSpec(DataType.string, "fen")]),
    outputs=Schema([
        ColSpec(DataType.string, "fen"),
        ColSpec(DataType.string, "best_move", required=False),
        ColSpec(Array(DataType.double), "wdl_stm", required=False),
        ColSpec(Map(DataType.double), "policy", required=False),
        ColSpec(DataType.string, "error", required=False),
    ]),
)


class ModelRegistry:
    """The versions one campaign has of the registered model."""

    def __init__(
        self, client: MlflowClient, experiment_id: str, run_id: str,
        campaign_tags: dict[str, str],
    ) -> None:
        """``campaign_tags`` go on every version and hold at least ``campaign_id``."""
        self._client = client
        self._experiment_id = experiment_id
        self._run_id = run_id
        self._campaign_tags = campaign_tags

    def add(self, facts: ModelVersionFacts) -> str:
        """Register a checkpoint once, let the candidate be it, and return its MLflow model id.

        An older checkpoint does not take the alias from a newer one.
        """
        campaign_id = self._campaign_tags["campaign_id"]
        registered = (
            find_version(self._client, campaign_id, facts.generation) or self._create(facts)
        )
        self._advance_candidate(registered)
        return str(registered.tags[MODEL_ID_TAG])

    def promote(self, generation: int, tags: Mapping[str, str]) -> None:
        """Let the champion be the version of ``generation``, and add ``tags`` to it."""
        move_champion(self._client, self._campaign_tags["campaign_id"], generation, tags)

    def _create(self, facts: ModelVersionFacts) -> ModelVersion:
        self._ensure_registered_model()
        stored = self._store_model(facts)
        return self._client.create_model_version(
            # The place itself: MLflow looks a "models:/" address up in its process-wide store,
            # not in this client's.
            MODEL_NAME, source=stored.artifact_location, run_id=self._run_id,
            model_id=stored.model_id,
            tags={
                **facts.registry_tags(), **self._campaign_tags, MODEL_ID_TAG: stored.model_id
            },
        )

    def _advance_candidate(self, registered: ModelVersion) -> None:
        aliases = self._client.get_registered_model(MODEL_NAME).aliases
        if int(aliases.get(CANDIDATE, 0)) < int(registered.version):
            self._client.set_registered_model_alias(MODEL_NAME, CANDIDATE, registered.version)

    def _ensure_registered_model(self) -> None:
        try:
            self._client.create_registered_model(
                MODEL_NAME, description="Spiking chess networks; give a FEN, get a move."
            )
        except MlflowException as error:
            if error.error_code != ErrorCode.Name(RESOURCE_ALREADY_EXISTS):
                raise

    def _store_model(self, facts: ModelVersionFacts) -> LoggedModel:
        """Copy the weights and the code that serves them into the store."""
        logged = self._client.create_logged_model(
            self._experiment_id, name=f"gen-{facts.generation:06d}", source_run_id=self._run_id,
            tags={**facts.registry_tags(), **self._campaign_tags}, model_type="chess",
        )
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "model"
            _save_model(facts, folder, Model(
                artifact_path=logged.artifact_location, model_uuid=logged.model_id,
                run_id=self._run_id, model_id=logged.model_id,
            ))
            self._client.log_model_artifacts(logged.model_id, str(folder))
        self._client.finalize_logged_model(logged.model_id, "READY")
        self._client.log_outputs(
            self._run_id, [LoggedModelOutput(logged.model_id, step=facts.generation)]
        )
        return logged


def _save_model(facts: ModelVersionFacts, folder: Path, model: Model) -> None:
    pyfunc.save_model(
        folder,
        python_model=SERVED_MODEL,
        artifacts={"weights": str(facts.weights_path.resolve())},
        signature=SIGNATURE,
        input_example=pd.DataFrame({"fen": [START_FEN]}),
        # Given, because MLflow would find them by running the model in a process of its own.
        pip_requirements=[f"{name}=={_public_version(name)}" for name in SERVED_WITH],
        mlflow_model=model,
    )


def _public_version(package: str) -> str:
    """The installed version, without the build's label: no index has ``2.13.0+cpu``."""
    return version(package).partition("+")[0]
