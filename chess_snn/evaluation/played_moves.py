"""The moves of matches: gathered turn by turn, and packed for files.

A game's moves are base64 of little-endian int16 actions: 2.7 characters a ply, where UCI takes 5.

Dimensions: n games, N plies of all of them.
"""

import base64
from collections.abc import Sequence
from typing import Final

import numpy as np

from chess_snn.types import Int16Array, Int32Array, Int64Array

_STORED: Final = np.dtype("<i2")


class MoveLog:
    """Moves of each turn of a match."""

    def __init__(self) -> None:
        self._turns: list[tuple[Int64Array, Int16Array]] = []

    def add(self, games: Int64Array, actions: Int16Array) -> None:
        """Note that ``actions`` int16[g] were played in ``games`` int64[g], all different."""
        self._turns.append((games, actions))

    def by_game(self, plies: Int32Array) -> Int16Array:
        """int16[N]: all actions, game after game, ``plies`` int32[n] of each."""
        flat = np.empty(int(plies.sum()), dtype=np.int16)
        next_place = np.cumsum(plies, dtype=np.int64) - plies
        for games, actions in self._turns:
            flat[next_place[games]] = actions
            next_place[games] += 1
        return flat


def pack_moves(actions: Int16Array, game_offsets: Int64Array) -> list[str]:
    """A text for each game; ``actions`` int16[N], split at ``game_offsets`` int64[n + 1]."""
    return [
        base64.b64encode(game.astype(_STORED).tobytes()).decode("ascii")
        for game in np.split(actions, game_offsets[1:-1])
    ]


def unpack_moves(texts: Sequence[str], plies: Sequence[int]) -> Int16Array:
    """int16[N]: the actions packed in ``texts``, ``plies`` of each game.

    Raises:
        ValueError: a text is damaged, or has not as many plies.
    """
    games = [np.frombuffer(base64.b64decode(text, validate=True), _STORED) for text in texts]
    for number, (game, length) in enumerate(zip(games, plies, strict=True)):
        if len(game) != length:
            raise ValueError(f"game {number} has {len(game)} moves and {length} plies")
    return np.concatenate(games).astype(np.int16)
