"""Samples: what positions are worth, which are drawn, batches of them; and where games restart.

A position's lambda-return mixes what the search said there with what came after it::

    G_t = (1 - lambda) * root_t + lambda * (r_t + discount * A_t)

``r_t`` is the reward of the action played at t, by the rules. ``A_t`` is what was left once that
action was played and nature had answered: ``G_{t+1}``, or 0 where the game ended there. Of a game
that was truncated the last root value stands for the rest, so that ``G_t`` is ``root_t`` there.
With lambda = 1 it is the sum of all rewards, with 0 the root value (Sutton and Barto,
*Reinforcement Learning*, 2nd edition, section 12.1).

Positions where search disagreed with the network are drawn more often (policy surprise
weighting, as in KataGo's notes on its methods): what the network knows already teaches it little.
The weight is bounded, so that no position fills the batches.

Dimensions: N positions, B samples, R record words, K entries of the batch's longest policy target.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from chess_snn.data.records import GameRecords
from chess_snn.data.shard import read_shard_of
from chess_snn.errors import ConfigError, UsageError
from chess_snn.games.base import NO_ACTION, ONGOING, Game, GameBatch, GameSpec, ValueKind
from chess_snn.jit import kernel
from chess_snn.rng import generator
from chess_snn.settings import check_range
from chess_snn.types import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int16Array,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)

SURPRISE_CAP: Final = 2.0
"""Largest weight of a position in a draw by surprise, in units of the mean weight."""
_ROWS_AT_ONCE = 65_536
"""Positions whose rewards are computed in one call of the rules."""
_FIRST_PLIES: Final = 8
"""Not restarted from: they are near the start that ordinary games have anyway."""
_LAST_PLIES: Final = 4
"""Not restarted from: the game is as good as over there."""


@dataclass(frozen=True, slots=True)
class Returns:
    """Values of the positions of some games, in rewards."""

    returns: Float32Array
    """float32[N]: the lambda-returns G."""
    after: Float32Array
    """float32[N] >= 0: A, what was left after the action and the chance event."""


def check_td_lambda(spec: GameSpec, td_lambda: float) -> None:
    """Raise ConfigError unless the game ``spec`` can have ``training.td_lambda``."""
    check_range("training.td_lambda", td_lambda, ge=0, le=1)
    if td_lambda != 1 and spec.value_kind is not ValueKind.RETURN:
        raise ConfigError(
            f"training.td_lambda must be 1 in {spec.name}, which has results and no rewards, got "
            f"{td_lambda:g}; set training.root_value_share instead"
        )


def returns_of(
    game: Game, records: GameRecords, discount: float, td_lambda: float
) -> Returns | None:
    """The returns of ``records``; None in a game whose value is win, draw and loss."""
    if game.spec.value_kind is not ValueKind.RETURN:
        return None
    rewards = rewards_of(game, records.states, records.actions)
    is_truncated = records.terminations == ONGOING

    returns, after = np.empty_like(rewards), np.empty_like(rewards)
    _sum_backwards(
        rewards, records.values_stm, records.game_offsets, is_truncated, discount, td_lambda,
        returns, after,
    )
    return Returns(returns, after)


def rewards_of(game: Game, states: UInt64Array, actions: Int16Array) -> Float32Array:
    """float32[N]: what the rules give for ``actions`` int16[N] at ``states`` uint64[N, >= R]."""
    rewards = np.empty(len(actions), np.float32)
    for start in range(0, len(rewards), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        rewards[rows] = play_actions(game, states[rows], actions[rows]).reward
    return rewards


def play_actions(game: Game, states: UInt64Array, actions: Int16Array) -> GameBatch:
    """The n positions after ``actions`` int16[n] at ``states`` uint64[n, >= R], without events."""
    batch = game.allocate(len(actions))
    game.reset(batch, np.arange(len(actions)), state_rows(game.spec, states))
    game.step(batch, actions)
    return batch


def state_rows(spec: GameSpec, record_states: UInt64Array) -> UInt64Array:
    """State rows uint64[n, W] of record rows uint64[n, >= R]; the words behind R are 0."""
    states = np.zeros((len(record_states), spec.state_words), np.uint64)
    states[:, : spec.record_words] = record_states[:, : spec.record_words]
    return states


@kernel
def _sum_backwards(
    rewards: Float32Array, root_values: Float32Array, game_offsets: Int64Array,
    is_truncated: BoolArray, discount: float, td_lambda: float,
    returns: Float32Array, after: Float32Array,
) -> None:
    """Fill ``returns`` and ``after`` float32[N]."""
    for game in range(len(is_truncated)):
        last = game_offsets[game + 1] - 1
        left = 0.0
        if is_truncated[game]:
            left = max(0.0, (root_values[last] - rewards[last]) / discount)
        for t in range(last, game_offsets[game] - 1, -1):
            after[t] = left
            played = rewards[t] + discount * left
            left = (1.0 - td_lambda) * root_values[t] + td_lambda * played
            returns[t] = left


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
    """float32[B]: the game's end, +1 won, 0 drawn, -1 lost by the side to move; of a truncated
    game, what it counts as. In a game with returns ``outcomes_stm``: its network learns
    means and says nothing of how far single games spread around them."""
    outcomes_stm: Float32Array
    """float32[B]: ``results_stm`` times the window's discount to the power of ``plies_left``, so
    that a quick win is worth more than a slow one. In a game with returns ``Returns.returns``."""
    after_stm: Float32Array
    """float32[B]: ``Returns.after``; 0 in a game without returns."""
    plies_left: Int32Array
    """int32[B] >= 1: plies from here to the end of the game, the played action included."""
    terminations: UInt8Array
    """uint8[B]: why the game ended; ``ONGOING`` (0) if it was truncated or one side resigned, and
    ``plies_left`` does not lead to an end on the board."""
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


class SurpriseDraw:
    """Draws of n positions with probabilities proportional to min(surprise / mean, SURPRISE_CAP).

    Where all surprises are 0 every position is as likely as any other.
    """

    def __init__(self, surprises: Float32Array) -> None:
        """Sum the weights of ``surprises`` float32[n] >= 0, n >= 1; 8 n bytes stay in memory."""
        mean = surprises.mean(dtype=np.float64)
        weights = (
            np.minimum(surprises / mean, SURPRISE_CAP) if mean > 0 else np.ones(len(surprises))
        )
        self._ends: Float64Array = weights.cumsum(dtype=np.float64)
        self._ends /= self._ends[-1]
        self._ends[-1] = 1.0

    def draw(self, num_draws: int, rng: np.random.Generator) -> Int64Array:
        """int64[num_draws] in [0, n), independent of each other."""
        drawn: Int64Array = np.searchsorted(self._ends, rng.random(num_draws), side="right")
        return drawn


def restart_states(
    spec: GameSpec, shard_folders: Sequence[Path], value_limit: float, limit: int, seed: int
) -> UInt64Array:
    """Record rows uint64[m, R], m <= ``limit``, of positions that neither side had won.

    Args:
        spec: of the game.
        shard_folders: shards of one game, at least one; all of them are read.
        value_limit: positions with a larger root value, in size, are left out; as a share of the
            largest value that the game has, in [0, 1].
        limit: most rows; among more positions that qualify, it draws without replacement.
        seed: decides that draw, together with the order of the shards.

    Raises:
        CorruptDataError: a shard is damaged; it is named.
        UsageError: no shard, or one of another game.
        ConfigError: a limit out of its range.
    """
    check_range("restarts.value_limit", value_limit, ge=0, le=1)
    check_range("restarts.limit", limit, ge=1)
    if not shard_folders:
        raise UsageError("restarts need at least one shard, got none; play games first")
    most = value_limit * spec.value_limit
    states = np.concatenate([
        _contested_states(read_shard_of(spec, folder)[0], most) for folder in shard_folders
    ])
    if len(states) <= limit:
        return states
    chosen = generator(seed, "restarts").choice(len(states), size=limit, replace=False)
    return states[np.sort(chosen)]


def _contested_states(records: GameRecords, most: float) -> UInt64Array:
    lengths = np.diff(records.game_offsets)
    rows = np.arange(records.num_positions)
    ply = rows - np.repeat(records.game_offsets[:-1], lengths)
    plies_left = np.repeat(records.game_offsets[1:], lengths) - rows
    return records.states[
        (np.abs(records.values_stm) <= most)
        & (ply >= _FIRST_PLIES)
        & (plies_left > _LAST_PLIES)
    ]
