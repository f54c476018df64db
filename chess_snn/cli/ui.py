"""``chess-snn ui``: look at a campaign in Prefect and MLflow."""

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from chess_snn.campaign import CampaignFolder
from chess_snn.cli.console import announce_once
from chess_snn.cli.orchestration import load_flows
from chess_snn.errors import without_credentials


def ui_command(
    directory: Annotated[Path, typer.Argument(help="The campaign folder.")],
) -> None:
    """Serve the campaign's Prefect and MLflow pages on this machine until Ctrl-C."""
    folder = CampaignFolder.open(directory)
    servers = load_flows("servers")
    shared: list[str] = []
    with (
        servers.prefect_server(
            folder.services, progress=announce_once(), tell=shared.append
        ) as prefect_url,
        servers.mlflow_server(
            folder.services, progress=announce_once(), tell=shared.append
        ) as mlflow_url,
    ):
        for line in shared:
            typer.echo(line)
        typer.echo(without_credentials(f"Prefect  {prefect_url.removesuffix('/api')}"))
        typer.echo(without_credentials(f"MLflow   {mlflow_url}"))
        typer.echo("Ctrl-C ends what was started here." if shared else "Ctrl-C ends both.")
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        try:
            stop.wait()
        except KeyboardInterrupt:
            typer.echo("stopping")

