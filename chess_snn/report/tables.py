"""Tables of a report: texts by row and column, from the columns that terminals have too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chess_snn.campaign.viewing.columns import Columns


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts under a head; the first column names them."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[bool]
    """Which columns hold words and not numbers."""


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
