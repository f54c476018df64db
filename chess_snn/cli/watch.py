"""A campaign while it runs: in the terminal that runs it, and in ``chess-snn watch``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.live import Live as LivePicture
from rich.text import Text

from chess_snn.cli.console import Keyboard, console, has_keyboard, print_message
from chess_snn.cli.options import CampaignArgument
from chess_snn.later import to_run
from chess_snn.settings import check_range
from chess_snn.wording import counted

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.campaign.store.plans import campaign_length
    from chess_snn.campaign.viewing.events import Event, Listener, StageProgress, WorkersProgress
    from chess_snn.campaign.viewing.lines import (
        NowAndThen,
        duration,
        event_lines,
        iteration_line,
        match_line,
    )
    from chess_snn.campaign.viewing.live import Live
    from chess_snn.campaign.viewing.watching import CampaignView, CampaignWatch
    from chess_snn.cli.dashboard import (
        dashboard,
        describe_writer,
        stage_bars,
        state_lines,
        workers_table,
    )

_LEAVE_KEYS: Final = ("q", "Q")


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
        typer.Option("--simple", help="Plain lines: the state, then the log as it grows. "
                     "Always so without a terminal."),
    ] = False,
    every: Annotated[float, typer.Option(help="Seconds between two looks at the folder.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show how it is now, and end.")] = False,
) -> None:
    """Watch a campaign from its folder alone.

    Ends with the campaign, with Ctrl-C, or on a terminal with q; the campaign does not notice. One
    that was stopped may be resumed meanwhile.

    chess-snn watch campaigns/cpu-001
    """
    check_range("--every", every, ge=0.1, le=3600)
    watch = CampaignWatch(directory)
    with ExitStack() as stack:
        stack.enter_context(suppress(KeyboardInterrupt, EOFError))
        if simple or not console.is_terminal or console.is_dumb_terminal:
            _print_lines(_views(watch, once, every))
        elif once:
            console.print(dashboard(watch.look(), console))
        else:
            keyboard = stack.enter_context(Keyboard()) if has_keyboard() else None
            live = stack.enter_context(LivePicture(console=console, auto_refresh=False))
            footer = f"{'q or ' if keyboard else ''}Ctrl-C ends this view; the campaign goes on"
            for view in _views(watch, once, every, keyboard):
                picture = dashboard(view, console)
                if not view.is_finished:
                    picture = Group(picture, Text(footer, style="dim"))
                live.update(picture, refresh=True)


def _views(
    watch: CampaignWatch, once: bool, every_s: float, keyboard: Keyboard | None = None
) -> Iterator[CampaignView]:
    """A view now and every so often, until the campaign is finished or a key ends the watch."""
    while True:
        view = watch.look()
        yield view
        if once or view.is_finished:
            return
        if keyboard is None:
            time.sleep(every_s)
        elif keyboard.read(every_s) in _LEAVE_KEYS:
            return


def _print_lines(views: Iterator[CampaignView]) -> None:
    """Print the state of the campaign, then its log as it grows, then its end."""
    num_read, writer = -1, ""
    for view in views:
        log = view.folder.log_file
        if num_read < 0:
            num_read = log.stat().st_size if log.exists() else 0
            print_message(f"campaign {view.folder.path}: {campaign_length(view.folder)}")
            lines = [iteration_line(row) for row in view.rows[-1:]]
            lines += [f"ALARM {alarm}" for alarm in view.alarms]
            if not view.is_finished:
                writer = describe_writer(view)
                lines += [*view.faults, *state_lines(view)]
            for line in lines:
                print_message(line)
        elif log.exists():
            with log.open(encoding="utf-8") as text:
                text.seek(num_read)
                for line in text.readlines():
                    print_message(line.rstrip("\n"))
                num_read = text.tell()
        if view.is_finished:
            for match in view.final_matches:
                print_message(match_line(match))
            for fault in view.faults:
                print_message(fault)
            iterations = counted(len(view.receipts), "iteration")
            print_message(f"finished: {iterations} in {duration(view.elapsed_s)}")
        elif writer != (writer := describe_writer(view)):
            print_message(writer)
