"""Checkpoints as versions of a registered model, callable with a position and free of pickle."""

import logging
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
from mlflow import pyfunc
from mlflow.entities import LoggedModel, LoggedModelOutput, Run
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from mlflow.models import Model, ModelSignature
from mlflow.protos.databricks_pb2 import RESOURCE_ALREADY_EXISTS, ErrorCode
from mlflow.tracking import MlflowClient
from mlflow.types.schema import Array, ColSpec, DataType, Map, ParamSchema, ParamSpec, Schema
from mlflow.utils.validation import MAX_PARAM_VAL_LENGTH

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.models.exporting import commit_model
from chess_snn.campaign.models.versions import NetworkVersion, model_card, rating_figures
from chess_snn.campaign.store.receipt_parts import VERDICT_WORDS
from chess_snn.errors import CorruptDataError
from chess_snn.games import Game
from chess_snn.nets import load_network, network_digest
from chess_snn.tasks.tracking import CANDIDATE, model_name
from chess_snn.tasks.tracking.campaign_run import find_version
from chess_snn.tasks.tracking.strength_tags import SCALE_TAG

DIGEST_PARAM = "weights_digest"
"""Parameter of a stored model: the digest of its network, by which readers check the weights."""

NETWORK_FOLDER = "network"
"""Artifact of a stored model: the network as an exported folder, with its ``model.toml``."""

MOST_DESCRIPTION = 5000
"""Characters that MLflow keeps."""

_LOG = logging.getLogger(__name__)
SERVED_MODEL = Path(__file__).with_name("served_model.py")

SERVED_WITH = ("chess-snn", "mlflow", "torch")
"""Packages that the served model needs, at the versions that stored it."""

SIGNATURE = ModelSignature(
    inputs=Schema([ColSpec(DataType.string, "fen")]),
    outputs=Schema([
        ColSpec(DataType.string, "fen"),
        ColSpec(DataType.string, "best_move", required=False),
        ColSpec(Array(DataType.double), "wdl_stm", required=False),
        ColSpec(DataType.double, "value_stm", required=False),
        ColSpec(Map(DataType.double), "policy", required=False),
        ColSpec(DataType.string, "error", required=False),
    ]),
    params=ParamSchema([
        ParamSpec("simulations", DataType.long, 0),
        ParamSpec("temperature", DataType.double, 0.0),
        ParamSpec("seed", DataType.long, 0),
    ]),
)


@dataclass(frozen=True, slots=True)
class ModelRegistry:
    """The versions of a registered model that one run has made."""

    client: MlflowClient
    run: Run
    game: Game
    config: CampaignConfig
    """Settings that a registered model is played with."""

    @property
    def name(self) -> str:
        """Name of the model."""
        return model_name(self.game.spec.name)

    def add(self, version: NetworkVersion, weights: Path) -> str:
        """Register a checkpoint once, let the candidate be it, and return its MLflow model id.

        An older checkpoint does not take the alias from a newer one. The file ``weights`` is copied
        into the store.

        Raises:
            CorruptDataError: it is not the network of ``version``.
        """
        registered = find_version(self.client, self.run.info.run_id, version.generation)
        if registered is None:
            registered = self._create(version, weights)
        aliases = self.client.get_registered_model(self.name).aliases
        if int(aliases.get(CANDIDATE, 0)) < int(registered.version):
            self.client.set_registered_model_alias(self.name, CANDIDATE, registered.version)
        return model_id_of(registered)

    def _create(self, version: NetworkVersion, weights: Path) -> ModelVersion:
        if network_digest(load_network(weights)) != version.digest:
            raise CorruptDataError(
                f"{weights} is not the network that generation {version.generation} was; make it "
                "again: chess-snn verify CAMPAIGN --repair"
            )
        try:
            self.client.create_registered_model(
                self.name,
                description=f"Spiking {self.game.spec.name} networks; give a position as text "
                            "(chess: a FEN), get a move.",
            )
        except MlflowException as error:
            if error.error_code != ErrorCode.Name(RESOURCE_ALREADY_EXISTS):
                raise
        stored = self._store_model(version, weights)
        # A "models:/" address would be looked up in MLflow's process-wide store, not in this
        # client's.
        return self.client.create_model_version(
            self.name, source=stored.artifact_location,
            run_id=self.run.info.run_id, model_id=stored.model_id, tags=_tags(version),
            description=model_card(version)[:MOST_DESCRIPTION],
        )

    def _store_model(self, version: NetworkVersion, weights: Path) -> LoggedModel:
        """Copy the weights and the code that serves them into the store."""
        run_id = self.run.info.run_id
        logged = self.client.create_logged_model(
            self.run.info.experiment_id, name=f"gen-{version.generation:06d}",
            source_run_id=run_id, tags=_tags(version), model_type=self.game.spec.name,
            params=_params(version),
        )
        start = self.game.format_state(self.game.initial_states(np.zeros(1, np.uint64))[0])
        with tempfile.TemporaryDirectory() as scratch:
            folder, network = Path(scratch) / "model", Path(scratch) / NETWORK_FOLDER
            commit_model(
                network, weights, self.config, version.to_json(), model_card(version)
            )
            save_model(folder, network, start, Model(
                artifact_path=logged.artifact_location, model_uuid=logged.model_id,
                run_id=run_id, model_id=logged.model_id,
            ))
            self.client.log_model_artifacts(logged.model_id, str(folder))
        self.client.finalize_logged_model(logged.model_id, "READY")
        self.client.log_outputs(
            run_id, [LoggedModelOutput(logged.model_id, step=version.generation)]
        )
        return logged


def _tags(version: NetworkVersion) -> dict[str, str]:
    """Few, so that they fit on one screen: rating, search budget, verdict, origin."""
    tags = {
        **rating_figures(version),
        SCALE_TAG: None if version.strength is None else version.strength.scale or None,
        "promotion": None if version.promotion is None
                     else VERDICT_WORDS[version.promotion.verdict],
        "generation": version.generation,
        "campaign": version.campaign,
        "campaign_id": version.campaign_id,
    }
    return {name: str(value) for name, value in tags.items() if value is not None}


def _params(version: NetworkVersion) -> dict[str, str]:
    """Everything else that is not a metric; names and values as the settings have them."""
    params = {
        "net.size": version.size,
        **{f"net.{name}": value for name, value in version.shape.items()},
        "net.precision": version.precision,
        "net.parameters": version.parameters,
        "evaluation.simulations": version.simulations,
        DIGEST_PARAM: version.digest,
        "created": version.created,
        "window_positions": version.window_positions,
        "window_shards": len(version.window_shards),
        "dataset": version.window_name,
        "dataset_digest": version.window_name and version.window_digest,
        "pretraining_dataset": version.dataset,
        "pretraining_digest": version.dataset_digest,
        "promotion": version.promotion,
        **version.provenance,
    }
    return {
        name: str(value)[:MAX_PARAM_VAL_LENGTH]
        for name, value in params.items() if value is not None
    }


def model_id_of(registered: ModelVersion) -> str:
    """Id of the stored model of a version; MLflow's own field for it is empty in a local store."""
    return model_id_at(registered.source)


def model_id_at(place: str) -> str:
    """Id of the stored model that has its files at ``place``."""
    return PurePosixPath(urlsplit(place).path).parent.name  # …/models/ID/artifacts


def save_model(folder: Path, network: Path, example: str, model: Model) -> None:
    """Write the files of ``model`` to a new ``folder``.

    Args:
        folder: the new one.
        network: folder of the exported network, called :data:`NETWORK_FOLDER`.
        example: a position.
        model: MLflow's description, to be completed.
    """
    pyfunc.save_model(
        folder,
        python_model=SERVED_MODEL,
        artifacts={NETWORK_FOLDER: str(network.resolve())},
        signature=SIGNATURE,
        input_example=pd.DataFrame({"fen": [example]}),
        # Given, because MLflow would find them by running the model in a process of its own.
        pip_requirements=[_requirement(name) for name in SERVED_WITH],
        mlflow_model=model,
    )


def _requirement(package: str) -> str:
    """``package`` at the version that runs here, without a build's label: no index has these.

    A package that is not installed under its name, as where a clone runs from its folder, is asked
    for in any version, and the log says so.
    """
    try:
        return f"{package}=={version(package).partition('+')[0]}"
    except PackageNotFoundError:
        _LOG.warning("%s is not installed: models are registered for any version of it", package)
        return package
