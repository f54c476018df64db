"""Run a campaign from this process with the servers it needs."""

from prefect import flow, tags

from chess_snn.campaign import CampaignFolder, campaign_lock
from chess_snn.campaign.strength.matches import is_finished
from chess_snn.campaign.viewing.events import Listener, Message
from chess_snn.types import LogFn
from flows.campaign import campaign, run_campaign
from flows.campaign_runs import campaign_tag, close_stale_flow_runs
from flows.listeners import listening
from flows.servers import has_prefect_server, prefect_server
from tasks.record import open_tracker, record_missing
from tasks.tracking import tracking_uri


def launch_campaign(folder: CampaignFolder, listener: Listener) -> None:
    """Run what is left of the campaign in ``folder``; nothing is left running afterwards.

    Args:
        folder: the campaign, which the caller has checked
            (:func:`chess_snn.campaign.integrity.preflight.check_before_run`).
        listener: receives its events.

    Raises:
        CampaignLockedError: another process is at it.
    """
    @flow(name=campaign.name, flow_run_name=lambda: folder.name)
    def locked_campaign(directory: str) -> None:
        """The campaign in ``directory``, whose lock this process has."""
        run_campaign(folder)

    with (
        campaign_lock(folder),  # before a server is started
        prefect_server(folder.services, tell=lambda text: listener(Message(text))),
        tags(campaign_tag(folder.campaign_id)),
        listening(listener),
    ):
        locked_campaign(str(folder.path))


def record_campaign(folder: CampaignFolder, tell: LogFn) -> int:
    """Tell both views what they lack of a campaign, without running any of it.

    MLflow is told the iterations it lacks. In Prefect, runs are closed that a process left open
    which was killed after its last commit.

    Args:
        folder: the campaign.
        tell: receives a message about the Prefect server in use.

    Returns:
        How many finished iterations MLflow lacked.

    Raises:
        CampaignLockedError: another process is at it.
        TrackingError: the store is away.
    """
    with campaign_lock(folder):
        num_missing = _record_in_mlflow(folder)
        if has_prefect_server(folder.services):
            with prefect_server(folder.services, tell=tell):
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
