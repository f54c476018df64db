"""The terminal: lines, tables, bars, and single keys that are read at once and without Enter."""

import json
import os
import re
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Self, TypeVar

import typer
from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from chess_snn.errors import printable
from chess_snn.interrupts import EXIT_INTERRUPTED


class PrintableConsole(Console):
    """Writes out what a terminal would obey in a text, such as the name of a folder."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """The segments of ``renderable``; its styles, and what moves the cursor, stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


console = PrintableConsole(highlight=False)
errors = PrintableConsole(stderr=True, highlight=False, soft_wrap=True)

Row = TypeVar("Row")

_LINE_PERIOD_S: Final = 10.0
"""Between lines of progress, where there is no terminal for a bar."""

_ARROWS: Final = {"A": "up", "B": "down", "C": "right", "D": "left"}
_ARROW: Final = re.compile(r"\x1b[\[O](?P<arrow>[A-D])")
_SEQUENCE: Final = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]")
"""Any other key that a terminal writes as several characters."""
_END: Final = "\x04"
"""Ctrl-D."""
_ESCAPE: Final = "\x1b"
_ESCAPE_S: Final = 0.05
"""After which the first character of an arrow is a key of its own."""
_MOST_AT_ONCE: Final = 1024


def print_message(text: str) -> None:
    """Print a line for people, which stays one line in a log file however long it is."""
    console.print(text, markup=False, soft_wrap=True)


def print_notice(text: str) -> None:
    """Print a line to standard error, so that standard output can be taken as it is."""
    errors.print(text, markup=False)


def print_json(body: object) -> None:
    """Print ``body`` alone to standard output."""
    typer.echo(json.dumps(body, indent=2))


def make_table(title: str | None, *headings: str, left: Container[str] = ()) -> Table:
    """A table without rows. Columns are aligned to the right, or if in ``left`` to the left."""
    table = Table(
        title=None if title is None else Text(printable(title)),  # brackets in a name are no markup
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
        table.add_row(*(Text(printable(cell(row))) for cell in columns.values()))
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
    label: str, unit: str = "", *, beside_json: bool = False
) -> Iterator[Callable[[int, int], None]]:
    """A bar for the length of the block, moved by calling it with (done, in all).

    Without a terminal, a line every ten seconds instead. ``beside_json`` it goes to standard error.
    """
    output = errors if beside_json else console
    if not output.is_terminal:
        yield _line_now_and_then(label, unit, print_notice if beside_json else print_message)
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), TimeElapsedColumn())
    counter = (MofNCompleteColumn(), TextColumn(unit)) if unit else ()
    with Progress(*columns, *counter, console=output, transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _line_now_and_then(
    label: str, unit: str, print_line: Callable[[str], None]
) -> Callable[[int, int], None]:
    next_s = time.monotonic() + _LINE_PERIOD_S

    def tell(done: int, total: int) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + _LINE_PERIOD_S
            print_line(f"{label}: {done:,}/{total:,} {unit}")

    return tell


def has_keyboard() -> bool:
    """Whether standard input is a terminal whose keys this process may read.

    The terminal stops a process in the background that reads them.
    """
    if not sys.stdin.isatty():
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # not the terminal that controls this process: it has no background
        return True


class Keyboard:
    """Keys of the terminal behind standard input; Ctrl-C still raises KeyboardInterrupt.

    Inside the block the terminal hands keys over at once and does not echo them; it is as it was
    afterwards, whatever ends the block.
    """

    def __init__(self) -> None:
        self._file = sys.stdin.fileno()
        self._pending = ""

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._file)
        tty.setcbreak(self._file)
        return self

    def __exit__(self, *error: object) -> None:
        termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)

    def read(self, timeout_s: float | None = None) -> str:
        """The next key: a character, or ``left``, ``up``, ``right``, ``down``.

        Empty where none comes within ``timeout_s`` seconds (None: wait for one).

        Raises:
            EOFError: the input has ended, or Ctrl-D was pressed.
        """
        if not self._pending:
            if not select.select([self._file], [], [], timeout_s)[0]:
                return ""
            typed = os.read(self._file, _MOST_AT_ONCE)
            if not typed:
                raise EOFError
            self._pending = typed.decode("utf-8", "replace")
            if self._pending == _ESCAPE and select.select([self._file], [], [], _ESCAPE_S)[0]:
                self._pending += os.read(self._file, _MOST_AT_ONCE).decode("utf-8", "replace")
        found = _ARROW.match(self._pending) or _SEQUENCE.match(self._pending)
        length = 1 if found is None else found.end()
        key, self._pending = self._pending[:length], self._pending[length:]
        if key == _END:
            raise EOFError
        arrow = _ARROW.fullmatch(key)
        return key if arrow is None else _ARROWS[arrow["arrow"]]
