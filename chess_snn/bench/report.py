"""The one shape of a benchmark's result: figures, ratios inside one run, bars they must pass."""

import json
import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from chess_snn.cores import num_cores


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure; ``at_least`` or ``at_most`` is the bar it is held against, where there is one."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def bar(self) -> str:
        """The bar in signs, empty without one."""
        least = f"≥ {self.at_least:g}" if self.at_least is not None else ""
        return least + (f"≤ {self.at_most:g}" if self.at_most is not None else "")

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
        default_factory=lambda: f"{platform.machine()}, {num_cores()} cores, "
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


def figure_text(value: float) -> str:
    """``value`` with three digits, or whole where it has more."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
