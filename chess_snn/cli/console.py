"""The terminal: lines, tables and bars."""

import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Final

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

console = Console(highlight=False)

_LINE_PERIOD_S: Final = 10.0
"""Between lines of progress, where there is no terminal for a bar."""


def print_message(text: str) -> None:
    """One line for people; one line in a log file too, however long."""
    console.print(text, markup=False, soft_wrap=True)


def make_table(
    title: str | None, *headings: str, left: Container[str] = (), lean: bool = False
) -> Table:
    """A table without rows. Columns are aligned to the right, or if in ``left`` to the left.

    ``lean`` is without lines between columns, so that more fit side by side.
    """
    table = Table(
        title=None if title is None else Text(title),  # brackets in a name are no markup
        title_justify="left",
        box=box.SIMPLE_HEAD if lean else box.HEAVY_HEAD,
        padding=(0, 0, 0, 1) if lean else (0, 1),
    )
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right")
    return table


@contextmanager
def work_bar(label: str, unit: str = "") -> Iterator[Callable[[int, int], None]]:
    """A bar for the length of the block, moved by calling it with (done, in all).

    On something that is no terminal, a line every ten seconds instead.
    """
    if not console.is_terminal:
        yield _line_now_and_then(label, unit)
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), TimeElapsedColumn())
    counter = (MofNCompleteColumn(), TextColumn(unit)) if unit else ()
    with Progress(*columns, *counter, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _line_now_and_then(label: str, unit: str) -> Callable[[int, int], None]:
    next_s = time.monotonic() + _LINE_PERIOD_S

    def tell(done: int, total: int) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + _LINE_PERIOD_S
            print_message(f"{label}: {done:,}/{total:,} {unit}")

    return tell
