"""Positions, actions and events of 2048 as text.

A position is its rows from top to bottom with ``/`` between them, the tiles of a row with spaces
between them, and ``.`` for an empty cell; ``+`` behind the last row says that the next tile is
still to come (an afterstate): ``. . 2 ./. . . ./. 4 . ./. . . 8 +``. An action is ``left``, ``up``,
``right`` or ``down``, or its first letter. An event is the tile, ``@`` and the cell, a column of a
to d and a row of 1 (the top) to 4: ``2@b3``.
"""

from typing import Final

import numpy as np

from chess_snn.errors import IllegalMoveError, PositionError
from chess_snn.games.twenty48.layout import (
    ACTION_NAMES,
    BOARD,
    MAX_EXPONENT,
    NATURE,
    NATURE_MOVES,
    NUM_CELLS,
    PLAYER_MOVES,
    SIDE,
    STATE_WORDS,
)
from chess_snn.types import UInt64Array

_EMPTY: Final = "."
_TO_COME: Final = "+"
_EXPONENT_OF: Final = {_EMPTY: 0} | {str(1 << e): e for e in range(1, MAX_EXPONENT + 1)}
_NEW_TILES: Final = (1, 2)
"""Exponents of the tiles that come by chance."""
_COLUMNS: Final = "abcd"


def parse_state(text: str) -> UInt64Array:
    """State row uint64[2].

    Raises:
        PositionError: the text is malformed, a tile is out of range, or the board cannot occur.
    """
    body = text.strip()
    nature = body.endswith(_TO_COME)
    rows = [row.split() for row in body.removesuffix(_TO_COME).split("/")]
    if [len(row) for row in rows] != [SIDE] * SIDE:
        raise PositionError(
            f"position {text!r} does not have 4 rows of 4 cells; write rows like '2 . . 4' with "
            "'/' between them"
        )
    cells = [_exponent(cell, text) for row in rows for cell in row]
    _check(cells, nature, text)
    state = np.zeros(STATE_WORDS, dtype=np.uint64)
    state[BOARD] = sum(exponent << 4 * cell for cell, exponent in enumerate(cells))
    state[NATURE] = NATURE_MOVES if nature else PLAYER_MOVES
    return state


def _exponent(cell: str, text: str) -> int:
    if cell not in _EXPONENT_OF:
        raise PositionError(
            f"tile {cell!r} is out of range in position {text!r}; tiles are powers of two from 2 "
            f"to {1 << MAX_EXPONENT}, and {_EMPTY!r} is an empty cell"
        )
    return _EXPONENT_OF[cell]


def _check(cells: list[int], nature: bool, text: str) -> None:
    """Refuse a board that no game can reach, as far as that is seen at once."""
    num_tiles = sum(exponent > 0 for exponent in cells)
    if nature:
        if num_tiles == 0:
            raise PositionError(f"position {text!r} cannot occur: a board has at least one tile")
        if num_tiles == NUM_CELLS:
            raise PositionError(
                f"position {text!r} cannot occur: the board is full, so no tile can come; leave "
                f"the {_TO_COME!r} out"
            )
    elif num_tiles < len(_NEW_TILES) or not any(e in _NEW_TILES for e in cells):
        raise PositionError(
            f"position {text!r} cannot occur: the player moves with at least two tiles, one of "
            f"them the new 2 or 4; add it, or put {_TO_COME!r} at the end if it is still to come"
        )


def format_state(state: UInt64Array) -> str:
    """The position uint64[2] as text."""
    board = int(state[BOARD])
    cells = [board >> 4 * cell & MAX_EXPONENT for cell in range(NUM_CELLS)]
    tiles = [str(1 << exponent) if exponent else _EMPTY for exponent in cells]
    rows = "/".join(" ".join(tiles[i : i + SIDE]) for i in range(0, NUM_CELLS, SIDE))
    return f"{rows} {_TO_COME}" if state[NATURE] == NATURE_MOVES else rows


def parse_action(state: UInt64Array, legal: list[int], text: str) -> int:
    """The action, or the event of an afterstate, that ``text`` names at ``state`` uint64[2].

    Args:
        state: where it is played, for the error.
        legal: the actions or events there.
        text: what is played.

    Raises:
        IllegalMoveError: the text names none of ``legal``.
    """
    word = text.strip().lower()
    names = {format_action(state, action): action for action in legal}
    action = names.get(word)
    if action is None and state[NATURE] == PLAYER_MOVES:
        action = {name[0]: action for name, action in names.items()}.get(word)
    if action is None:
        raise IllegalMoveError(
            f"move {text!r} is illegal in {format_state(state)!r}; legal are {', '.join(names)}"
        )
    return action


def format_action(state: UInt64Array, action: int) -> str:
    """An action or an event at ``state`` uint64[2] as text."""
    if state[NATURE] == PLAYER_MOVES:
        return ACTION_NAMES[action]
    row, column = divmod(action >> 1, SIDE)
    return f"{4 if action & 1 else 2}@{_COLUMNS[column]}{row + 1}"
