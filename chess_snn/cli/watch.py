"""A campaign while it runs: in the terminal that runs it, and in ``chess-snn watch``.

The picture of a campaign shows what runs now, and the figures of its iterations.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Annotated, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.filesize import decimal
from rich.live import Live as LivePicture
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from chess_snn.campaign.store.plans import campaign_length
from chess_snn.campaign.viewing.events import (
    Event,
    Listener,
    StageProgress,
    WorkerProgress,
    WorkersProgress,
)
from chess_snn.campaign.viewing.lines import (
    MOST_WORKERS,
    NowAndThen,
    duration,
    elo_interval,
    event_lines,
    interval,
    iteration_line,
    match_line,
)
from chess_snn.campaign.viewing.live import Live, WriterState
from chess_snn.campaign.viewing.results import CURVES, opponents_of, score_column
from chess_snn.campaign.viewing.watching import CampaignView, CampaignWatch
from chess_snn.cli.console import Keyboard, console, has_keyboard, print_message
from chess_snn.cli.options import CampaignArgument
from chess_snn.cli.results import matches_table
from chess_snn.config import check_range
from chess_snn.report.columns import column
from chess_snn.types import Json

_BAR_WIDTH: Final = 30
_STAGE_BAR_WIDTH: Final = 20
_LABEL_WIDTH: Final = 20
_FIGURES_WIDTH: Final = 30
"""Characters of a line that the newest figures need."""
_MOST_POINTS: Final = 60

_STATE_STYLES: Final = {
    WriterState.RUNNING: "green", WriterState.STOPPED: "red", WriterState.ELSEWHERE: "yellow",
}
BLOCKS: Final = "▁▂▃▄▅▆▇█"
PLAIN: Final = "_.-=+*%#"
"""Levels of a curve, and those for a terminal whose encoding lacks them."""
_GIB: Final = 2**30


def dashboard(view: CampaignView, console: Console) -> RenderableType:
    """The picture of ``view``, for the size and encoding of ``console``."""
    parts: list[RenderableType] = [_header(view), _stages(view)]
    parts += [Text(f"ALARM {alarm}", style="bold red") for alarm in view.alarms]
    parts.append(_curves(view, console))
    if view.final_matches:
        parts.append(matches_table("at the end of the campaign", view.final_matches))
    parts.append(workers_table(view.workers))
    parts.append(_resources(view))
    return Group(*parts)


def _header(view: CampaignView) -> RenderableType:
    title = Text(f"campaign {view.folder.name}", style="bold")
    title.append(f"  {campaign_length(view.folder)}", style="not bold")
    if view.is_finished:
        state = Text("finished", style="green")
    else:
        style = _STATE_STYLES[view.writer.state] if view.writer else "yellow"
        state = Text(describe_writer(view), style=style)
    champion = "" if view.champion is None else f", champion gen {view.champion}"
    left = None if view.is_finished else view.seconds_left
    bar = Table.grid(padding=(0, 1))
    bar.add_row(
        ProgressBar(total=1.0, completed=view.progress, width=_BAR_WIDTH),
        f"{view.progress:.0%}, run for {duration(view.elapsed_s)}"
        + ("" if left is None else f", {duration(left)} left"),
    )
    parts: list[RenderableType] = [title, state, bar]
    parts.append(f"{len(view.receipts):,} iterations finished{champion}")
    if played := [r.promotion for r in view.receipts if r.promotion is not None]:
        parts.append(Text(f"last candidate: {played[-1]}", style="dim"))
    return Group(*parts)


def _stages(view: CampaignView) -> RenderableType:
    now_s, more = time.time(), [""] * len(view.stages)
    if view.is_running and view.writer is not None:
        begun_s = view.writer.since.timestamp()
        more = [f", for {duration(max(0.0, now_s - max(stage.begun_s, begun_s)))}"
                for stage in view.stages]
    parts = [stage_bars(view.stages, more)]
    if not view.is_finished and not view.is_running:
        quiet_s = max(0.0, now_s - view.last_sign_s)
        parts.append(Text(f"  last written to {duration(quiet_s)} ago", style="dim"))
    return Group(*parts)


def stage_bars(stages: Sequence[StageProgress], more: Sequence[str] = ()) -> RenderableType:
    """A line a stage: a bar where something is counted, its progress, and its text in ``more``."""
    grid = Table.grid(padding=(0, 1))
    for stage, rest in zip(stages, more or [""] * len(stages), strict=True):
        total = stage.total or None  # without a total the bar pulses
        bar = ProgressBar(total=total, completed=stage.done, width=_STAGE_BAR_WIDTH)
        grid.add_row("", bar if stage.unit else "", Text(f"{stage}{rest}"))
    return grid


def workers_table(workers: Sequence[WorkerProgress]) -> RenderableType:
    """One line for all together and, if they are few, a row for each; nothing without any."""
    if not workers:
        return Group()
    line = Text(str(WorkersProgress(tuple(workers))), style="dim")
    if len(workers) > MOST_WORKERS:
        return line
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    for _ in range(5):
        table.add_column(no_wrap=True, justify="right")
    table.add_column()  # the one that is wrapped in a narrow terminal
    for worker in workers:
        table.add_row(
            Text(f"  {worker.name}"), f"{worker.games:,} games", f"{worker.games_per_s:,.1f}/s",
            worker.gpu_text,
            f"{worker.cores:.1f} cores, {worker.memory_bytes / _GIB:.1f} GiB",
            f"seen {worker.quiet_s:.0f} s ago", Text(worker.doing or "idle", style="dim"),
        )
    return Group(line, table)


def describe_writer(view: CampaignView) -> str:
    """Whether a process runs the campaign, and which one."""
    if view.writer is None:
        return "not begun: no process has run it yet"
    if view.writer.state is WriterState.STOPPED:
        return f"{view.writer}; go on with it: chess-snn campaign resume {view.folder.path}"
    return str(view.writer)


def _curves(view: CampaignView, console: Console) -> RenderableType:
    """A line for each figure that was measured: its curve, and the newest value or interval."""
    levels = BLOCKS if console.encoding.startswith("utf") else PLAIN
    width = max(1, min(_MOST_POINTS, console.width - _LABEL_WIDTH - _FIGURES_WIDTH))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=_LABEL_WIDTH, no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)

    def draw(
        label: str, name: str, newest: Callable[[Json], str], low: float | None = None,
        high: float | None = None,
    ) -> None:
        measured = [row for row in view.rows if row.get(name) is not None]
        if measured:
            values = [row[name] for row in measured]
            curve = sparkline(values, width, low=low, high=high, levels=levels)
            grid.add_row(Text(label), Text(curve, style="cyan"), Text(newest(measured[-1])))

    for label, name, form in CURVES:
        draw(label, name, column(name, form))
    if any(row["score"] is not None for row in view.rows):
        grid.add_row(Text("score against", style="bold"), "", Text("95 % interval", style="dim"))
        for opponent in opponents_of(view.folder.config):
            newest = partial(interval, opponent=opponent)
            draw(f"  {opponent}", score_column(opponent), newest, 0.0, 1.0)
        draw("Elo", "elo", elo_interval)
    return grid


def sparkline(
    values: Sequence[float], width: int, *, low: float | None = None, high: float | None = None,
    levels: str = BLOCKS,
) -> str:
    """The newest ``width`` of ``values``, one character each, the oldest first.

    Args:
        values: those that are not finite are left out.
        width: most characters.
        low: the value of the lowest level; by default the least of those shown.
        high: the value of the highest level; by default the greatest of those shown.
        levels: the characters, lowest first.
    """
    shown = [value for value in values if math.isfinite(value)][-width:]
    if not shown:
        return ""
    bottom, top = min(shown) if low is None else low, max(shown) if high is None else high
    if top == bottom:
        return levels[(len(levels) - 1) // 2] * len(shown)
    numbers = (math.floor((value - bottom) / (top - bottom) * len(levels)) for value in shown)
    return "".join(levels[min(len(levels) - 1, max(0, number))] for number in numbers)


def _resources(view: CampaignView) -> Text:
    line = f"disk {decimal(view.disk.used_bytes)}, {decimal(view.disk.free_bytes)} free"
    if (use := view.processes) is not None:
        line += (
            f"; processes: {use.num_processes}, using {use.cores:.1f} cores and "
            f"{decimal(use.memory_bytes)} of memory"
        )
    return Text(line, style="dim")


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
    """Watch a campaign from its folder alone: here, or wherever its disk can be read.

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
            for row in view.rows[-1:]:
                print_message(iteration_line(row))
            for alarm in view.alarms:
                print_message(f"ALARM {alarm}")
        elif log.exists():
            with log.open(encoding="utf-8") as lines:
                lines.seek(num_read)
                for line in lines.readlines():
                    print_message(line.rstrip("\n"))
                num_read = lines.tell()
        if view.is_finished:
            for match in view.final_matches:
                print_message(match_line(match))
            print_message(
                f"finished: {len(view.receipts)} iterations in {duration(view.elapsed_s)}"
            )
        elif writer != (writer := describe_writer(view)):
            print_message(writer)
