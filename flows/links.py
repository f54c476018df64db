"""Links from Prefect's pages to the campaign's curves and report in MLflow, and back.

Without an MLflow server there is nothing that a browser may open from a page: it refuses the
addresses of files. The page then has the command that opens what it would link to.
"""

import logging
import re

import httpx
from prefect.artifacts import create_markdown_artifact
from prefect.runtime import flow_run
from prefect.utilities.urls import url_for

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.store.folder import REPORT
from chess_snn.errors import without_credentials
from chess_snn.flows.servers import is_embedded
from chess_snn.tasks.tracking import TrackingError, is_server, tracking_uri
from chess_snn.tasks.tracking.campaign_run import campaign_pages

_logger = logging.getLogger(__name__)


def artifact_key(folder: CampaignFolder) -> str:
    """Names the tables of a campaign: its history on Prefect's page has a version an iteration."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")
    return f"campaign-{name}-{folder.campaign_id[:8]}"


def link_report(folder: CampaignFolder) -> None:
    """Link the campaign's report in the current flow run; without it if Prefect is unreachable."""
    path = folder.path / REPORT
    try:
        create_markdown_artifact(
            f"**{folder.name}** as one page: {mlflow_link(folder, 'report')}\n\n"
            f"It is the file `{path}`; `chess-snn report {folder.path}` writes it again.",
            key=f"{artifact_key(folder)}-report", description=f"The report of {folder.name}",
        )
    except httpx.HTTPError as error:
        _logger.warning("the report is not linked in Prefect: %s", error)


def mlflow_link(folder: CampaignFolder, page: str = "curves") -> str:
    """A page of :func:`.campaign_pages`; without a server, the command that shows it."""
    uri = tracking_uri()
    if not is_server(uri):
        return _command(folder)
    try:
        address = campaign_pages(uri, folder, without_credentials(uri))[page]
    except TrackingError as error:
        return f"not recorded yet ({error})"
    return f"[{page} of {folder.name} in MLflow]({address})"


def flow_run_link(folder: CampaignFolder) -> str:
    """The current flow run; of a server that ends with it, the command that starts it again."""
    if is_embedded(folder.services):
        return f"flow run {folder.name} ({flow_run.id}); {_command(folder)}"
    return f"[flow run {folder.name}]({url_for('flow-run', obj_id=flow_run.id)})"


def _command(folder: CampaignFolder) -> str:
    return f"`chess-snn ui {folder.path}` opens its page"
