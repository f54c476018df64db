"""How every benchmark times, compares with bars, and prints: works in turn, and a report.

Works take turns, so that ratios within one run hold whatever else the machine does.
"""

import inspect
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TextIO, TypeVar

import torch
import typer

from chess_snn.cli.options import JsonFile
from chess_snn.cores import num_cores
from chess_snn.data import write_text
from chess_snn.errors import UsageError

Quick = Annotated[bool, typer.Option(help="A few seconds only; figures are rough.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON; the table goes to stderr.")]

_VERDICTS = {None: "", True: " ok", False: " MISSED"}
_Key = TypeVar("_Key")
_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class Work:
    """A call that can be repeated."""

    run: Callable[[], object]
    items: int = 1
    """Positions, samples or games that one call handles."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to measure."""

    rounds: int
    """Turns of every work; the median counts."""
    turn_s: float
    """A turn repeats the call until this many seconds have passed; it makes at least one call."""


FULL = Pace(rounds=3, turn_s=0.4)
QUICK = Pace(rounds=1, turn_s=0.0)


def rates_in_turn(
    works: Mapping[_Key, Work], pace: Pace, wait: Callable[[], object] = lambda: None
) -> dict[_Key, float]:
    """Items/s of each work: the median of its turns.

    The works take turns, so that the machine's other load meets all of them alike. One call of each
    comes first and is not counted.

    Args:
        works: what to measure, by any key.
        pace: how many turns, and how long.
        wait: blocks until a device has finished what the calls started.
    """
    for work in works.values():
        work.run()
        wait()
    turns: dict[_Key, list[float]] = {key: [] for key in works}
    for _ in range(pace.rounds):
        for key, work in works.items():
            turns[key].append(_one_turn(work, pace.turn_s, wait))
    return {key: statistics.median(rates) for key, rates in turns.items()}


def rate(work: Work, pace: Pace) -> float:
    """Items/s of one work; see :func:`rates_in_turn`."""
    return rates_in_turn({0: work}, pace)[0]


def _one_turn(work: Work, turn_s: float, wait: Callable[[], object]) -> float:
    calls, start = 0, time.perf_counter()
    while True:
        work.run()
        calls += 1
        if time.perf_counter() - start >= turn_s:
            wait()
            return calls * work.items / (time.perf_counter() - start)


@contextmanager
def torch_threads(num_threads: int) -> Iterator[None]:
    """Set torch's number of threads in the block, and restore it afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure, and the bar that it must pass, if it has one."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

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
        value = f"{self.value:,.0f}" if abs(self.value) >= 1000 else f"{self.value:.3g}"
        return _line(self.name, value, self.unit, self.bar + _VERDICTS[self.passes])


def _line(name: str, value: str, unit: str, bar: str) -> str:
    return f"{name:<48} {value:>12} {unit:<14} {bar}".rstrip()


def _machine() -> str:
    return f"{platform.machine()}, {num_cores()} cores, Python {platform.python_version()}"


@dataclass(slots=True)
class Report:
    """Figures of one benchmark, printed and written to the JSON file as they come."""

    name: str
    table: TextIO | None = None
    """File to print to; None prints nothing."""
    json_file: Path | None = None
    measurements: list[Measurement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    machine: str = field(default_factory=_machine)

    def add(
        self, name: str, value: float, unit: str, *,
        at_least: float | None = None, at_most: float | None = None,
    ) -> None:
        """Add one figure."""
        self.measurements.append(Measurement(name, float(value), unit, at_least, at_most))
        self._tell(str(self.measurements[-1]))

    def add_waits(
        self, name: str, waits_ms: Sequence[float], limit_ms: float, limited_share: float
    ) -> None:
        """Add the time within which half, 95 % and all of ``waits_ms`` were over.

        The bar ``limit_ms`` is that of ``limited_share``, one of these three.
        """
        ranked = sorted(waits_ms)
        for share in (0.5, 0.95, 1.0):
            rank = min(len(ranked) - 1, int(share * len(ranked)))
            self.add(f"{name}: {share:.0%} of {len(ranked)} within", ranked[rank], "ms",
                     at_most=limit_ms if share == limited_share else None)

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


def chosen_parts(
    parts: Mapping[str, _Part], names: Sequence[str] | None
) -> dict[str, _Part]:
    """The parts of these names, all without names; for the option ``--part``."""
    for name in names or ():
        if name not in parts:
            raise UsageError(f"--part must be one of {', '.join(parts)}, got {name!r}")
    return {name: parts[name] for name in names or parts}


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
