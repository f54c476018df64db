"""Full-width minimax to a fixed depth, for many positions at once.

A level of the tree is one batch: every legal action of every row is played with a single
``Game.step``, and the best child of each row is a segment maximum (Shannon 1950, section 3, "type
A" strategy; without pruning, because rows of a batch cannot prune each other). A level that would
be wider than ``MAX_FRONTIER_ROWS`` is cut into chunks of whole rows, and a chunk is finished to
its leaves before the next one starts. So memory holds at most ``depth * MAX_FRONTIER_ROWS``
positions (chess: about 7 MB a level) however many games there are.

Dimensions: G positions, E edges (a position and one of its legal actions), ordered by position.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from chess_snn.games.base import NO_ACTION, Game, GameBatch
from chess_snn.types import Float32Array, Int32Array, Int64Array

MAX_FRONTIER_ROWS = 4096
"""Most positions of one level in memory at once; one position's own children are never split."""

WIN_VALUE = 1e6
"""Value of a win at the horizon, beyond every heuristic; a win n plies before it is n higher."""


def best_actions(game: Game, batch: GameBatch, depth: int) -> GameBatch:
    """``batch`` with each legal list cut to the actions of the highest minimax value.

    Leaves are worth the game's heuristic for the side to move. A won game is worth more than any
    heuristic, and more the sooner it comes; a lost one less, and less the sooner; a drawn one 0.

    Args:
        game: of two players without chance.
        batch: G positions; it is not changed.
        depth: plies to look ahead, >= 1: 1 is the player's own action, 2 also the reply.
    """
    return _keep_best_actions(batch, action_values(game, batch, depth))


def best_rewarded_actions(game: Game, batch: GameBatch) -> GameBatch:
    """``batch`` with each legal list cut to the actions that are rewarded most at once."""
    edge_rows, edge_columns = _edges(batch.num_legal)
    children = batch.take(edge_rows)
    game.step(children, batch.legal_actions[edge_rows, edge_columns])
    return _keep_best_actions(batch, children.reward)


def action_values(game: Game, batch: GameBatch, depth: int) -> Float32Array:
    """Minimax value of every legal action, in the view of the player who makes it.

    Args:
        game: a game of two players without chance.
        batch: G positions; it is not changed.
        depth: plies to look ahead, >= 1.

    Returns:
        float32[E]: the legal actions of position 0 in their listed order, then of position 1, ...
    """
    values = np.empty(int(batch.num_legal.sum()), dtype=np.float32)
    done = 0
    for rows in _row_chunks(batch.num_legal):
        edge_rows, edge_columns = _edges(batch.num_legal[rows])
        edge_rows += rows.start
        children = batch.take(edge_rows)
        game.step(children, batch.legal_actions[edge_rows, edge_columns])
        values[done : done + len(children)] = _values_for_mover(game, children, depth - 1)
        done += len(children)
    return values


def _values_for_mover(game: Game, children: GameBatch, depth: int) -> Float32Array:
    """Values float32[E] of positions just reached, for the player who moved there."""
    continued = game.spec.value_sign * _values_stm(game, children, depth)
    ended = children.num_legal == 0
    values: Float32Array = np.where(
        ended, children.reward * np.float32(WIN_VALUE + depth), continued
    ).astype(np.float32)
    return values


def _values_stm(game: Game, batch: GameBatch, depth: int) -> Float32Array:
    """Values float32[G] for the side to move; 0 where the game has ended."""
    if depth == 0:
        return game.heuristic_stm(batch.state)
    values = np.zeros(len(batch), dtype=np.float32)
    live = np.flatnonzero(batch.num_legal)
    if len(live):
        # Ended rows own no edges, so the segments of the live rows are contiguous.
        starts = _segment_starts(batch.num_legal)[live]
        values[live] = np.maximum.reduceat(action_values(game, batch, depth), starts)
    return values


def _keep_best_actions(batch: GameBatch, values: Float32Array) -> GameBatch:
    """``batch`` with each legal list cut to the actions of the highest of ``values`` float32[E]."""
    edge_rows, edge_columns = _edges(batch.num_legal)
    best = np.full(len(batch), -np.inf, dtype=np.float32)
    np.maximum.at(best, edge_rows, values)
    is_best = values == best[edge_rows]
    best_rows, best_columns = edge_rows[is_best], edge_columns[is_best]
    num_best = np.bincount(best_rows, minlength=len(batch)).astype(np.int32)
    best_actions = np.full_like(batch.legal_actions, NO_ACTION)
    _, packed_columns = _edges(num_best)
    best_actions[best_rows, packed_columns] = batch.legal_actions[best_rows, best_columns]
    return replace(batch, legal_actions=best_actions, num_legal=num_best)


def _segment_starts(num_legal: Int32Array) -> Int64Array:
    """Index int64[G] of each position's first edge."""
    starts: Int64Array = np.cumsum(num_legal, dtype=np.int64) - num_legal
    return starts


def _edges(num_legal: Int32Array) -> tuple[Int64Array, Int64Array]:
    """Row and column, int64[E] each, of every listed legal action."""
    rows = np.repeat(np.arange(len(num_legal)), num_legal)
    columns = np.arange(len(rows)) - _segment_starts(num_legal)[rows]
    return rows, columns


def _row_chunks(num_legal: Int32Array) -> Iterator[slice]:
    """Slices of whole rows with at most MAX_FRONTIER_ROWS edges each, or a single row."""
    ends = np.cumsum(num_legal, dtype=np.int64)
    first, edges_before = 0, 0
    while first < len(num_legal):
        last = int(np.searchsorted(ends, edges_before + MAX_FRONTIER_ROWS, side="right"))
        last = max(last, first + 1)
        yield slice(first, last)
        first, edges_before = last, int(ends[last - 1])
