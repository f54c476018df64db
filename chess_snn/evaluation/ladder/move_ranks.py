"""Moves in a byte each: which of the legal actions, in ascending order, was played.

No position of chess has more than 218. A rank says less than an action and compresses to two thirds
of a byte a move, a third of what a move costs in PGN.

Dimensions: n games, N their moves, M legal actions at most.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from chess_snn.errors import CorruptDataError
from chess_snn.games.base import NO_ACTION, Game, GameBatch
from chess_snn.types import Int16Array, Int32Array, Int64Array, UInt8Array, UInt64Array

_ABSENT: Final = np.iinfo(np.int16).max
"""Stands behind the legal actions of a position."""


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

    def pick(places: Int64Array, legal: Int16Array) -> Int16Array:
        played: Int16Array = actions[places]
        ranks[places] = (legal < played[:, None]).sum(axis=1)
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

    def pick(places: Int64Array, legal: Int16Array) -> Int16Array:
        chosen = ranks[places]
        num_legal = (legal != _ABSENT).sum(axis=1)
        if (chosen >= num_legal).any():
            raise CorruptDataError("a game has a move that its position does not allow")
        found: Int16Array = legal[np.arange(len(places)), chosen]
        actions[places] = found
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
