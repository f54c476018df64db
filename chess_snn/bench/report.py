"""The one shape of a benchmark's result: figures, ratios inside one run, bars they must pass."""

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure; ``at_least`` or ``at_most`` is the bar it is held against, where there is one."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def passes(self) -> bool | None:
        """Whether the bar holds; None without a bar."""
        if self.at_least is None and self.at_most is None:
            return None
        above = self.at_least is None or self.value >= self.at_least
        return above and (self.at_most is None or self.value <= self.at_most)


@dataclass(slots=True)
class BenchReport:
    """What one ``chess-snn bench`` command measured, in the order it measured it."""

    name: str
    measurements: list[Measurement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    machine: str = field(
        default_factory=lambda: f"{platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}"
    )

    def add(
        self, name: str, value: float, unit: str, *,
        at_least: float | None = None, at_most: float | None = None,
    ) -> None:
        """Record one figure."""
        self.measurements.append(Measurement(name, float(value), unit, at_least, at_most))

    @property
    def passes(self) -> bool:
        """Whether every bar holds."""
        return all(m.passes is not False for m in self.measurements)

    def to_json(self) -> str:
        """The report as indented JSON, with each measurement's verdict."""
        body = asdict(self)
        for row, measurement in zip(body["measurements"], self.measurements, strict=True):
            row["passes"] = measurement.passes
        return json.dumps(body | {"passes": self.passes}, indent=2)

    def print_table(self, console: Console) -> None:
        """The report as a table for people."""
        table = Table(title=f"bench {self.name}", caption=self.machine)
        table.add_column("figure")
        table.add_column("value", justify="right")
        table.add_column("unit")
        table.add_column("bar", justify="right")
        for m in self.measurements:
            bar = f"≥ {m.at_least:g}" if m.at_least is not None else ""
            bar += f"≤ {m.at_most:g}" if m.at_most is not None else ""
            mark = {None: "", True: " ok", False: " MISSED"}[m.passes]
            table.add_row(m.name, _figure(m.value), m.unit, bar + mark)
        console.print(table)
        for note in self.notes:
            console.print(note)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
