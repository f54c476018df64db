"""``chess-snn web``: a local page to play, watch a search and its spikes, and read a campaign."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chess_snn.cli.console import print_message
from chess_snn.cli.options import NetworkDeviceOption
from chess_snn.cli.orchestration import load_web, registered_versions
from chess_snn.known import KNOWN_MODELS
from chess_snn.later import to_run
from chess_snn.ports import check_port

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.campaign.models.references import REGISTERED, find_model
    from chess_snn.credentials import read_credentials
    from chess_snn.experiment.judging import FILE as EXPERIMENT


def web_command(
    model: Annotated[
        str | None,
        typer.Option(help=f"A network to offer beside the shipped ones: {KNOWN_MODELS}. Of a "
                     "campaign all generations are offered, of a registry the newest versions."),
    ] = None,
    campaign: Annotated[
        Path | None,
        typer.Option(help="Folder of a campaign, or an experiment, to watch; by default the "
                     "campaign of --model."),
    ] = None,
    host: Annotated[
        str,
        typer.Option(help="Address of this machine to serve on; others than loopback need a "
                     "password, in CHESS_SNN_CREDENTIALS or the file CHESS_SNN_CREDENTIALS_FILE."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="TCP port to serve on.")] = 8642,
    threads: Annotated[int, typer.Option(min=1, max=1024, help="Of each search's network.")] = 1,
    device: NetworkDeviceOption = "cpu",
) -> None:
    """Serve a page to play, see spikes and watch a campaign.

    Open the address that it prints in a browser; Ctrl-C ends it. A campaign is only read, and may
    run elsewhere meanwhile.

    chess-snn web

    chess-snn web --model campaigns/cpu-001

    chess-snn web --campaign /mnt/shared/campaigns/cpu-001 --port 8700
    """
    server, networks = load_web("server"), load_web("networks")
    credentials = read_credentials()
    settings = server.WebSettings(
        host=host, port=port, credentials=None if credentials is None else credentials.text
    )
    named = [] if model is None else [model]
    versions = None
    if model is not None:
        found = find_model(model)  # a missing model is reported here, not in the browser
        if found.campaign is not None or model.startswith(REGISTERED):
            versions = networks.RegisteredVersions(
                partial(registered_versions, found.game, _registered_name(model)), found.game
            )
            versions.entries()  # they are known when the page is opened
        if campaign is None and found.campaign is not None:
            campaign = found.campaign.path
    page = None if campaign is None else (
        server.ExperimentPage if (campaign / EXPERIMENT).exists() else server.CampaignPage
    )(campaign)
    check_port(host, port, "page's server", "--port")
    place = load_web("searching").Place(device=device, threads=threads)
    offered = networks.Networks(
        find_model, named, None if page is None else page.folder, versions
    )
    if model is not None:
        offered.find(model)  # a registered one is known before the page asks
    app = server.make_app(offered, page, settings, place)
    print_message(f"the page is at {settings.url}\nCtrl-C ends it")
    server.serve(app, settings)
    print_message("ended: the page's server")


def _registered_name(model: str) -> str | None:
    """``chess-snn`` of ``models:/chess-snn@champion``."""
    if not model.startswith(REGISTERED):
        return None
    return re.split("[@/]", model.removeprefix(REGISTERED))[0]
