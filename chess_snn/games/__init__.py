"""The rules of games, for many positions at once.

``get_game("chess")`` gives the rules; :mod:`chess_snn.games.base` says what they promise.
"""

import functools
import importlib
from typing import Final

from chess_snn.errors import ConfigError, UsageError
from chess_snn.games.base import (
    ONGOING,
    Game,
    GameBatch,
    GameSpec,
    ValueKind,
    termination_counts,
)
from chess_snn.known import GAME_NAMES
from chess_snn.wording import names_hint

_GAMES: Final = {
    "chess": ("chess_snn.games.chess", "ChessGame"),
    "2048": ("chess_snn.games.twenty48", "Twenty48Game"),
}
"""Module and class of each game, imported on first use."""


@functools.cache
def get_game(name: str) -> Game:
    """The game called ``name``, one of ``GAME_NAMES``.

    Raises:
        ConfigError: there is no such game.
    """
    if name not in _GAMES:
        raise ConfigError(f"unknown game {name!r}; {names_hint(name, GAME_NAMES)}")
    module, cls = _GAMES[name]
    game: Game = getattr(importlib.import_module(module), cls)()
    return game


def check_game(what: str, found: str, wanted: str) -> None:
    """Raise UsageError unless ``what`` is of the game ``wanted`` and not another, ``found``."""
    if found != wanted:
        raise UsageError(f"{what} is of the game {found}; give one of {wanted}")
