"""What commands ask of a store that a campaign has recorded itself in, without touching its run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from chess_snn.campaign import CampaignFolder
from tasks.tracking.campaign_run import find_run, move_champion
from tasks.tracking.facts import (
    PAGES_OF_TRAINING,
    RegisteredVersion,
    TrackingError,
    experiment_pages,
)
from tasks.tracking.store import open_store, store_files, tracking_errors


def registered_versions(tracking_uri: str, folder: CampaignFolder) -> dict[int, RegisteredVersion]:
    """The campaign's versions of the registered model, by generation.

    Raises:
        TrackingError: the store is away or refuses.
    """
    with tracking_errors(tracking_uri):
        client = open_store(tracking_uri)
        run = find_run(client, folder)
        if run is None:
            return {}
        found = client.search_model_versions(f"run_id = '{run.info.run_id}'")
        aliases = client.get_registered_model(found[0].name).aliases if found else {}
    return {
        int(version.tags["generation"]): RegisteredVersion(
            int(version.version),
            tuple(sorted(a for a, number in aliases.items() if number == version.version)),
        )
        for version in found
    }


def promote_registered(
    tracking_uri: str, folder: CampaignFolder, generation: int, tags: Mapping[str, str]
) -> None:
    """Let the champion be the version of ``generation``, and add ``tags`` to it.

    Raises:
        TrackingError: it is not registered, or the store is away or refuses.
    """
    with _run_of(tracking_uri, folder) as (client, run):
        move_champion(client, run, generation, tags)


def keep_artifacts(
    tracking_uri: str, campaign: CampaignFolder, folder: Path, artifact_path: str
) -> None:
    """Copy the files of ``folder`` to ``artifact_path`` of the campaign's run.

    Raises:
        TrackingError: the campaign has no run there, or the store is away or refuses.
    """
    with _run_of(tracking_uri, campaign) as (client, run):
        if not store_files(tracking_uri, run.info.artifact_uri, folder, artifact_path):
            client.log_artifacts(run.info.run_id, str(folder), artifact_path)


def campaign_pages(tracking_uri: str, folder: CampaignFolder, server: str) -> dict[str, str]:
    """Addresses on the MLflow server at ``server``: all runs, the campaign's curves, all models.

    Raises:
        TrackingError: the campaign has no run there, or the store is away or refuses.
    """
    with _run_of(tracking_uri, folder) as (_, run):
        experiment, run_id = run.info.experiment_id, run.info.run_id
    return experiment_pages(server, experiment) | {
        "curves": f"{server}/#/experiments/{experiment}/runs/{run_id}/model-metrics"
                  f"?{PAGES_OF_TRAINING}",
    }


@contextmanager
def _run_of(tracking_uri: str, folder: CampaignFolder) -> Iterator[tuple[MlflowClient, Run]]:
    with tracking_errors(tracking_uri):
        client = open_store(tracking_uri)
        run = find_run(client, folder)
        if run is None:
            raise TrackingError(
                f"the tracking store {tracking_uri} has no run of the campaign in {folder.path}"
            )
        yield client, run
