"""What recorded games of a game with returns say that their positions are worth.

A position's lambda-return mixes what the search said there with what came after it::

    G_t = (1 - lambda) * root_t + lambda * (r_t + discount * A_t)

``r_t`` is the reward of the action played at t, by the rules. ``A_t`` is what was left once that
action was played and nature had answered: ``G_{t+1}``, or 0 where the game ended there. Of a game
that was truncated the last root value stands for the rest, so that ``G_t`` is ``root_t`` there.
With lambda = 1 it is the sum of all rewards, with 0 the root value (Sutton and Barto,
*Reinforcement Learning*, 2nd edition, section 12.1).

Dimensions: N positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from chess_snn.config import check_range
from chess_snn.data.records import GameRecords
from chess_snn.errors import ConfigError
from chess_snn.games.base import ONGOING, Game, GameBatch, GameSpec, ValueKind
from chess_snn.jit import kernel
from chess_snn.types import BoolArray, Float32Array, Int16Array, Int64Array, UInt64Array

_ROWS_AT_ONCE = 65_536
"""Positions whose rewards are computed in one call of the rules."""


@dataclass(frozen=True, slots=True)
class Returns:
    """What the positions of some games are worth, in rewards."""

    returns: Float32Array
    """float32[N]: the lambda-returns G."""
    after: Float32Array
    """float32[N] >= 0: A, what was left after the action and the chance event."""

    def drop(self, num_positions: int) -> "Returns":
        """The same without the first ``num_positions``."""
        return Returns(*(getattr(self, field.name)[num_positions:] for field in fields(self)))


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


def join_returns(parts: Sequence[Returns | None]) -> Returns | None:
    """The returns of all ``parts``, in order; None where they have none."""
    there = [part for part in parts if part is not None]
    if not there:
        return None
    return Returns(*(
        np.concatenate([getattr(part, field.name) for part in there]) for field in fields(Returns)
    ))


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
