"""The table of a benchmark: figures, ratios within one run, and bars that they must pass."""

import inspect
import json
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TextIO

import typer

from chess_snn.cli.options import JsonFile
from chess_snn.cores import num_cores
from chess_snn.data import write_text

Quick = Annotated[bool, typer.Option(help="A few seconds only; figures are rough.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON; the table goes to stderr.")]

_VERDICTS = {None: "", True: " ok", False: " MISSED"}


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure, and the bar that it must pass, if it has one."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    predicted: float | None = None
    """By a model, without measuring."""

    @property
    def bar(self) -> str:
        """The bar as text; empty without one."""
        least = f"≥ {self.at_least:g}" if self.at_least is not None else ""
        return least + (f"≤ {self.at_most:g}" if self.at_most is not None else "")

    @property
    def passes(self) -> bool | None:
        """Whether the figure passes its bar; None without a bar."""
        if self.at_least is None and self.at_most is None:
            return None
        above = self.at_least is None or self.value >= self.at_least
        return above and (self.at_most is None or self.value <= self.at_most)

    def __str__(self) -> str:
        last = self.bar + _VERDICTS[self.passes]
        if self.predicted is not None:
            last = f"{last:<12} predicted {_text(self.predicted)}"
        return _line(self.name, _text(self.value), self.unit, last)


def _text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _line(name: str, value: str, unit: str, bar: str) -> str:
    return f"{name:<48} {value:>12} {unit:<14} {bar}".rstrip()


def _machine() -> str:
    return f"{platform.machine()}, {num_cores()} cores, Python {platform.python_version()}"


@dataclass(slots=True)
class Report:
    """What one benchmark measures, printed and written to the JSON file as it comes."""

    name: str
    table: TextIO | None = None
    """Where to print; None prints nothing."""
    json_file: Path | None = None
    measurements: list[Measurement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    machine: str = field(default_factory=_machine)

    def add(
        self, name: str, value: float, unit: str, *,
        at_least: float | None = None, at_most: float | None = None,
        predicted: float | None = None,
    ) -> None:
        """Add one figure."""
        self.measurements.append(
            Measurement(name, float(value), unit, at_least, at_most, predicted)
        )
        self._tell(str(self.measurements[-1]))

    def note(self, text: str) -> None:
        """Add a sentence that explains the figures."""
        self.notes.append(text)
        self._tell(text)

    def progress(self, text: str) -> None:
        """Say on standard error what is measured now."""
        if self.table is not None:
            print(text, file=sys.stderr, flush=True)

    @property
    def passes(self) -> bool:
        """Whether every figure passes its bar."""
        return all(m.passes is not False for m in self.measurements)

    def to_json(self) -> str:
        """The report as indented JSON, with each measurement's verdict."""
        rows = [asdict(m) | {"passes": m.passes} for m in self.measurements]
        return json.dumps({
            "name": self.name, "measurements": rows, "notes": self.notes,
            "started": self.started, "machine": self.machine, "passes": self.passes,
        }, indent=2)

    def _tell(self, line: str) -> None:
        if self.table is not None:
            print(line, file=self.table, flush=True)
        if self.json_file is not None:
            write_text(self.json_file, self.to_json() + "\n")


def benchmark(name: str, run: Callable[..., None]) -> Callable[..., None]:
    """The command that runs ``run(report, …)``.

    Its options are ``--json``, ``--json-file`` and the other parameters of ``run``, which are
    annotated for Typer. It exits with 1 if a figure misses its bar, except with ``--quick``.
    """
    def command(json: bool, json_file: Path | None, **options: object) -> None:
        report = Report(name, sys.stderr if json else sys.stdout, json_file)
        print(f"bench {name}: {report.machine}", file=report.table)
        print(_line("figure", "value", "unit", "bar"), file=report.table)
        run(report, **options)
        if json:
            print(report.to_json())
        if not report.passes and not options.get("quick"):
            raise typer.Exit(1)

    def output(json: Json = False, json_file: JsonFile = None) -> None:
        """Declare the options that every benchmark has."""

    _, *own = inspect.signature(run).parameters.values()
    both = [*own, *inspect.signature(output).parameters.values()]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in both]
    command.__doc__ = run.__doc__
    # Typer reads both.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command
