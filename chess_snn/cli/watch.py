"""``chess-snn watch``: how a campaign goes, while it does."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from chess_snn.campaign.viewing.watching import CampaignView, CampaignWatch
from chess_snn.cli.console import console, print_message
from chess_snn.cli.dashboard import dashboard
from chess_snn.cli.keyboard import Keyboard, has_keyboard
from chess_snn.cli.watch_lines import WatchLines
from chess_snn.config import check_range

_LEAVE_KEYS: Final = ("q", "Q")
_FOOTER: Final = "{keys} ends this view; the campaign goes on"

Wait = Callable[[float], bool]
"""Waits for some seconds; False ends the watch."""


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

    Ends with the campaign, with Ctrl-C, or on a terminal with q; the campaign does not notice. One
    that was stopped may be resumed meanwhile.

    chess-snn watch campaigns/cpu-001
    """
    check_range("--every", every, ge=0.1, le=3600)
    watch = CampaignWatch(directory)
    try:
        if simple or not console.is_terminal or console.is_dumb_terminal:
            _print_lines(_views(watch, once, every, _sleep))
        elif once:
            console.print(dashboard(watch.look(), console))
        elif has_keyboard():
            with Keyboard() as keyboard:
                _draw(_views(watch, once, every, lambda seconds: _wait_for_key(keyboard, seconds)),
                      _FOOTER.format(keys="q or Ctrl-C"))
        else:
            _draw(_views(watch, once, every, _sleep), _FOOTER.format(keys="Ctrl-C"))
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _views(
    watch: CampaignWatch, once: bool, every_s: float, wait: Wait
) -> Iterator[CampaignView]:
    """A view now and every so often, until the campaign is finished or ``wait`` ends it."""
    while True:
        view = watch.look()
        yield view
        if once or view.is_finished or not wait(every_s):
            return


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return True


def _wait_for_key(keyboard: Keyboard, seconds: float) -> bool:
    """Wait, or until a key is pressed; False if it is one that ends the watch."""
    try:
        return keyboard.read(seconds) not in _LEAVE_KEYS
    except EOFError:
        return False


def _print_lines(views: Iterator[CampaignView]) -> None:
    lines = WatchLines()
    for view in views:
        for line in lines.news(view):
            print_message(line)


def _draw(views: Iterator[CampaignView], footer: str) -> None:
    with Live(console=console, auto_refresh=False) as live:
        for view in views:
            picture = dashboard(view, console)
            if not view.is_finished:
                picture = Group(picture, Text(footer, style="dim"))
            live.update(picture, refresh=True)
