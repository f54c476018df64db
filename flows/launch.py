"""Run a campaign from this process with the servers it needs."""

from collections.abc import Callable

from prefect import tags

from chess_snn.campaign import CampaignFolder, campaign_lock
from chess_snn.campaign.store.preflight import check_before_run
from flows.campaign import campaign
from flows.listeners import listening
from flows.servers import has_prefect_server, prefect_server
from flows.stale_runs import campaign_tag, close_stale_flow_runs
from tasks.progress import Listener
from tasks.record import open_tracker, record_missing, tracked_run
from tasks.tracking import tracking_uri_of


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
        CampaignError: a folder of it cannot be written, or its settings were changed.
    """
    with campaign_lock(folder):
        check_before_run(folder)  # before a server is started; the flow takes the lock for good
    with (
        prefect_server(folder.services, progress=on_wait, tell=listener.message),
        tags(campaign_tag(folder.campaign_id)),
        listening(listener),
    ):
        campaign(directory=str(folder.path))


def record_campaign(
    folder: CampaignFolder, listener: Listener, on_wait: Callable[[str, float], None]
) -> int:
    """Tell both views what they lack of a campaign, without running any of it.

    MLflow is told the iterations it lacks. In Prefect, runs are closed that a process left open
    which was killed after its last commit.

    Args:
        folder: the campaign.
        listener: is told where MLflow is away.
        on_wait: called with (server, seconds waited) while a server starts.

    Returns:
        How many finished iterations MLflow lacked.

    Raises:
        CampaignLockedError: another process is at it.
        TrackingError: the store is away.
    """
    with campaign_lock(folder):
        tracking_uri = tracking_uri_of(folder.services)
        tracker = open_tracker(folder, tracking_uri)
        with tracked_run(folder, tracking_uri, listener.message):
            num_missing = record_missing(folder, tracker)
        if has_prefect_server(folder.services):
            with prefect_server(folder.services, progress=on_wait, tell=listener.message):
                close_stale_flow_runs(folder.campaign_id)
    return num_missing
