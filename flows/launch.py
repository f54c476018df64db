"""Run a campaign from this process with the servers it needs."""

from collections.abc import Callable

from prefect import tags

from chess_snn.campaign import CampaignFolder, campaign_lock
from flows.campaign import campaign
from flows.listeners import listening
from flows.servers import campaign_tag, prefect_server
from tasks.progress import Listener
from tasks.record import record_missing, tracked_run
from tasks.tracking import CampaignTracker, prepare_store


def launch_campaign(
    folder: CampaignFolder, listener: Listener, on_wait: Callable[[str, float], None]
) -> None:
    """Run what is left of the campaign in ``folder``; nothing is left running afterwards.

    Args:
        folder: the campaign.
        listener: is told how it goes.
        on_wait: called with (server, seconds waited) while a server starts.

    Raises:
        CampaignLockedError: another process is at it.
    """
    with campaign_lock(folder):
        pass  # refuse before a server is started; the flow takes the lock for good
    with (
        prefect_server(folder.services, progress=on_wait),
        tags(campaign_tag(folder.campaign_id)),
        listening(listener),
    ):
        campaign(directory=str(folder.path))


def record_campaign(folder: CampaignFolder, listener: Listener) -> int:
    """Tell MLflow the finished iterations it lacks, without running any; how many those were.

    Raises:
        CampaignLockedError: another process is at it.
        TrackingError: the store is away.
    """
    with campaign_lock(folder):
        tracking_uri = prepare_store(folder.services)
        with tracked_run(folder, tracking_uri, listener.message):
            tracker = CampaignTracker(tracking_uri, folder.campaign_id, folder.name)
            return record_missing(folder, tracker)
