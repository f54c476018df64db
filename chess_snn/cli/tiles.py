"""A board of 2048 in the terminal: tiles in colour, on a grid of fixed width."""

from typing import Final

from rich import box
from rich.table import Table
from rich.text import Text

from chess_snn.games.twenty48.layout import BOARD, MAX_EXPONENT, NUM_CELLS, SIDE
from chess_snn.types import UInt64Array

_WIDTH: Final = 7
"""Characters of a cell: the five digits of the largest tile, and one on either side."""
_EMPTY: Final = "·"
_EMPTY_ASCII: Final = "."
_DARK, _LIGHT = "#3c3a32", "#f9f6f2"
_COLOURS: Final = (
    "", "#eee4da", "#ede0c8", "#f2b179", "#f59563", "#f67c5f", "#f65e3b", "#edcf72", "#edcc61",
    "#edc850", "#edc53f", "#edc22e", "#b784ab", "#9a5fa0", "#7a4d9f", "#503b8f",
)
"""Of the tiles by exponent, as the game has them; it knows none behind 2048."""
_LIGHT_DIGITS: Final = (5, 6, 12, 13, 14, 15)
"""Exponents of the dark tiles."""


def draw_tiles(state: UInt64Array, *, tall: bool, ascii_only: bool) -> Table:
    """The board of ``state`` uint64[2]; a cell is three lines high if ``tall``, else one."""
    board = int(state[BOARD])
    cells = [
        _cell(board >> 4 * cell & MAX_EXPONENT, tall, ascii_only) for cell in range(NUM_CELLS)
    ]
    grid = Table(
        box=box.ASCII2 if ascii_only else box.ROUNDED, show_header=False, show_lines=True,
        padding=0, border_style="dim",
    )
    for _ in range(SIDE):
        grid.add_column(width=_WIDTH)
    for first in range(0, NUM_CELLS, SIDE):
        grid.add_row(*cells[first : first + SIDE])
    return grid


def _cell(exponent: int, tall: bool, ascii_only: bool) -> Text:
    if exponent == 0:
        content, style = _EMPTY_ASCII if ascii_only else _EMPTY, "dim"
    else:
        content = str(1 << exponent)
        digits = _LIGHT if exponent in _LIGHT_DIGITS else _DARK
        style = f"bold {digits} on {_COLOURS[exponent]}"
    lines = ["", content, ""] if tall else [content]
    return Text("\n".join(line.center(_WIDTH) for line in lines), style=style)
