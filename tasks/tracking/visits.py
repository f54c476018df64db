"""What commands ask of a store that a campaign has recorded itself in, without touching its run."""

from collections.abc import Mapping
from pathlib import Path

from mlflow.tracking import MlflowClient

from tasks.tracking.campaign_run import find_run, move_champion
from tasks.tracking.facts import MODEL_NAME, RegisteredVersion, TrackingError
from tasks.tracking.store import be_patient, tracking_errors


def registered_versions(tracking_uri: str, campaign_id: str) -> dict[int, RegisteredVersion]:
    """The campaign's versions of the registered model, by generation.

    Raises:
        TrackingError: the store is away or refuses.
    """
    with tracking_errors(tracking_uri):
        client = _client(tracking_uri)
        found = client.search_model_versions(
            f"name = '{MODEL_NAME}' and tags.campaign_id = '{campaign_id}'"
        )
        aliases = client.get_registered_model(MODEL_NAME).aliases if found else {}
    return {
        int(version.tags["generation"]): RegisteredVersion(
            int(version.version),
            tuple(sorted(a for a, number in aliases.items() if number == version.version)),
        )
        for version in found
    }


def promote_registered(
    tracking_uri: str, campaign_id: str, generation: int, tags: Mapping[str, str]
) -> None:
    """Let the champion be the version of ``generation``, and add ``tags`` to it.

    Raises:
        TrackingError: it is not registered, or the store is away or refuses.
    """
    with tracking_errors(tracking_uri):
        move_champion(_client(tracking_uri), campaign_id, generation, tags)


def keep_artifacts(
    tracking_uri: str, campaign_id: str, folder: Path, artifact_path: str
) -> str:
    """Copy the files of ``folder`` to ``artifact_path`` of the campaign's run; the run's id.

    Raises:
        TrackingError: the campaign has no run there, or the store is away or refuses.
    """
    with tracking_errors(tracking_uri):
        client = _client(tracking_uri)
        run = find_run(client, campaign_id)
        if run is None:
            raise TrackingError(
                f"the tracking store {tracking_uri} has no run of campaign {campaign_id}; "
                "it gets one when the campaign is run or resumed"
            )
        client.log_artifacts(run.info.run_id, str(folder), artifact_path)
    run_id: str = run.info.run_id
    return run_id


def _client(tracking_uri: str) -> MlflowClient:
    be_patient(tracking_uri)
    return MlflowClient(tracking_uri=tracking_uri, registry_uri=tracking_uri)
