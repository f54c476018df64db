"""Run a campaign from this process with the servers it needs."""

from collections.abc import Callable

from prefect import tags

from chess_snn.campaign import CampaignFolder, campaign_lock
from chess_snn.campaign.integrity.preflight import check_before_run
from chess_snn.campaign.strength.matches import is_finished
from chess_snn.campaign.viewing.events import Listener, Message
from flows.campaign import campaign
from flows.campaign_runs import campaign_tag, close_stale_flow_runs
from flows.listeners import listening
from flows.servers import has_prefect_server, prefect_server
from tasks.record import open_tracker, record_missing
from tasks.tracking import tracking_uri


def launch_campaign(
    folder: CampaignFolder, listener: Listener, on_wait: Callable[[str, float], None]
) -> None:
    """Run what is left of the campaign in ``folder``; nothing is left running afterwards.

    Args:
        folder: the campaign.
        listener: receives its events.
        on_wait: called with (server, seconds waited) while a server starts.

    Raises:
        CampaignLockedError: another process is at it.
        CampaignError: a folder of it cannot be written, or its settings were changed.
    """
    def tell(text: str) -> None:
        listener(Message(text))

    with campaign_lock(folder):
        check_before_run(folder)  # before a server is started; the flow takes the lock for good
    with (
        prefect_server(folder.services, progress=on_wait, tell=tell),
        tags(campaign_tag(folder.campaign_id)),
        listening(listener),
    ):
        campaign(directory=str(folder.path))


def record_campaign(
    folder: CampaignFolder, tell: Callable[[str], None], on_wait: Callable[[str, float], None]
) -> int:
    """Tell both views what they lack of a campaign, without running any of it.

    MLflow is told the iterations it lacks. In Prefect, runs are closed that a process left open
    which was killed after its last commit.

    Args:
        folder: the campaign.
        tell: receives a message that names the Prefect server in use.
        on_wait: called with (server, seconds waited) while a server starts.

    Returns:
        How many finished iterations MLflow lacked.

    Raises:
        CampaignLockedError: another process is at it.
        TrackingError: the store is away.
    """
    with campaign_lock(folder):
        num_missing = _record_in_mlflow(folder)
        if has_prefect_server(folder.services):
            with prefect_server(folder.services, progress=on_wait, tell=tell):
                close_stale_flow_runs(folder.campaign_id)
    return num_missing


def record_at_rest(folder: CampaignFolder) -> int:
    """Tell MLflow what it lacks of a campaign that no process runs; how many iterations it lacked.

    Raises:
        CampaignError: another process runs it, and records it; or its lock cannot be written.
        TrackingError: the store is away.
    """
    with campaign_lock(folder):
        return _record_in_mlflow(folder)


def _record_in_mlflow(folder: CampaignFolder) -> int:
    tracker = open_tracker(folder, tracking_uri())
    num_missing = record_missing(folder, tracker)
    tracker.close("FINISHED" if is_finished(folder) else "KILLED")
    return num_missing
