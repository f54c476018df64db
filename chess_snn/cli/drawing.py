"""Positions of any game, drawn for people."""

import importlib
from typing import Final

from rich.console import RenderableType

from chess_snn.games.base import Game
from chess_snn.types import UInt64Array

_DRAWERS: Final = {"2048": ("chess_snn.cli.tiles", "draw_tiles")}
"""Module and function of each game that has one, imported on first use. Chess, whose boards show
the last move too, draws :mod:`chess_snn.cli.board_text`."""


def draw_position(
    game: Game, state: UInt64Array, *, tall: bool = False, ascii_only: bool = False
) -> RenderableType:
    """The position uint64[W] as its game draws it, else in the game's notation.

    ``tall`` takes more lines and is easier to see; ``ascii_only`` draws lines with ``+-|``.
    """
    if game.spec.name not in _DRAWERS:
        return game.format_state(state)
    module, name = _DRAWERS[game.spec.name]
    drawn: RenderableType = getattr(importlib.import_module(module), name)(
        state, tall=tall, ascii_only=ascii_only
    )
    return drawn
