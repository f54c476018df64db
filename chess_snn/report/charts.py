"""Curves and tables of a report as data; the page's script draws the curves.

Which curves there are, and their titles, forms and groups, is in the table of figures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from chess_snn.campaign.viewing.figure import Figure, Group
from chess_snn.campaign.viewing.figures import figures_of
from chess_snn.campaign.viewing.results import Columns
from chess_snn.report.facts import CampaignFacts
from chess_snn.types import Json

_DIGITS: Final = 7
"""Digits of a value in the page."""
_NOT_MEASURED: Final = "\N{EN DASH}"
_BETTER: Final = {"up": "more is better", "down": "less is better", "": ""}
_MOST_MARKS: Final = 12
"""New champions that a chart can show."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves over the same numbers, of one unit."""

    title: str
    figures: Sequence[Figure]
    """At least one, each measured at least once."""
    rows: Sequence[Json]
    over: Literal["iteration", "generation"]
    """Count on the horizontal axis."""
    marks: Sequence[int]
    """Numbers of generations that became champion."""

    @property
    def heading(self) -> tuple[str, str]:
        """Title; and in words the unit, where the title does not say it, and what is better."""
        title, *words = self.title.split(", ", maxsplit=1)
        directions = {figure.better for figure in self.figures}
        words += [_BETTER[direction] for direction in directions if len(directions) == 1]
        return title, "; ".join(filter(None, words))

    @property
    def newest(self) -> int:
        """The last number with a value."""
        return max(int(row[self.over]) for row in self.rows if _is_measured(row, self.figures))

    @property
    def values(self) -> list[tuple[str, str]]:
        """Names of the curves, and their values at the newest number; one alone needs no name."""
        row = next(row for row in self.rows if row[self.over] == self.newest)
        return [
            (figure.title if len(self.figures) > 1 else "", figure.text(row) or _NOT_MEASURED)
            for figure in self.figures
        ]

    @property
    def data(self) -> Json:
        """Each curve's number, value, low and high end of its interval, and how to show them."""
        return {
            "form": self.figures[0].form, "over": self.over, "marks": list(self.marks),
            "series": [
                [
                    [row[self.over], *(_short(row.get(figure.name + end)) for end in _ENDS)]
                    for row in self.rows if _is_measured(row, [figure])
                ]
                for figure in self.figures
            ],
        }


_ENDS: Final = ("", "_low", "_high")


def _short(value: float | None) -> float | None:
    """``value`` in few digits; None where it has no bound."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{_DIGITS}g}")


def _is_measured(row: Json, figures: Sequence[Figure]) -> bool:
    return any(row[figure.name] is not None for figure in figures)


def charts_of(
    facts: CampaignFacts, *groups: Group, over: Literal["iteration", "generation"] = "iteration"
) -> list[Chart]:
    """The charts of these groups of figures that have a value."""
    figures: dict[str, list[Figure]] = {}
    for figure in figures_of(facts.folder.config):
        if figure.chart and figure.group in groups and any(
            _is_measured(row, [figure]) for row in facts.rows
        ):
            figures.setdefault(figure.chart, []).append(figure)
    champions = [receipt.champion for receipt in facts.receipts if receipt.promoted]
    marks = champions if over == "generation" and len(champions) <= _MOST_MARKS else []
    return [Chart(title, found, facts.rows, over, marks) for title, found in figures.items()]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts under a head; the first column names them."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[bool]
    """Columns that hold words and not numbers."""


def table_of(
    caption: str, rows: Sequence[Any], columns: Columns, words: Sequence[str] = ()
) -> Table | None:
    """A table of ``rows``; None where there are none. Columns in ``words`` hold words."""
    if not rows:
        return None
    return Table(
        caption, [name.replace("\n", " ") for name in columns],
        [[cell(row) for cell in columns.values()] for row in rows],
        [index == 0 or name in words for index, name in enumerate(columns)],
    )
