"""Run a campaign from this process, with a Prefect server of its own unless one is given."""

from prefect import flow, tags

from chess_snn.campaign import CampaignFolder, campaign_lock
from chess_snn.campaign.viewing.events import Listener, Message
from flows.campaign import campaign, run_campaign
from flows.campaign_runs import campaign_tag
from flows.servers import prefect_server
from tasks import record
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
        run_campaign(folder, [listener])

    def tell(text: str) -> None:
        listener(Message(text))

    with (
        campaign_lock(folder),  # before a server is started
        prefect_server(folder.services, tell=tell),
        tags(campaign_tag(folder.campaign_id)),
    ):
        locked_campaign(str(folder.path))


def record_at_rest(folder: CampaignFolder) -> int:
    """Record what MLflow lacks of a campaign that no process runs; how many iterations it lacked.

    Raises:
        CampaignError: another process runs it, and records it; or its lock cannot be written.
        TrackingError: the store is away.
    """
    with campaign_lock(folder):
        return record.record_at_rest(folder, tracking_uri())
