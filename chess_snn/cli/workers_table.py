"""The workers of a campaign as a table."""

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from chess_snn.campaign.viewing.live import WorkerProgress, summary

MOST_ROWS: Final = 16
"""More workers are told of together alone."""

_GIB: Final = 2**30


def workers_table(workers: Sequence[WorkerProgress]) -> RenderableType:
    """A line of all together and, where they are few, a row for each; nothing without any."""
    if not workers:
        return Text("")
    line = Text(summary(workers), style="dim")
    if len(workers) > MOST_ROWS:
        return line
    table = Table.grid(padding=(0, 2))
    for column in range(7):
        table.add_column(no_wrap=True, justify="left" if column in (0, 6) else "right")
    for worker in workers:
        table.add_row(
            Text(f"  {worker.name}"), f"{worker.games:,} games", f"{worker.games_per_s:,.1f}/s",
            worker.gpu_text,
            f"{worker.cores:.1f} cores, {worker.memory_bytes / _GIB:.1f} GiB",
            f"seen {worker.quiet_s:.0f} s ago", Text(worker.doing or "idle", style="dim"),
        )
    return Group(line, table)
