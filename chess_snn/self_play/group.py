"""A group of games on one search: one search call a ply for all of its games in play.

The loop of self-play. Read ``GameGroup.play_ply``: search, record, step, and replace games that are
over. File 9 of 16 of the spine in docs/architecture.md.

The games in play live in *rows* of one batch. A game that ends frees its row for the group's next
game; when no game is left to start, rows are dropped, so that the network never sees a dead row.

Concurrent games interleave: ply t of every running game arrives together. The recorder keeps the
columns as they arrive and orders them once, at the end. A tree gives every legal action some weight
in its policy target. Weights below ``LEAST_WEIGHT`` are left out, so that shards stay small, though
never the largest of a position; the others are divided by their sum.

Dimensions: G rows in play, n games of the group, N positions in all, M columns for legal actions.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from chess_snn.data.records import GameRecords, offsets
from chess_snn.games.base import ONGOING, Game, GameBatch
from chess_snn.rng import random_words
from chess_snn.search.base import Search, SearchResult
from chess_snn.self_play.settings import SelfPlaySettings
from chess_snn.self_play.starts import GamePlan
from chess_snn.types import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int8Array,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)

LEAST_WEIGHT: Final = 1 / 512
"""Entries of a policy target below this are left out."""
MATERIAL_SCALE: Final = 6.0
"""The balance, in pawns, at which material counts as tanh(1) = 0.76: about a rook and a pawn, which
wins as a rule. A pawn counts as 0.17, a queen as 0.91."""


def cut_values_white(
    game: Game, states: UInt64Array, root_values_white: Float32Array, *, material_share: float,
    limit: float,
) -> Float32Array:
    """float32[G] in [-limit, limit]: values of truncated games in training, white's view.

    Counted as draws, these would teach that being a rook ahead is worth nothing, and most early
    games are truncated.

    Args:
        game: whose :meth:`~chess_snn.games.base.Game.heuristic_stm` is the material.
        states: uint64[G, W], the positions in which the games were truncated.
        root_values_white: float32[G] in [-1, 1], of each game's last search.
        material_share: weight of material in [0, 1]; the rest is the root value's.
        limit: the largest size of a value, in [0, 1].
    """
    material_stm = game.heuristic_stm(states)
    material_white = np.where(game.side_to_move(states) == 0, material_stm, -material_stm)
    material = np.tanh(material_white / MATERIAL_SCALE)
    mixed = material_share * material + (1 - material_share) * root_values_white
    return (limit * mixed).astype(np.float32)


@dataclass(slots=True)
class GameRecorder:
    """Columns of ``num_games`` games in play; games are named by their index in [0, num_games)."""

    num_games: int
    record_words: int
    value_range: tuple[float, float] = (-1.0, 1.0)
    """Range of the game's values: a network may promise more than any game can bring."""
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
        if result.policy_targets.shape[1] > 0:
            targets = _without_tiny_weights(result.policy_targets)
            rows, slots = np.nonzero(targets)
            counts = np.bincount(rows, minlength=len(games))
            actions, weights = batch.legal_actions[rows, slots], targets[rows, slots]
        else:
            counts = np.ones(len(games), np.int64)
            actions, weights = result.actions, np.ones(len(games), np.float32)
        self._game.append(games.copy())
        self._states.append(batch.state[:, : self.record_words].copy())
        self._actions.append(result.actions)
        self._values.append(np.clip(result.values_stm, *self.value_range))
        self._surprises.append(result.surprises)
        self._target_counts.append(counts)
        self._target_actions.append(actions)
        self._target_weights.append(weights)

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


class GameGroup:
    """Plays the games of ``plan``, at most ``num_rows`` of them at once."""

    points: Float64Array
    """float64[n]: of a game of one player, what it got since its start; else 0."""
    milestones: Int64Array
    """int64[n]: how far it has got, once it is over."""

    def __init__(
        self, game: Game, search: Search, settings: SelfPlaySettings, plan: GamePlan,
        num_rows: int,
    ) -> None:
        self._game, self._search, self._settings, self._plan = game, search, settings, plan
        self._recorder = GameRecorder(
            len(plan), game.spec.record_words, game.spec.value_range
        )
        self._outcomes_white = np.zeros(len(plan), np.int8)
        self._terminations = np.zeros(len(plan), np.uint8)
        self._cut_values_white = np.zeros(len(plan), np.float32)
        self._is_solo = game.spec.num_players == 1
        self.points = np.zeros(len(plan))
        self.milestones = np.zeros(len(plan), np.int64)
        self.num_finished = 0
        self.num_positions = 0
        self.entropy_sum = 0.0
        self.uniform_entropy_sum = 0.0

        rows = min(len(plan), num_rows)
        self._next_game = rows
        self._row_game: Int64Array = np.arange(rows)
        self._row_ply: Int32Array = np.zeros(rows, np.int32)
        self._batch: GameBatch = game.allocate(rows)
        game.reset(self._batch, self._row_game, plan.starts.states[:rows])

    @property
    def rows(self) -> int:
        """G, the games in play."""
        return len(self._row_game)

    def play_ply(self) -> None:
        """One ply in every game in play; temperatures fall in the first plies of a game."""
        batch, game, plan = self._batch, self._game, self._plan
        result = self._search.run(
            batch,
            plan.action_keys[self._row_game],
            self._row_ply,
            self._settings.temperatures(self._row_ply),
        )
        self._recorder.add_ply(self._row_game, batch, result)
        self.num_positions += self.rows
        self.entropy_sum += float(result.prior_entropies.sum())
        self.uniform_entropy_sum += float(np.log(batch.num_legal).sum())

        movers = game.side_to_move(batch.state)
        chance = None
        if game.spec.is_stochastic:
            chance = random_words(
                plan.chance_keys[self._row_game], self._row_ply.astype(np.uint64)
            )
        game.step(batch, result.actions, chance)
        self._row_ply += 1
        if self._is_solo:
            self.points[self._row_game] += game.spec.score_unit * batch.reward
        over = (batch.termination != ONGOING) | (self._row_ply >= plan.max_plies)
        if over.any():
            white_moved = movers == 0
            values_white = np.where(white_moved, result.values_stm, -result.values_stm)
            rows = np.flatnonzero(over)
            self._score(rows, white_moved[rows], values_white[rows])
            self._replace(rows)

    def records(self) -> GameRecords:
        """The finished games."""
        return self._recorder.finish(
            outcomes_white=self._outcomes_white,
            terminations=self._terminations,
            cut_values_white=self._cut_values_white,
            start_kinds=self._plan.starts.kinds,
        )

    def _score(
        self, rows: Int64Array, white_moved: BoolArray, root_values_white: Float32Array
    ) -> None:
        """Note how the games in ``rows`` ended: by the rules, or truncated."""
        games, batch = self._row_game[rows], self._batch
        self.num_finished += rows.size
        self._terminations[games] = batch.termination[rows]
        if self._is_solo:  # no winner: training uses rewards
            self.milestones[games] = self._game.milestones(batch.state[rows])
            return
        is_cut = batch.termination[rows] == ONGOING
        outcomes_mover = np.where(is_cut, 0.0, np.sign(batch.reward[rows]))
        self._outcomes_white[games] = np.where(white_moved, outcomes_mover, -outcomes_mover)
        self._cut_values_white[games[is_cut]] = cut_values_white(
            self._game, batch.state[rows[is_cut]], root_values_white[is_cut],
            material_share=self._plan.material_share, limit=self._settings.truncated_value_limit,
        )

    def _replace(self, rows: Int64Array) -> None:
        """Start the next games in ``rows``, or drop those for which none is left."""
        num_new = min(rows.size, len(self._plan) - self._next_game)
        refill, drop = rows[:num_new], rows[num_new:]
        if num_new:
            new_games = np.arange(self._next_game, self._next_game + num_new)
            self._game.reset(self._batch, refill, self._plan.starts.states[new_games])
            self._row_game[refill], self._row_ply[refill] = new_games, 0
            self._next_game += num_new
        if drop.size:
            keep = np.setdiff1d(np.arange(self.rows), drop)
            self._batch = self._batch.take(keep)
            self._row_game, self._row_ply = self._row_game[keep], self._row_ply[keep]
