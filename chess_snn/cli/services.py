"""``chess-snn up``, ``down`` and ``ui``: servers, a worker, and a campaign's pages."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chess_snn.cli.console import print_message, stoppable
from chess_snn.cli.orchestration import ask_mlflow, load_flows
from chess_snn.errors import CampaignLockedError, ChessSnnError, without_credentials
from chess_snn.interrupts import interruptible
from chess_snn.later import to_run
from chess_snn.wording import counted

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.campaign import CampaignFolder
    from chess_snn.campaign.store.naming import services_directory
    from chess_snn.credentials import read_credentials


def up_command(
    host: Annotated[
        str,
        typer.Option(help="Address of this machine for both servers; others than loopback need a "
                     "password, in CHESS_SNN_CREDENTIALS or the file CHESS_SNN_CREDENTIALS_FILE."),
    ] = "127.0.0.1",
    prefect_port: Annotated[int, typer.Option(help="Of the Prefect server.")] = 4200,
    mlflow_port: Annotated[int, typer.Option(help="Of the MLflow server.")] = 5000,
    runs: Annotated[
        int, typer.Option(help="Runs at once on this machine; a campaign takes all of it.")
    ] = 1,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay here until Ctrl-C, as under systemd.")
    ] = False,
) -> None:
    """Start a Prefect server, an MLflow server and a worker.

    They stay until `chess-snn down`. Their data is in $CHESS_SNN_HOME/services, by default
    ~/chess-snn/services, and campaigns of deployed runs go beside it. What is up already is found.

    chess-snn up

    chess-snn up --prefect-port 4300 --mlflow-port 5300

    CHESS_SNN_CREDENTIALS=me:a-long-password chess-snn up --host gpu-box
    """
    services, directory = load_flows("services"), services_directory()
    settings = services.ServiceSettings(
        host=host, prefect_port=prefect_port, mlflow_port=mlflow_port, runs=runs,
        credentials=read_credentials(),
    )
    running = services.find_running(directory)
    if running is not None:
        summary = running.summary or f"it is starting them; see {directory}/up.log"
        print_message(f"already up, by process {running.pid}\n{summary}")
        _print_sign_in(directory)
        return
    settings.check_ports()
    if not foreground:
        print_message("starting the services; the first time may take a minute")
        options = [
            "--host", host, "--prefect-port", str(prefect_port), "--mlflow-port", str(mlflow_port),
            "--runs", str(runs),
        ]
        services.start_in_background(options, directory, print_message)
        _print_sign_in(directory)
        return
    with stoppable("ended: worker, servers and all runs"), interruptible():
        load_flows("supervisor").run_services(directory, settings, print_message)


def _print_sign_in(directory: Path) -> None:
    """Print the link that signs a browser in; only here, for logs must not have it."""
    running = load_flows("services").find_running(directory)
    if running is not None and running.made_credentials:
        access = load_flows("prefect_access")
        link = access.sign_in_link(running.prefect_url, access.kept_credentials(directory))
        print_message(f"Prefect's page, for your browser alone: {link}")


def down_command() -> None:
    """End what `chess-snn up` started.

    A running campaign is stopped, and has 45 s for it; what it had committed is safe, and
    another run with the same directory goes on with it.
    """
    print_message("ending the services; a campaign has 45 s to stop")
    found = load_flows("services").stop_services(services_directory())
    print_message("ended: worker, servers and all runs" if found else "nothing is up")


def ui_command(
    directory: Annotated[Path, typer.Argument(help="The campaign folder.")],
) -> None:
    """Serve the campaign's Prefect and MLflow pages until Ctrl-C.

    MLflow shows all campaigns of $CHESS_SNN_HOME, by default ~/chess-snn, or those of the store
    that MLFLOW_TRACKING_URI names.
    """
    folder = CampaignFolder.open(directory)
    servers = load_flows("servers")
    _record_in_mlflow(folder)
    with (
        servers.prefect_server(folder.services, tell=print_message) as prefect_url,
        servers.mlflow_server(folder.services, tell=print_message) as mlflow_url,
    ):
        pages = {
            "Prefect": servers.page_link(prefect_url, folder.services), "MLflow ": mlflow_url,
        }
        pages |= ask_mlflow(
            "campaign_pages", folder, mlflow_url, problem="MLflow does not have this campaign"
        ) or {}
        for name, address in pages.items():
            print_message(without_credentials(f"{name}  {address}"))
        print_message("Ctrl-C ends what was started here")
        try:
            with interruptible():
                threading.Event().wait()
        except KeyboardInterrupt:
            print_message("stopping")


def _record_in_mlflow(folder: CampaignFolder) -> None:
    """Record what MLflow lacks: its store may be new, or the campaign older than it."""
    try:
        recorded = load_flows("finished").record_at_rest(folder)
    except CampaignLockedError:
        return  # the process that runs it records it
    except ChessSnnError as error:
        print_message(f"MLflow may lack iterations: {error}")
        return
    if recorded:
        print_message(f"recorded {counted(recorded, 'iteration')} that MLflow lacked")
