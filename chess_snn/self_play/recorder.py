"""Collects the plies of concurrent games and sorts them into whole games.

Concurrent games interleave: ply t of every running game arrives together. The recorder keeps the
columns as they arrive and orders them once, at the end.

A tree gives every legal action some weight in its policy target. Weights below ``LEAST_WEIGHT`` are
left out, so that shards stay small, though never the largest of a position; the others are divided
by their sum.

Dimensions: G rows of one ply, N positions in all, n games, M columns for legal actions.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from chess_snn.data.records import GameRecords, offsets
from chess_snn.games.base import GameBatch
from chess_snn.search.base import SearchResult
from chess_snn.types import (
    Float32Array,
    Int8Array,
    Int64Array,
    UInt8Array,
)

LEAST_WEIGHT: Final = 1 / 512
"""Entries of a policy target below this are left out."""


@dataclass(slots=True)
class GameRecorder:
    """Columns of ``num_games`` games in play; games are named by their index in [0, num_games)."""

    num_games: int
    record_words: int
    value_range: tuple[float, float] = (-1.0, 1.0)
    """Of the game: a network may promise more than any game can bring."""
    _game: list[np.ndarray] = field(default_factory=list)
    _states: list[np.ndarray] = field(default_factory=list)
    _actions: list[np.ndarray] = field(default_factory=list)
    _values: list[np.ndarray] = field(default_factory=list)
    _surprises: list[np.ndarray] = field(default_factory=list)
    _target_counts: list[np.ndarray] = field(default_factory=list)
    _target_actions: list[np.ndarray] = field(default_factory=list)
    _target_weights: list[np.ndarray] = field(default_factory=list)

    def add_ply(self, games: Int64Array, batch: GameBatch, result: SearchResult) -> None:
        """Record one ply, before it is played, of ``games`` int64[G] at the rows of ``batch``."""
        targets = _without_tiny_weights(result.policy_targets)
        rows, slots = np.nonzero(targets)
        self._game.append(games.copy())
        self._states.append(batch.state[:, : self.record_words].copy())
        self._actions.append(result.actions)
        self._values.append(np.clip(result.values_stm, *self.value_range))
        self._surprises.append(result.surprises)
        self._target_counts.append(np.bincount(rows, minlength=len(games)))
        self._target_actions.append(batch.legal_actions[rows, slots])
        self._target_weights.append(targets[rows, slots])

    def finish(
        self, *, outcomes_white: Int8Array, terminations: UInt8Array,
        cut_values_white: Float32Array, start_kinds: UInt8Array,
    ) -> GameRecords:
        """All games in index order, given the columns (n rows each) of whole games."""
        game = np.concatenate(self._game)
        # Stable: within a game the plies arrived in playing order and stay in it.
        order = np.argsort(game, kind="stable")
        counts = np.concatenate(self._target_counts)
        starts = np.cumsum(counts) - counts
        counts, starts = counts[order], starts[order]
        target_offsets = offsets(counts)
        entries = np.repeat(starts - target_offsets[:-1], counts) + np.arange(target_offsets[-1])
        return GameRecords(
            states=np.concatenate(self._states)[order],
            actions=np.concatenate(self._actions)[order],
            values_stm=np.concatenate(self._values)[order],
            surprises=np.concatenate(self._surprises)[order],
            target_offsets=target_offsets,
            target_actions=np.concatenate(self._target_actions)[entries],
            target_weights=np.concatenate(self._target_weights)[entries],
            game_offsets=offsets(np.bincount(game, minlength=self.num_games)),
            outcomes_white=outcomes_white,
            terminations=terminations,
            cut_values_white=cut_values_white,
            start_kinds=start_kinds,
        )


def _without_tiny_weights(targets: Float32Array) -> Float32Array:
    """float32[G, M]: ``targets`` with 0 for tiny weights; rows sum to 1 again."""
    largest = targets.max(axis=1, keepdims=True)
    kept = np.where((targets >= LEAST_WEIGHT) | (targets == largest), targets, np.float32(0))
    weights: Float32Array = kept / kept.sum(axis=1, keepdims=True)
    return weights
