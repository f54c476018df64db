"""The terminal: lines, tables and bars."""

import json
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from chess_snn.interrupts import EXIT_INTERRUPTED

console = Console(highlight=False)

Row = TypeVar("Row")

_LINE_PERIOD_S: Final = 10.0
"""Between lines of progress, where there is no terminal for a bar."""


def print_message(text: str) -> None:
    """Print a line for people, which stays one line in a log file however long it is."""
    console.print(text, markup=False, soft_wrap=True)


def print_json(body: object) -> None:
    """Print ``body`` alone to standard output."""
    typer.echo(json.dumps(body, indent=2))


def make_table(title: str | None, *headings: str, left: Container[str] = ()) -> Table:
    """A table without rows. Columns are aligned to the right, or if in ``left`` to the left."""
    table = Table(
        title=None if title is None else Text(title),  # brackets in a name are no markup
        title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1),
    )
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right")
    return table


def table_of(
    title: str | None, rows: Iterable[Row], columns: Mapping[str, Callable[[Row], str]],
    left: Container[str] = (),
) -> Table:
    """A table of ``rows``; ``columns`` makes the cells by heading. See :func:`make_table`."""
    table = make_table(title, *columns, left=left)
    for row in rows:
        table.add_row(*(Text(cell(row)) for cell in columns.values()))
    return table


def print_rows(title: str | None, rows: Mapping[str, str]) -> None:
    """Print names and texts below ``title``, a line each."""
    if title is not None:
        print_message(title)
    width = max(map(len, rows))
    for name, text in rows.items():
        print_message(f"  {name:<{width}}  {text}")


@contextmanager
def stoppable(message: str) -> Iterator[None]:
    """Print ``message`` and exit with code 130 where Ctrl-C ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        print_message(message)
        raise typer.Exit(EXIT_INTERRUPTED) from None


@contextmanager
def work_bar(
    label: str, unit: str = "", *, quiet: bool = False
) -> Iterator[Callable[[int, int], None]]:
    """A bar for the length of the block, moved by calling it with (done, in all).

    Without a terminal, a line every ten seconds instead; nothing if ``quiet``, for then JSON alone
    goes to standard output.
    """
    if quiet:
        yield lambda done, total: None
        return
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
