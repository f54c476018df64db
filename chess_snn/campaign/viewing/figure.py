"""The description of one figure of an iteration: how it is read, written and shown."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from chess_snn.campaign.store.receipts import Receipt
from chess_snn.types import Json

Group = Literal["strength", "learning", "self_play", "spikes", "speed", "devices"]
GROUPS: Final[tuple[Group, ...]] = (
    "strength", "learning", "self_play", "spikes", "speed", "devices",
)
"""Groups in the order in which they tell what an iteration did."""
Place = Literal["status", "learning", "strength", "run", "watch"]
"""A table or list that shows a figure: ``campaign status``; the two tables of all iterations,
which the report has too; the table of a Prefect run; the curves of ``watch``."""

Row = Json
Value = Callable[[Receipt], float | None]


def metric_name(group: Group, name: str) -> str:
    """Name in MLflow, whose page sorts groups by name: ``1_strength/score``."""
    return f"{GROUPS.index(group) + 1}_{group}/{name}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of an iteration."""

    group: Group
    name: str
    """Column of tables and files."""
    title: str
    form: str
    """Format; a share that ends with ``%`` lies in [0, 1]."""
    value: Value
    low: Value | None = None
    high: Value | None = None
    """Ends of the 95 % interval, for a figure that has one."""
    better: Literal["up", "down", ""] = ""
    places: tuple[Place, ...] = ()
    heading: str = ""
    """Short title, for the head of a column."""
    chart: str = ""
    """Title of the report's chart that draws it, with others of the same chart."""
    cell: Callable[[Row], str] | None = None
    """Text of a row, for a figure that is shown with others or as a word."""

    def parts(self) -> Iterator[tuple[str, Value]]:
        """The figure and the ends of its interval, by name."""
        yield self.name, self.value
        if self.low is not None and self.high is not None:
            yield f"{self.name}_low", self.low
            yield f"{self.name}_high", self.high

    def text(self, row: Row) -> str:
        """The figure of ``row`` with its interval; empty if it was not measured."""
        if self.cell is not None:
            return self.cell(row)
        value, low, high = (row.get(f"{self.name}{end}") for end in ("", "_low", "_high"))
        if self.low is None or (low is None and high is None):
            return "" if value is None else format(value, self.form)
        low_text, high_text = (
            unknown if end is None else format(end, self.form)
            for unknown, end in (("-inf", low), ("inf", high))
        )
        if value is None:
            return f"below {high_text}" if low is None else f"above {low_text}"
        return f"{value:{self.form}} ({low_text} to {high_text})"
