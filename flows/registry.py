"""What commands about single models ask of MLflow, where a campaign has a store there."""

from pathlib import Path

from chess_snn.campaign import CampaignFolder
from tasks.tracking import (
    RegisteredVersion,
    existing_store,
    keep_artifacts,
    promote_registered,
    registered_versions,
)
from tasks.version_facts import champion_tags


def registered(folder: CampaignFolder) -> dict[int, RegisteredVersion]:
    """The campaign's versions of the registered model, by generation; none without a store.

    Raises:
        TrackingError: the store is away or refuses.
    """
    uri = existing_store(folder.services)
    return {} if uri is None else registered_versions(uri, folder.campaign_id)


def tell_champion(folder: CampaignFolder, generation: int) -> bool:
    """Move the champion's alias to ``generation``; False without a store.

    Raises:
        TrackingError: it is not registered, or the store is away or refuses.
    """
    uri = existing_store(folder.services)
    if uri is None:
        return False
    tags = champion_tags(folder, generation)
    promote_registered(uri, folder.campaign_id, generation, tags)
    return True


def keep_comparison(folder: CampaignFolder, comparison: Path) -> bool:
    """Copy a comparison's files to the artifacts of the campaign's run; False without a store.

    Raises:
        TrackingError: the campaign has no run there, or the store is away or refuses.
    """
    uri = existing_store(folder.services)
    if uri is None:
        return False
    keep_artifacts(uri, folder.campaign_id, comparison, f"comparisons/{comparison.name}")
    return True
