"""Registered models by their address: fetched once, checked each time, kept as exported folders."""

import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

import mlflow
from mlflow.entities import LoggedModel
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import (
    INVALID_PARAMETER_VALUE,
    RESOURCE_DOES_NOT_EXIST,
    ErrorCode,
)
from mlflow.tracking import MlflowClient

from chess_snn.caches import cache_root
from chess_snn.campaign.models.exporting import copy_model
from chess_snn.data import verify_folder
from chess_snn.data.files import writing
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.nets import load_network, network_digest
from chess_snn.tasks.tracking import TrackingError, existing_store, tracking_uri
from chess_snn.tasks.tracking.registry import DIGEST_PARAM, NETWORK_FOLDER, model_id_at
from chess_snn.tasks.tracking.store import open_store, tracking_errors
from chess_snn.tasks.tracking.strength_tags import strength_text
from chess_snn.training import WEIGHTS
from chess_snn.types import Json

_ADDRESS: Final = re.compile(
    r"models:/(?P<name>[^/@:]+)(?:@(?P<alias>[\w-]+)|/(?P<version>[0-9]{1,12}))"
)
_UNKNOWN: Final = {ErrorCode.Name(RESOURCE_DOES_NOT_EXIST), ErrorCode.Name(INVALID_PARAMETER_VALUE)}
_KEPT_IN: Final = "models"
_MOST_LISTED: Final = 20


def fetch_model(address: str) -> Path:
    """The registered model at ``address`` as an exported folder, in the cache.

    The registry is asked every time, for an alias moves; weights are fetched once, and compared
    with what was registered every time.

    Args:
        address: ``models:/chess-snn@champion``, or ``models:/chess-snn/12``.

    Raises:
        UsageError: the address is malformed, or nothing is registered there.
        TrackingError: the store is away, or not there yet, or has lost the files of the model.
        CorruptDataError: this program has not registered it, or its weights are others now.
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
            f"{address} cannot be looked up: there is no MLflow store at {tracking_uri()}; run a "
            "campaign first, or set MLFLOW_TRACKING_URI, or CHESS_SNN_HOME, to where it is"
        )
    with tracking_errors(uri):
        client = open_store(uri)
        version = _find_version(client, uri, address, wanted)
        name = f"version {version.version} of {version.name} in {uri}"
        model = _stored_model(client, version, name)
    target = cache_root() / _KEPT_IN / f"{version.run_id}-{version.version}"
    if not _is_whole(target, model.params[DIGEST_PARAM]):
        _keep(uri, name, model, target)
    return target


def registered_models(uri: str) -> list[Json]:
    """The versions of every registered model that have an alias, and the newest others.

    Those of a model stand together, newest first, each with its ``address``, ``aliases``,
    ``campaign``, ``generation`` and ``strength``; empty where its tags do not tell.

    Raises:
        TrackingError: the store is away.
    """
    with tracking_errors(uri):
        client = open_store(uri)
        found = []
        for model in client.search_registered_models():
            newest = client.search_model_versions(
                f"name='{model.name}'", max_results=_MOST_LISTED, order_by=["version_number DESC"]
            )
            numbers = {int(number) for number in model.aliases.values()}
            older = numbers - {int(version.version) for version in newest}
            found += [(model, version) for version in newest] + [
                (model, client.get_model_version(model.name, str(number)))
                for number in sorted(older, reverse=True)
            ]
    return [
        {
            "address": f"models:/{model.name}/{version.version}",
            "aliases": sorted(
                alias for alias, number in model.aliases.items()
                if int(number) == int(version.version)
            ),
            "campaign": version.tags.get("campaign", ""),
            "generation": version.tags.get("generation", ""),
            "strength": strength_text(version),
        }
        for model, version in found
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
            f"{address} is not registered in {uri}; see what is: chess-snn models list"
        ) from error


def _stored_model(client: MlflowClient, version: ModelVersion, name: str) -> LoggedModel:
    """The stored model that ``version`` is, which has the digest of its network."""
    place = client.get_model_version_download_uri(version.name, version.version)
    try:
        model = client.get_logged_model(model_id_at(place))
    except MlflowException as error:
        if error.error_code not in _UNKNOWN:
            raise
        model = None
    if model is None or DIGEST_PARAM not in model.params:
        raise CorruptDataError(f"{name} was not registered by chess-snn; give another version")
    return model


def _keep(uri: str, name: str, model: LoggedModel, target: Path) -> None:
    """Copy the exported network of ``model`` to ``target``."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            mlflow.artifacts.download_artifacts(
                artifact_uri=f"{model.artifact_location}/artifacts/{NETWORK_FOLDER}",
                dst_path=scratch, tracking_uri=uri,
            )
        except (MlflowException, OSError) as error:
            raise TrackingError(
                f"{name} has lost its files, or they cannot be read, at {model.artifact_location}; "
                "restore them, or give another version or CAMPAIGN@GENERATION"
            ) from error
        network = Path(scratch) / NETWORK_FOLDER
        if not _is_whole(network, model.params[DIGEST_PARAM]):
            raise CorruptDataError(
                f"{name} is not what was registered, at {model.artifact_location}; "
                "restore them, or give another version or CAMPAIGN@GENERATION"
            )
        if target.exists():  # damaged
            with writing(target):
                shutil.rmtree(target)
        copy_model(network, target)


def _is_whole(folder: Path, digest: str) -> bool:
    """Whether the exported model in ``folder`` is there, undamaged, and of this network."""
    try:
        verify_folder(folder)
        return network_digest(load_network(folder / WEIGHTS)) == digest
    except CorruptDataError:
        return False
