"""Checkpoints as versions of a registered model, callable with a position and free of pickle.

They are fetched by their address, once, and kept as exported folders.
"""

import logging
import re
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit

import mlflow
import numpy as np
import pandas as pd
from mlflow import pyfunc
from mlflow.entities import LoggedModel, LoggedModelOutput, Run
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from mlflow.models import Model, ModelSignature
from mlflow.protos.databricks_pb2 import (
    INVALID_PARAMETER_VALUE,
    RESOURCE_ALREADY_EXISTS,
    RESOURCE_DOES_NOT_EXIST,
    ErrorCode,
)
from mlflow.tracking import MlflowClient
from mlflow.types.schema import Array, ColSpec, DataType, Map, ParamSchema, ParamSpec, Schema
from mlflow.utils.validation import MAX_PARAM_VAL_LENGTH

from chess_snn.caches import cache_root
from chess_snn.campaign.configuration.loading import config_of_texts
from chess_snn.campaign.models.exporting import commit_model
from chess_snn.campaign.models.versions import NetworkVersion, model_card, rating_text
from chess_snn.campaign.store.receipts import VERDICT_WORDS
from chess_snn.data import is_committed
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.games import Game
from chess_snn.nets import load_network, network_digest
from chess_snn.search import SearchSettings
from chess_snn.training import WEIGHTS
from tasks.tracking import CANDIDATE, TrackingError, artifact_folder, existing_store, model_name
from tasks.tracking.campaign_run import CAMPAIGN_ID_TAG, find_version
from tasks.tracking.store import open_store, store_files, tracking_errors

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

_ADDRESS: Final = re.compile(
    r"models:/(?P<name>[^/@:]+)(?:@(?P<alias>[\w-]+)|/(?P<version>[0-9]{1,12}))"
)
_UNKNOWN: Final = {ErrorCode.Name(RESOURCE_DOES_NOT_EXIST), ErrorCode.Name(INVALID_PARAMETER_VALUE)}
_KEPT_IN: Final = "models"
_MOST_LISTED: Final = 20


@dataclass(frozen=True, slots=True)
class ModelRegistry:
    """The versions of a registered model that one run has made."""

    client: MlflowClient
    tracking_uri: str
    run: Run
    game: Game
    search: SearchSettings
    """What a registered model searches with."""

    @property
    def name(self) -> str:
        """Of the model."""
        return model_name(self.game.spec.name)

    def add(self, version: NetworkVersion, weights: Path) -> str:
        """Register a checkpoint once, let the candidate be it, and return its MLflow model id.

        An older checkpoint does not take the alias from a newer one. The file ``weights`` is copied
        into the store.
        """
        registered = find_version(self.client, self.run.info.run_id, version.generation)
        if registered is None:
            registered = self._create(version, weights)
        aliases = self.client.get_registered_model(self.name).aliases
        if int(aliases.get(CANDIDATE, 0)) < int(registered.version):
            self.client.set_registered_model_alias(self.name, CANDIDATE, registered.version)
        return model_id_of(registered)

    def _create(self, version: NetworkVersion, weights: Path) -> ModelVersion:
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
        # MLflow resolves relative places by a server only, and looks a "models:/" address up in its
        # process-wide store, not in this client's.
        files = artifact_folder(self.tracking_uri, stored.artifact_location)
        return self.client.create_model_version(
            self.name, source=stored.artifact_location if files is None else files.as_uri(),
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
        start = self.game.initial_states(np.zeros(1, np.uint64))[0]
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "model"
            save_model(folder, weights, self.search, self.game.format_state(start), Model(
                artifact_path=logged.artifact_location, model_uuid=logged.model_id,
                run_id=run_id, model_id=logged.model_id,
            ))
            if not store_files(self.tracking_uri, logged.artifact_location, folder):
                self.client.log_model_artifacts(logged.model_id, str(folder))
        self.client.finalize_logged_model(logged.model_id, "READY")
        self.client.log_outputs(
            run_id, [LoggedModelOutput(logged.model_id, step=version.generation)]
        )
        return logged


def _tags(version: NetworkVersion) -> dict[str, str]:
    """Few, so that they fit on one screen: rating, search budget, verdict, origin."""
    scale = "elo_own_games" if version.ladder_test is None else "elo"
    tags = {
        scale: rating_text(version),
        "search_budget": f"{version.simulations} simulations",
        "promotion": "" if version.promotion is None else VERDICT_WORDS[version.promotion.verdict],
        "generation": str(version.generation),
        "campaign": version.campaign,
        "campaign_id": version.campaign_id,
    }
    return {name: value for name, value in tags.items() if value}


def _params(version: NetworkVersion) -> dict[str, str]:
    """Everything else that is not a metric; names and values as the settings have them."""
    params = {
        "net.size": version.size,
        **{f"net.{name}": value for name, value in version.shape.items()},
        "net.precision": version.precision,
        "net.parameters": version.parameters,
        "evaluation.simulations": version.simulations,
        "weights_digest": version.digest,
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
    """Which stored model a version is; MLflow's own field for it is empty in a local store."""
    return PurePosixPath(urlsplit(registered.source).path).parent.name  # …/models/ID/artifacts


def save_model(
    folder: Path, weights: Path, search: SearchSettings, example: str, model: Model
) -> None:
    """Write the files of ``model``, with a position as ``example``, to a new ``folder``."""
    pyfunc.save_model(
        folder,
        python_model=SERVED_MODEL,
        artifacts={"weights": str(weights.resolve())},
        model_config={"search": asdict(search)},
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


def fetch_model(address: str) -> Path:
    """The registered model at ``address`` as an exported folder, in the cache.

    The registry is asked every time, for an alias moves; weights are fetched once.

    Args:
        address: ``models:/chess-snn@champion``, or ``models:/chess-snn/12``.

    Raises:
        UsageError: the address is malformed, or nothing is registered there.
        TrackingError: the store is away, or not there yet.
        CorruptDataError: what is registered is not a network of this program.
    """
    wanted = _ADDRESS.fullmatch(address)
    if wanted is None:
        raise UsageError(
            f"{address!r} is not an address of a registered model; write models:/NAME@ALIAS or "
            "models:/NAME/VERSION, such as models:/chess-snn@champion"
        )
    uri = existing_store()
    if uri is None:
        raise TrackingError(
            f"{address} cannot be looked up: there is no MLflow store yet; run a campaign first, "
            "or set MLFLOW_TRACKING_URI"
        )
    with tracking_errors(uri):
        client = open_store(uri)
        version = _find_version(client, uri, address, wanted)
        # Neither a run nor a version of it ever has other weights.
        target = cache_root() / _KEPT_IN / f"{version.run_id}-{version.version}"
        if not is_committed(target):
            _keep(uri, version, client.get_run(version.run_id), target)
    return target


def list_versions(uri: str, name: str) -> list[str]:
    """Addresses of the registered model: its aliases, then its newest versions, newest first.

    Args:
        uri: of the store.
        name: of the model; if nothing is registered so, there are none.

    Raises:
        TrackingError: the store is away.
    """
    with tracking_errors(uri):
        client = open_store(uri)
        try:
            aliases = client.get_registered_model(name).aliases
        except MlflowException as error:
            if error.error_code not in _UNKNOWN:
                raise
            return []
        versions = client.search_model_versions(
            f"name='{name}'", max_results=_MOST_LISTED, order_by=["version_number DESC"]
        )
    return [
        *(f"models:/{name}@{alias}" for alias in sorted(aliases)),
        *(f"models:/{name}/{version.version}" for version in versions),
    ]


def _find_version(
    client: MlflowClient, uri: str, address: str, wanted: re.Match[str]
) -> ModelVersion:
    try:
        if wanted["alias"]:
            return client.get_model_version_by_alias(wanted["name"], wanted["alias"])
        return client.get_model_version(wanted["name"], wanted["version"])
    except MlflowException as error:
        if error.error_code not in _UNKNOWN:
            raise
        raise UsageError(
            f"{address} is not registered in {uri}; see what is: chess-snn models list CAMPAIGN, "
            "or the page Models of MLflow"
        ) from error


def _keep(uri: str, version: ModelVersion, run: Run, target: Path) -> None:
    """Commit the weights of ``version`` to ``target``, with the settings of its campaign."""
    name = f"version {version.version} of {version.name} in {uri}"
    with tempfile.TemporaryDirectory() as scratch:
        mlflow.artifacts.download_artifacts(
            artifact_uri=f"{version.source}/artifacts", dst_path=scratch, tracking_uri=uri
        )
        weights = next(Path(scratch).rglob(WEIGHTS), None)
        if weights is None:
            raise CorruptDataError(
                f"{name} has no {WEIGHTS}; give one that a campaign has registered"
            )
        digest = network_digest(load_network(weights))
        if digest != version.tags.get("digest", digest):
            raise CorruptDataError(
                f"{name} has other weights than were registered; give another version"
            )
        commit_model(target, weights, config_of_texts(run.data.params), {
            "generation": int(version.tags.get("generation", 0)),
            "campaign": run.info.run_name,
            "campaign_id": run.data.tags.get(CAMPAIGN_ID_TAG, ""),
            "digest": digest,
            "registered": f"version {version.version} of {version.name}",
        })
