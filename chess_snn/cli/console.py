"""A campaign in a terminal: one live bar, a line an iteration, a table at the end."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from chess_snn.campaign import CampaignFolder, Receipt

console = Console(highlight=False)


def print_message(text: str) -> None:
    """One line for people; one line in a log file too, however long."""
    console.print(text, markup=False, soft_wrap=True)


def announce_once() -> Callable[[str, float], None]:
    """A callback for (server, seconds waited) that says once of each that it is starting."""
    said: set[str] = set()

    def tell(server: str, seconds: float) -> None:
        del seconds
        if server not in said:
            said.add(server)
            print_message(f"starting the {server}: about 10 s the first time")

    return tell


class TerminalListener:
    """Hears a campaign and shows it; on something that is no terminal, plain lines instead."""

    _LINE_PERIOD_S = 10.0

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[pace]}"),
            console=console,
            transient=True,
        )
        self._lock = threading.Lock()
        self._task: TaskID | None = None
        self._next_line_s = self._LINE_PERIOD_S
        self._last_line = ("", 0)

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show the bar for the length of the block."""
        if console.is_terminal:
            with self._bar:
                yield
        else:
            yield

    def message(self, text: str) -> None:
        """A line above the bar."""
        print_message(text)

    # The library's command line does not import tasks: progress is any object with these fields.
    def stage(self, progress: Any) -> None:
        """Move the bar, or print a line now and then."""
        left = progress.seconds_left
        pace = f"{progress.per_s:,.1f} {progress.unit}/s"
        pace += f", {left:,.0f} s left" if left is not None else ""
        label = f"iteration {progress.iteration} {progress.stage.replace('_', '-')}"
        with self._lock:
            if not console.is_terminal:
                self._print_now_and_then(progress, f"{label}: ", pace)
                return
            if self._task is None:
                self._task = self._bar.add_task(label, pace=pace)
            self._bar.update(
                self._task, description=label, completed=progress.done,
                total=progress.total or None, pace=pace,
            )

    def _print_now_and_then(self, progress: Any, label: str, pace: str) -> None:
        line = (label, progress.done)
        if progress.seconds < 1:
            self._next_line_s = self._LINE_PERIOD_S
        elif progress.done == progress.total and line == self._last_line:
            return  # a finished stage is told of once more when its block ends
        elif progress.seconds >= self._next_line_s or progress.done == progress.total:
            self._next_line_s = progress.seconds + self._LINE_PERIOD_S
            self._last_line = line
            print_message(f"{label}{progress.done:,}/{progress.total:,} {progress.unit}, {pace}")

    def iteration_finished(self, receipt: Receipt, num_iterations: int) -> None:
        """A line with the figures that matter."""
        statistics = receipt.statistics
        self.message(
            f"iteration {receipt.iteration + 1}/{num_iterations}: "
            f"{statistics.games:,} games, {statistics.positions / receipt.seconds.self_play:,.0f} "
            f"positions/s, draws {statistics.draw_rate:.0%}, held-out value loss "
            f"{receipt.training.metrics['holdout_value_loss']:.3f} -> "
            f"{receipt.training.metrics['holdout_value_loss_after']:.3f}, "
            f"score {receipt.score:.3f}"
            + (", new champion" if receipt.promoted else "")
        )


def print_summary(folder: CampaignFolder, receipts: Sequence[Receipt]) -> None:
    """The finished iterations as a table, and the newest generation's matches as another."""
    if not receipts:
        return
    console.print(_iterations_table(folder, receipts))
    console.print(_matches_table(receipts[-1]))
    first, last = receipts[0].training.metrics, receipts[-1].training.metrics
    print_message(
        f"Value loss on held-out games: {first['holdout_value_loss']:.3f} before the first "
        f"training, {last['holdout_value_loss_after']:.3f} after the last."
    )


def _iterations_table(folder: CampaignFolder, receipts: Sequence[Receipt]) -> Table:
    table = Table(title=f"campaign {folder.name}", title_justify="left")
    for heading in (
        "iter", "games", "plies", "W/D/B %", "value loss", "entropy", "score", "champion", "s"
    ):
        table.add_column(heading, justify="right")
    for receipt in receipts:
        statistics, training = receipt.statistics, receipt.training.metrics
        rates = (statistics.white_rate, statistics.draw_rate, statistics.black_rate)
        seconds = receipt.seconds
        table.add_row(
            str(receipt.iteration),
            f"{statistics.games:,}",
            f"{statistics.plies_mean:.0f}",
            "/".join(f"{100 * rate:.0f}" for rate in rates),
            f"{training['holdout_value_loss_after']:.3f}",
            f"{training['policy_entropy']:.2f}",
            f"{receipt.score:.3f}",
            f"gen {receipt.champion}",
            f"{seconds.self_play + seconds.training + seconds.evaluation:,.0f}",
        )
    return table


def _matches_table(receipt: Receipt) -> Table:
    table = Table(title=f"generation {receipt.training.generation}", title_justify="left")
    for heading in ("against", "W-D-L", "capped", "score", "95 % interval"):
        table.add_column(heading, justify="right")
    for match in receipt.matches:
        table.add_row(
            match["player_b"],
            f"{match['wins']}-{match['draws']}-{match['losses']}",
            str(match["capped"]),
            f"{match['score']:.3f}",
            f"{match['score_low']:.3f} to {match['score_high']:.3f}",
        )
    return table
