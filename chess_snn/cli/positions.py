"""Positions that commands are given as text."""

from typing import Final

import numpy as np

from chess_snn.errors import PositionError
from chess_snn.games.base import Game
from chess_snn.types import UInt64Array

START: Final = "startpos"
"""Stands for the position in which a game begins."""


def read_position(game: Game, text: str) -> UInt64Array:
    """State row uint64[W] of ``text``: ``START`` (of seed 0), or the game's notation.

    Raises:
        PositionError: it is malformed, cannot occur, or nature is to move there.
    """
    if text == START:
        start: UInt64Array = game.initial_states(np.zeros(1, np.uint64))[0]
        return start
    state = game.parse_state(text)
    if game.event_probabilities(state[None]).any():
        raise PositionError(
            f"a chance event is still to come in {text!r}; give a position in which a player is to "
            "move"
        )
    return state
