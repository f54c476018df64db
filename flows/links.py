"""From a run's pages in Prefect to those in MLflow and back, in Markdown."""

from prefect.runtime import flow_run
from prefect.utilities.urls import url_for

from chess_snn.campaign import CampaignFolder
from chess_snn.errors import without_credentials
from flows.servers import is_embedded
from tasks.tracking import TrackingError, campaign_pages, is_server


def mlflow_link(folder: CampaignFolder, tracking_uri: str) -> str:
    """The campaign's curves in MLflow; without a server, the command that shows them."""
    if not is_server(tracking_uri):
        return _command(folder)
    try:
        page = campaign_pages(tracking_uri, folder, without_credentials(tracking_uri))["curves"]
    except TrackingError as error:
        return f"not recorded yet ({error})"
    return f"[{folder.name}]({page})"


def flow_run_link(folder: CampaignFolder) -> str:
    """The current flow run; of a server that ends with it, the command that starts it again."""
    if is_embedded(folder.services):
        return f"flow run {folder.name} ({flow_run.id}); {_command(folder)}"
    return f"[flow run {folder.name}]({url_for('flow-run', obj_id=flow_run.id)})"


def _command(folder: CampaignFolder) -> str:
    return f"`chess-snn ui {folder.path}` opens its page"
