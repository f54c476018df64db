"""``chess-snn ui``: look at a campaign in Prefect and MLflow."""

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from chess_snn.campaign import CampaignFolder
from chess_snn.cli.console import announce_once
from chess_snn.cli.orchestration import load_flows, load_tracking, tracking_store
from chess_snn.errors import CampaignLockedError, ChessSnnError, without_credentials


def ui_command(
    directory: Annotated[Path, typer.Argument(help="The campaign folder.")],
) -> None:
    """Serve the campaign's Prefect and MLflow pages on this machine until Ctrl-C.

    MLflow shows all campaigns of $CHESS_SNN_HOME, by default ~/chess-snn, or those of the store
    that MLFLOW_TRACKING_URI names.
    """
    folder = CampaignFolder.open(directory)
    servers = load_flows("servers")
    _record(folder)
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
        _print_pages(folder, mlflow_url)
        typer.echo("Ctrl-C ends what was started here." if shared else "Ctrl-C ends both.")
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        try:
            stop.wait()
        except KeyboardInterrupt:
            typer.echo("stopping")


def _record(folder: CampaignFolder) -> None:
    """Tell MLflow what it lacks: its store may be new, or the campaign older than it."""
    try:
        recorded = load_flows("launch").record_at_rest(folder)
    except CampaignLockedError:
        return  # the process that runs it records it
    except ChessSnnError as error:
        typer.echo(f"MLflow may lack iterations: {error}")
        return
    if recorded:
        typer.echo(f"recorded {recorded} iterations in MLflow, which lacked them")


def _print_pages(folder: CampaignFolder, mlflow_url: str) -> None:
    try:
        store = tracking_store()
        if store is None:
            typer.echo("MLflow does not have this campaign: it has no store yet")
            return
        pages = load_tracking().campaign_pages(store, folder, mlflow_url)
    except ChessSnnError as error:
        typer.echo(f"MLflow does not have this campaign: {error}")
        return
    for name, address in pages.items():
        typer.echo(without_credentials(f"  {name}  {address}"))
