"""What commands about single models ask of MLflow, where it is installed and has the campaign.

Importing this takes none of MLflow's time.
"""

import importlib.util
from pathlib import Path

from chess_snn.campaign import CampaignFolder
from tasks import tracking
from tasks.mlflow_content import champion_tags
from tasks.tracking import RegisteredVersion


def registered(folder: CampaignFolder) -> dict[int, RegisteredVersion]:
    """The campaign's versions of the registered model, by generation; none without a store.

    Raises:
        TrackingError: the store is away or refuses.
    """
    uri = _store()
    return {} if uri is None else tracking.registered_versions(uri, folder)


def tell_champion(folder: CampaignFolder, generation: int) -> bool:
    """Move the champion's alias to ``generation``; False without a store.

    Raises:
        TrackingError: it is not registered, or the store is away or refuses.
    """
    uri = _store()
    if uri is None:
        return False
    tracking.promote_registered(uri, folder, generation, champion_tags(folder, generation))
    return True


def keep_comparison(folder: CampaignFolder, comparison: Path) -> bool:
    """Copy a comparison's files to the artifacts of the campaign's run; False without a store.

    Raises:
        TrackingError: the campaign has no run there, or the store is away or refuses.
    """
    uri = _store()
    if uri is None:
        return False
    tracking.keep_artifacts(uri, folder, comparison, f"comparisons/{comparison.name}")
    return True


def pages(folder: CampaignFolder, server: str) -> dict[str, str]:
    """Addresses on the MLflow server at ``server``: the campaign's curves, and its models.

    Raises:
        TrackingError: the campaign has no run there, or the store is away or refuses.
    """
    return tracking.campaign_pages(tracking.tracking_uri(), folder, server)


def fetch_model(address: str) -> Path:
    """The exported folder of a registered model; see :func:`tasks.tracking.fetching.fetch_model`.

    Raises:
        UsageError: nothing is registered there.
        TrackingError: the store is away or refuses.
    """
    return tracking.fetch_model(address)


def _store() -> str | None:
    return None if importlib.util.find_spec("mlflow") is None else tracking.existing_store()
