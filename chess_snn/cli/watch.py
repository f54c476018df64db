"""``chess-snn watch``: how a campaign goes, while it does."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live

from chess_snn.campaign.viewing.watching import CampaignView, CampaignWatch
from chess_snn.cli.console import console, print_message
from chess_snn.cli.dashboard import dashboard
from chess_snn.cli.watch_lines import WatchLines
from chess_snn.config import check_range


def watch_command(
    directory: Annotated[Path, typer.Argument(help="The campaign folder.")],
    simple: Annotated[
        bool,
        typer.Option("--simple", help="Plain lines, one a change; always so without a terminal."),
    ] = False,
    every: Annotated[float, typer.Option(help="Seconds between two looks at the folder.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show how it is now, and end.")] = False,
) -> None:
    """Watch a campaign from its folder alone: here, or wherever its disk can be read.

    Ends with the campaign, or with Ctrl-C; the campaign does not notice. One that was stopped may
    be resumed meanwhile.

    chess-snn watch campaigns/cpu-001
    """
    check_range("--every", every, ge=0.1, le=3600)
    views = _views(directory, every, once)
    try:
        if simple or not console.is_terminal or console.is_dumb_terminal:
            _print_lines(views)
        else:
            _draw(views)
    except KeyboardInterrupt:
        # How a watch is meant to end.
        raise typer.Exit(0) from None


def _views(directory: Path, every_s: float, once: bool) -> Iterator[CampaignView]:
    """A view now and every so often, until the campaign is finished."""
    watch = CampaignWatch(directory)
    while True:
        view = watch.look()
        yield view
        if once or view.is_finished:
            return
        time.sleep(every_s)


def _print_lines(views: Iterator[CampaignView]) -> None:
    lines = WatchLines()
    for view in views:
        for line in lines.news(view):
            print_message(line)


def _draw(views: Iterator[CampaignView]) -> None:
    with Live(console=console, auto_refresh=False) as live:
        for view in views:
            live.update(dashboard(view, console), refresh=True)
