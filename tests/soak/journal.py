"""What a soak says while it runs: on the terminal, and with the time in its log."""

import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

LOG = "soak.log"
STATUS_LINE_S = 15.0
"""Between two lines of progress where there is no terminal to show it in place."""


class Journal:
    """Lines with the seconds since the soak began; the log has the time of day too."""

    def __init__(self, out: Path) -> None:
        self.log = out / LOG
        self.console = Console(highlight=False)
        self._began = time.monotonic()
        self._status = self.console.status("starting")
        self._next_line_s = 0.0

    @property
    def elapsed_s(self) -> float:
        """Since the soak began."""
        return time.monotonic() - self._began

    def __enter__(self) -> "Journal":
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def say(self, text: str) -> None:
        """A line for the terminal and the log."""
        self.console.print(f"{self.elapsed_s:7.1f} s  {text}", markup=False, soft_wrap=True)
        self._write(f"{self.elapsed_s:9.1f} s  {text}")

    def progress(self, text: str) -> None:
        """How far it is: in place on a terminal, else a line now and then."""
        if self.console.is_terminal:
            self._status.update(text)
        elif self.elapsed_s >= self._next_line_s:
            self._next_line_s = self.elapsed_s + STATUS_LINE_S
            self.say(text)

    def show(self, table: Table) -> None:
        """A table, in both."""
        self.console.print(table)
        with self.log.open("a", encoding="utf-8") as log:
            Console(file=log, width=120).print(table)

    def _write(self, text: str) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}  {text}\n")
