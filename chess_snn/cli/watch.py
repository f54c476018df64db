"""A campaign while it runs: in the terminal that runs it, and in ``chess-snn watch``."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.live import Live as LivePicture
from rich.text import Text

from chess_snn.campaign.store.plans import describe_length
from chess_snn.campaign.viewing.events import (
    AlarmRaised,
    Event,
    IterationFinished,
    Listener,
    Message,
    StageProgress,
    WorkersProgress,
)
from chess_snn.campaign.viewing.lines import NowAndThen, duration, event_lines, match_line
from chess_snn.campaign.viewing.live import Live
from chess_snn.campaign.viewing.watching import CampaignView, CampaignWatch
from chess_snn.cli.console import console, print_message
from chess_snn.cli.dashboard import dashboard, describe_writer, stage_bars, workers_table
from chess_snn.cli.keyboard import Keyboard, has_keyboard
from chess_snn.cli.options import CampaignArgument
from chess_snn.config import check_range

_LEAVE_KEYS: Final = ("q", "Q")
_FOOTER: Final = "{keys} ends this view; the campaign goes on"
_MORE_GAMES: Final = 1.5
"""Workers are shown again once they have played so many times the games."""

Wait = Callable[[float], bool]
"""Waits for some seconds; False ends the watch."""


@contextmanager
def campaign_terminal() -> Iterator[Listener]:
    """A listener that shows a campaign for the length of the block.

    On a terminal, bars of the stages and a table of the workers stay below the lines of what has
    happened; elsewhere their progress is a line now and then.
    """
    live, is_due = Live(), NowAndThen()

    def listen(event: Event) -> None:
        nonlocal live
        live = live.after(event)
        is_drawn = console.is_terminal and isinstance(event, StageProgress | WorkersProgress)
        if not is_drawn and is_due(event):
            for line in event_lines(event):
                print_message(line)

    def picture() -> RenderableType:
        return Group(stage_bars(live.stages), workers_table(live.workers))

    if console.is_terminal:
        with LivePicture(console=console, transient=True, get_renderable=picture):
            yield listen
    else:
        yield listen


def watch_command(
    directory: CampaignArgument,
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
    events = FolderEvents()
    for view in views:
        for event in events.since_last(view):
            for line in event_lines(event):
                print_message(line)


def _draw(views: Iterator[CampaignView], footer: str) -> None:
    with LivePicture(console=console, auto_refresh=False) as live:
        for view in views:
            picture = dashboard(view, console)
            if not view.is_finished:
                picture = Group(picture, Text(footer, style="dim"))
            live.update(picture, refresh=True)


class FolderEvents:
    """The events that must have happened between one view of a campaign and the next."""

    def __init__(self) -> None:
        self._before: CampaignView | None = None
        self._writer = ""
        self._is_due = NowAndThen()
        self._worker_games = 0

    def since_last(self, view: CampaignView) -> Iterator[Event]:
        """Those up to ``view``; of the first view its state, newest iteration and alarms."""
        before, self._before = self._before, view
        if before is None:
            yield Message(f"campaign {view.folder.path}: {describe_length(view.folder)}")
        if not view.is_finished and (writer := describe_writer(view)) != self._writer:
            self._writer = writer
            yield Message(writer)
        # Fewer than before if receipts were removed, so that iterations are done again.
        num_known = max(0, len(view.receipts) - 1) if before is None else len(before.receipts)
        yield from map(IterationFinished, view.receipts[num_known:])
        known = set() if before is None else {(a.name, a.since_iteration) for a in before.alarms}
        yield from (AlarmRaised(alarm) for alarm in view.alarms
                    if (alarm.name, alarm.since_iteration) not in known)
        counts = {} if before is None else {stage.key: stage.done for stage in before.stages}
        for stage in view.stages:
            # The campaign's process reports a new count at every look.
            if counts.get(stage.key) != stage.done and (not stage.per_s or self._is_due(stage)):
                yield stage
        yield from self._workers(view, [] if before is None else [w.name for w in before.workers])
        if view.is_finished and (before is None or not before.is_finished):
            yield from map(Message, map(match_line, view.final_matches))
            yield Message(
                f"finished: {len(view.receipts)} iterations in {duration(view.elapsed_s)}"
            )

    def _workers(self, view: CampaignView, names_before: list[str]) -> Iterator[Event]:
        """All of them if one has come or gone, or they have played half as many games again."""
        names, games = [w.name for w in view.workers], sum(w.games for w in view.workers)
        if names and (names != names_before or games > _MORE_GAMES * self._worker_games):
            self._worker_games = games
            yield WorkersProgress(tuple(view.workers))
