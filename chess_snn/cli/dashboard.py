"""A campaign as a picture in a terminal: what runs now, and the figures of its iterations."""

import math
import time
from collections.abc import Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.filesize import decimal
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from chess_snn.campaign.store.match_facts import MatchFacts
from chess_snn.campaign.store.plans import campaign_length
from chess_snn.campaign.viewing.events import (
    StageProgress,
    WorkerProgress,
    WorkersProgress,
)
from chess_snn.campaign.viewing.figures import shown_at
from chess_snn.campaign.viewing.lines import MOST_WORKERS, duration, ladder_test_line, learnt_lines
from chess_snn.campaign.viewing.live import WriterState
from chess_snn.campaign.viewing.results import RATING_COLUMNS, iteration_columns, match_columns
from chess_snn.campaign.viewing.watching import CampaignView
from chess_snn.cli.console import console as terminal
from chess_snn.cli.console import print_message, table_of
from chess_snn.evaluation.ratings.result import Rating
from chess_snn.wording import counted

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


def matches_table(title: str, matches: Sequence[MatchFacts]) -> Table:
    """A line a match; in a game of one player with its points."""
    return table_of(title, matches, match_columns(matches))


def ratings_table(title: str, ratings: Sequence[Rating]) -> Table:
    """A line a player."""
    return table_of(title, ratings, RATING_COLUMNS, left=("player",))


def print_summary(view: CampaignView) -> None:
    """Print the iterations as a table, the newest matches as another, alarms and faults."""
    if view.rows:
        columns = iteration_columns(view.folder.config, "status")
        terminal.print(table_of(f"campaign {view.folder.name}", view.rows, columns))
    evaluated = [receipt for receipt in view.receipts if receipt.matches]
    if evaluated:
        title = f"generation {evaluated[-1].training.generation}"
        terminal.print(matches_table(title, evaluated[-1].matches))
        if (ladder_test := evaluated[-1].ladder_test) is not None:
            print_message(ladder_test_line(ladder_test))
    for decided in [each.promotion for each in view.receipts if each.promotion is not None][-1:]:
        print_message(f"The last candidate: {decided}.")
    if view.final_matches:
        terminal.print(matches_table("at the end of the campaign", view.final_matches))
    alarms = [f"ALARM {alarm}" for alarm in view.alarms]
    for line in [*learnt_lines(view.receipts), *alarms, *view.faults]:
        print_message(line)


def dashboard(view: CampaignView, console: Console) -> RenderableType:
    """The picture of ``view``, for the size and encoding of ``console``."""
    parts: list[RenderableType] = [_header(view), _stages(view)]
    parts += [Text(f"ALARM {alarm}", style="bold red") for alarm in view.alarms]
    parts += [Text(fault, style="bold red") for fault in view.faults]
    parts.append(_curves(view, console))
    if view.final_matches:
        parts.append(matches_table("at the end of the campaign", view.final_matches))
    parts.append(workers_table(view.workers))
    disk = f"disk {decimal(view.disk.used_bytes)}, {decimal(view.disk.free_bytes)} free"
    parts.append(Text(disk, style="dim"))
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
    bar = Table.grid(padding=(0, 1))
    bar.add_row(
        ProgressBar(total=1.0, completed=view.progress, width=_BAR_WIDTH), _progress_text(view)
    )
    parts: list[RenderableType] = [title, state, bar]
    parts.append(f"{counted(len(view.receipts), 'iteration')} finished{champion}")
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
            Text(f"  {worker.name}"), counted(worker.games, "game"), f"{worker.games_per_s:,.1f}/s",
            worker.gpu_text,
            f"{worker.cores:.1f} cores, {worker.memory_bytes / _GIB:.1f} GiB",
            f"seen {worker.quiet_s:.0f} s ago", Text(worker.doing or "idle", style="dim"),
        )
    return Group(line, table)


def describe_writer(view: CampaignView) -> str:
    """Whether a process runs the campaign, and which one; else how it goes on."""
    if view.is_finished or view.may_run:
        return view.state_text
    return f"{view.state_text}; go on with it: chess-snn campaign resume {view.folder.path}"


def state_lines(view: CampaignView) -> list[str]:
    """Describe in lines what runs now: progress, process, stages, and all workers together."""
    lines = [_progress_text(view), describe_writer(view)]
    if view.may_run and not view.is_finished:
        lines += map(str, view.stages)
        lines += [str(WorkersProgress(tuple(view.workers)))] if view.workers else []
    return lines


def _progress_text(view: CampaignView) -> str:
    left = None if view.is_finished else view.seconds_left
    rest = "" if left is None else f", {duration(left)} left"
    return f"{view.progress:.0%}, run for {duration(view.elapsed_s)}{rest}"


def _curves(view: CampaignView, console: Console) -> RenderableType:
    """A line for each figure that was measured: its curve, and the newest value or interval."""
    levels = BLOCKS if console.encoding.startswith("utf") else PLAIN
    width = max(1, min(_MOST_POINTS, console.width - _LABEL_WIDTH - _FIGURES_WIDTH))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=_LABEL_WIDTH, no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)

    for figure in shown_at(view.folder.config, "watch"):
        measured = [row for row in view.rows if row[figure.name] is not None]
        if measured:
            ends = (0.0, 1.0) if figure.low is not None and figure.form == ".3f" else (None, None)
            values = [row[figure.name] for row in measured]
            curve = sparkline(values, width, low=ends[0], high=ends[1], levels=levels)
            newest = figure.text(measured[-1])
            grid.add_row(Text(figure.title), Text(curve, style="cyan"), Text(newest))
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
