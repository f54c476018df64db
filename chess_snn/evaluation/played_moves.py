"""The moves of matches: gathered turn by turn, and packed for files.

In a match's file, a game's moves are base64 of little-endian int16 actions: 2.7 characters a ply,
where UCI takes 5. In the file of a ladder's games, a move is one byte: which of the legal actions,
in ascending order, was played. No position of chess has more than 218. Such a rank compresses to
two thirds of a byte, a third of what a move costs in PGN.

Dimensions: n games, N plies of all of them, M legal actions at most.
"""

import base64
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from chess_snn.errors import CorruptDataError
from chess_snn.games.base import NO_ACTION, Game, GameBatch
from chess_snn.types import Int16Array, Int32Array, Int64Array, UInt8Array, UInt64Array

_STORED: Final = np.dtype("<i2")
_ABSENT: Final = np.iinfo(np.int16).max
"""Stands behind the legal actions of a position."""


class MoveLog:
    """What was played in each turn of a match."""

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


def rank_moves(
    game: Game, starts: UInt64Array, plies: Int32Array, actions: Int16Array
) -> UInt8Array:
    """Ranks of the moves of games.

    Args:
        game: that was played; at most 256 actions are legal in any of its positions.
        starts: uint64[n, W], where each game began.
        plies: int32[n], moves of each.
        actions: int16[N], game after game; legal ones.

    Returns:
        uint8[N].
    """
    ranks = np.empty(len(actions), np.uint8)

    def pick(indices: Int64Array, legal: Int16Array) -> Int16Array:
        played: Int16Array = actions[indices]
        ranks[indices] = (legal < played[:, None]).sum(axis=1)
        return played

    _replay(game, starts, plies, pick)
    return ranks


def unrank_moves(
    game: Game, starts: UInt64Array, plies: Int32Array, ranks: UInt8Array
) -> tuple[Int16Array, UInt8Array]:
    """Undoes :func:`rank_moves`.

    Returns:
        int16[N], the actions; and uint8[n], why each game ended.

    Raises:
        CorruptDataError: a position has fewer legal actions.
    """
    actions = np.empty(len(ranks), np.int16)

    def pick(indices: Int64Array, legal: Int16Array) -> Int16Array:
        chosen = ranks[indices]
        num_legal = (legal != _ABSENT).sum(axis=1)
        if (chosen >= num_legal).any():
            raise CorruptDataError("a game has a move that its position does not allow")
        found: Int16Array = legal[np.arange(len(indices)), chosen]
        actions[indices] = found
        return found

    batch = _replay(game, starts, plies, pick)
    return actions, batch.termination


def _replay(
    game: Game, starts: UInt64Array, plies: Int32Array,
    pick: Callable[[Int64Array, Int16Array], Int16Array],
) -> GameBatch:
    """The last positions; ``pick`` gets places among the N moves and sorted legal actions."""
    batch = game.allocate(len(starts))
    game.reset(batch, np.arange(len(starts)), starts)
    firsts = np.cumsum(plies, dtype=np.int64) - plies
    columns = np.arange(batch.legal_actions.shape[1])
    for ply in range(int(plies.max(initial=0))):
        rows = np.flatnonzero(plies > ply)
        listed = columns < batch.num_legal[rows, None]
        legal = np.sort(np.where(listed, batch.legal_actions[rows], _ABSENT), axis=1)
        actions = np.full(len(batch), NO_ACTION, np.int16)
        actions[rows] = pick(firsts[rows] + ply, legal)
        game.step(batch, actions)
    return batch
