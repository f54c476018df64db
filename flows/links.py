"""Where the pages of a run are, in Markdown."""

from chess_snn.campaign import CampaignFolder
from chess_snn.errors import without_credentials
from tasks.tracking import is_server


def mlflow_link(folder: CampaignFolder, tracking_uri: str) -> str:
    """The campaign's curves; where MLflow has no server, the command that starts one."""
    if is_server(tracking_uri):
        url = without_credentials(tracking_uri)
        return f"[{url}]({url})"
    return f"`chess-snn ui {folder.path}` shows the curves"
