"""Finding what a store has of one campaign: its run, and its versions of the registered model."""

from collections.abc import Mapping

from mlflow.entities import Run
from mlflow.entities.model_registry import ModelVersion
from mlflow.tracking import MlflowClient

from tasks.tracking.facts import (
    CHAMPION,
    EXPERIMENT,
    MODEL_NAME,
    TrackingError,
    champion_of_campaign,
)

CAMPAIGN_ID_TAG = "chess_snn.campaign_id"


def find_run(client: MlflowClient, campaign_id: str) -> Run | None:
    """The campaign's run."""
    experiment = client.get_experiment_by_name(EXPERIMENT)
    if experiment is None:
        return None
    found = client.search_runs(
        [experiment.experiment_id], f"tags.`{CAMPAIGN_ID_TAG}` = '{campaign_id}'",
        order_by=["attributes.start_time ASC"], max_results=1,
    )
    return found[0] if found else None


def find_version(
    client: MlflowClient, campaign_id: str, generation: int
) -> ModelVersion | None:
    """The version that is this generation of the campaign."""
    found = client.search_model_versions(
        f"name = '{MODEL_NAME}' and tags.campaign_id = '{campaign_id}' "
        f"and tags.generation = '{generation}'",
        max_results=1,
    )
    return found[0] if found else None


def move_champion(
    client: MlflowClient, campaign_id: str, generation: int, tags: Mapping[str, str]
) -> None:
    """Point the champion's aliases at the version of ``generation``, and add ``tags`` to it.

    Raises:
        TrackingError: it has none.
    """
    known = find_version(client, campaign_id, generation)
    if known is None:
        raise TrackingError(
            f"generation {generation} has no version of {MODEL_NAME!r} to promote; "
            "record its iteration first"
        )
    for name, value in tags.items():
        client.set_model_version_tag(MODEL_NAME, known.version, name, value)
    for alias in (CHAMPION, champion_of_campaign(campaign_id)):
        client.set_registered_model_alias(MODEL_NAME, alias, known.version)
