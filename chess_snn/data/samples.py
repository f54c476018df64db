"""Samples: training positions gathered into one batch of columns.

Dimensions: B samples, R record words, K entries of the batch's longest policy target.
"""

from dataclasses import dataclass

import numpy as np

from chess_snn.data.records import GameRecords
from chess_snn.data.returns import Returns
from chess_snn.games.base import NO_ACTION, Game
from chess_snn.jit import kernel
from chess_snn.types import (
    Float32Array,
    Int16Array,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)


@dataclass(frozen=True, slots=True)
class Samples:
    """B positions with everything a loss may ask for."""

    states: UInt64Array
    """uint64[B, R]: the position before its action was played."""
    actions: Int16Array
    """int16[B]: the action played."""
    values_stm: Float32Array
    """float32[B] in ``GameSpec.value_range``: root value when it was played, for the side
    to move."""
    results_stm: Float32Array
    """float32[B]: the game's end, +1 won, 0 drawn, -1 lost by the side to move; of a game cut by
    the ply cap, what it counts as. In a game with returns ``outcomes_stm``: its network learns
    means and says nothing of how far single games spread around them."""
    outcomes_stm: Float32Array
    """float32[B]: ``results_stm`` times the window's discount to the power of ``plies_left``, so
    that a quick win is worth more than a slow one. In a game with returns ``Returns.returns``."""
    after_stm: Float32Array
    """float32[B]: ``Returns.after``; 0 in a game without returns."""
    plies_left: Int32Array
    """int32[B] >= 1: plies from here to the end of the game, the played action included."""
    terminations: UInt8Array
    """uint8[B]: why the game ended; ``ONGOING`` (0) where the ply cap cut it or one side resigned,
    and ``plies_left`` does not lead to an end on the board."""
    target_actions: Int16Array
    """int16[B, K]: policy target, NO_ACTION behind its entries."""
    target_weights: Float32Array
    """float32[B, K]: rows sum to 1; 0 behind the target's entries."""

    def __len__(self) -> int:
        """Number of samples, B."""
        return len(self.states)


def gather(
    game: Game, records: GameRecords, game_of: Int32Array, rows: Int64Array,
    discount: float = 1.0, returns: Returns | None = None,
) -> Samples:
    """The samples of ``rows``.

    Args:
        game: whose records they are.
        records: where they are.
        game_of: int32[N], the game of each position of ``records``.
        rows: int64[B] of positions; they may repeat.
        discount: factor of an outcome a ply, in (0, 1].
        returns: of ``records``, in a game that has returns.
    """
    games = game_of[rows]
    states = records.states[rows]
    # One of the two is 0 in every game.
    results_white = records.outcomes_white[games] + records.cut_values_white[games]
    white_moves = game.side_to_move(states) == 0
    results_stm = np.where(white_moves, results_white, -results_white)
    plies_left = (records.game_offsets[games + 1] - rows).astype(np.int32)
    outcomes_stm = (results_stm * discount**plies_left).astype(np.float32)
    after_stm = np.zeros_like(outcomes_stm)
    if returns is not None:
        results_stm = outcomes_stm = returns.returns[rows]
        after_stm = returns.after[rows]
    starts = records.target_offsets[rows]
    lengths = records.target_offsets[rows + 1] - starts
    shape = (len(rows), int(lengths.max(initial=0)))
    target_actions = np.full(shape, NO_ACTION, np.int16)
    target_weights = np.zeros(shape, np.float32)
    _copy_targets(
        records.target_actions, records.target_weights, starts, lengths,
        target_actions, target_weights,
    )
    return Samples(
        states=states,
        actions=records.actions[rows],
        values_stm=records.values_stm[rows],
        results_stm=results_stm,
        outcomes_stm=outcomes_stm,
        after_stm=after_stm,
        plies_left=plies_left,
        terminations=records.terminations[games],
        target_actions=target_actions,
        target_weights=target_weights,
    )


@kernel
def _copy_targets(
    all_actions: Int16Array, all_weights: Float32Array, starts: Int64Array, lengths: Int64Array,
    target_actions: Int16Array, target_weights: Float32Array,
) -> None:
    for i in range(len(starts)):
        for k in range(lengths[i]):
            target_actions[i, k] = all_actions[starts[i] + k]
            target_weights[i, k] = all_weights[starts[i] + k]
