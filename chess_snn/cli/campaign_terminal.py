"""A campaign in a terminal: a live bar a stage, a line an iteration, a table at the end."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from chess_snn.campaign import CampaignFolder, Receipt
from chess_snn.campaign.strength.matches import read_final_matches
from chess_snn.campaign.viewing.alarms import Alarm, find_alarms
from chess_snn.campaign.viewing.live import WorkerProgress, summary
from chess_snn.campaign.viewing.results import result_row, result_rows
from chess_snn.cli.campaign_tables import (
    SHORT_COLUMNS,
    climb_line,
    columns_of,
    figure,
    iteration_line,
    matches_table,
    rows_table,
)
from chess_snn.cli.console import LINE_PERIOD_S, console, print_message
from chess_snn.cli.workers_table import workers_table

_WORKERS_PERIOD_S = 60.0
"""Between lines of the workers, where there is no terminal for a table."""


class TerminalListener:
    """Hears a campaign and shows it; on something that is no terminal, plain lines instead."""

    def __init__(self) -> None:
        self._workers: Sequence[WorkerProgress] = ()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[pace]}"),
            console=console,
        )
        self._lock = threading.Lock()
        self._bars: dict[tuple[int, str], TaskID] = {}
        self._next_lines_s: dict[tuple[int, str], float] = {}
        self._next_workers_s = time.monotonic() + _WORKERS_PERIOD_S

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show the bar for the length of the block."""
        if console.is_terminal:
            with Live(console=console, transient=True, get_renderable=self._picture):
                yield
        else:
            yield

    def _picture(self) -> RenderableType:
        return Group(self._bar, workers_table(self._workers))

    def workers(self, workers: Sequence[WorkerProgress]) -> None:
        """Show them beneath the bars; without a terminal, a line of all together now and then."""
        self._workers = workers
        if not console.is_terminal and workers and time.monotonic() >= self._next_workers_s:
            self._next_workers_s = time.monotonic() + _WORKERS_PERIOD_S
            print_message(summary(workers))

    def message(self, text: str) -> None:
        """A line above the bar."""
        print_message(text)

    # The library's command line does not import tasks: progress is any object with these fields.
    def stage(self, progress: Any) -> None:
        """Move the stage's bar, or print a line now and then."""
        left = progress.seconds_left
        pace = f"{progress.per_s:,.1f} {progress.unit}/s"
        pace += f", {left:,.0f} s left" if left is not None else ""
        label = f"iteration {progress.iteration} {progress.stage.replace('_', '-')}"
        with self._lock:
            if console.is_terminal:
                self._move_bar(progress, label, pace)
            else:
                self._print_now_and_then(progress, label, pace)

    def _move_bar(self, progress: Any, label: str, pace: str) -> None:
        key = (progress.iteration, progress.stage)
        if progress.has_ended:
            if (bar := self._bars.pop(key, None)) is not None:
                self._bar.remove_task(bar)
            return
        if key not in self._bars:
            self._bars[key] = self._bar.add_task(label, pace=pace)
        self._bar.update(
            self._bars[key], completed=progress.done, total=progress.total or None, pace=pace
        )

    def _print_now_and_then(self, progress: Any, label: str, pace: str) -> None:
        key = (progress.iteration, progress.stage)
        due_s = self._next_lines_s.setdefault(key, LINE_PERIOD_S)
        if progress.has_ended:
            del self._next_lines_s[key]
        elif progress.seconds < due_s:
            return
        else:
            self._next_lines_s[key] = progress.seconds + LINE_PERIOD_S
        total = f"/{progress.total:,}" if progress.total else ""
        print_message(f"{label}: {progress.done:,}{total} {progress.unit}, {pace}")

    def iteration_finished(self, receipt: Receipt, alarms: Sequence[Alarm]) -> None:
        """A line with the figures that matter, and one for each new alarm."""
        self.message(iteration_line(result_row(receipt)))
        for alarm in alarms:
            self.message(f"ALARM {alarm}")


def print_summary(folder: CampaignFolder, receipts: Sequence[Receipt]) -> None:
    """The finished iterations as a table, the newest matches as another, and the alarms."""
    if not receipts:
        return
    rows = result_rows(folder.config, receipts)
    columns = columns_of(folder.config, SHORT_COLUMNS)
    console.print(rows_table(f"campaign {folder.name}", rows, columns, lean=True))
    evaluated = [receipt for receipt in receipts if receipt.matches]
    if evaluated:
        title = f"generation {evaluated[-1].training.generation}"
        console.print(matches_table(title, evaluated[-1].matches))
        if (climb := evaluated[-1].climb) is not None:
            print_message(climb_line(climb))
    if gates := [receipt.promotion for receipt in receipts if receipt.promotion is not None]:
        print_message(f"The last candidate: {gates[-1]}.")
    if finals := read_final_matches(folder):
        console.print(matches_table("at the end of the campaign", finals))
    print_message(
        "Value loss on held-out games: "
        f"{figure(rows[0], 'holdout_value_loss_before', '.3f')} before the first training, "
        f"{figure(rows[-1], 'holdout_value_loss_after', '.3f')} after the last."
    )
    for alarm in find_alarms([receipt.metrics() for receipt in receipts]):
        print_message(f"ALARM {alarm}")
