"""Random positions and games to measure on.

Dimensions: n positions, P bitplanes, M columns for legal actions.
"""

import itertools
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from torch import Tensor

from benchmarks.harness import Work
from chess_snn.api.environment import Env, make_env
from chess_snn.data import START_KINDS, GameRecords, ReplayWindow, write_shard
from chess_snn.games import ONGOING, Game, ValueKind, get_game
from chess_snn.games.starts import random_legal_actions, random_starts
from chess_snn.nets import Evaluation, Evaluator, Network, network_input
from chess_snn.rng import generator, random_words
from chess_snn.types import Int16Array, Int32Array, UInt64Array

STEPPED_GAMES: Final = 1024
ENV_BAR: Final = 0.8
"""Least share of the kernels' speed that the public environment has."""
TARGET_ENTRIES: Final = 32
"""Most actions of a made-up search target."""

_LONGEST_START: Final = 80
_NUM_SIMULATIONS: Final = 64
"""Search targets are visit fractions of this many simulations."""
_SEED: Final = 1


@dataclass(frozen=True, slots=True)
class Positions:
    """n positions of chess as evaluators take them."""

    planes: UInt64Array
    """uint64[n, P]."""
    legal_actions: Int16Array
    """int16[n, M]."""
    num_legal: Int32Array
    """int32[n]."""

    def __getitem__(self, rows: slice) -> "Positions":
        """The positions of ``rows``."""
        return Positions(self.planes[rows], self.legal_actions[rows], self.num_legal[rows])

    def __len__(self) -> int:
        """Number of positions, n."""
        return len(self.planes)

    def ask(self, evaluator: Evaluator) -> Evaluation:
        """Evaluate all of them in one call."""
        return evaluator.evaluate(self.planes, self.legal_actions, self.num_legal)

    def tensor(self, network: Network) -> Tensor:
        """float32[n, P, 8, 8]: the planes that ``network`` sees."""
        return network_input(self.planes[:, : network.num_planes], network.spec.board_shape)


def random_positions(count: int) -> Positions:
    """``count`` positions of random games, from the first ply to the eightieth."""
    game = get_game("chess")
    plies = np.resize(np.arange(_LONGEST_START, dtype=np.int32), count)
    states = random_starts(game, np.arange(count, dtype=np.uint64), plies)
    return Positions(game.planes(states), *game.legal_actions(states))


def play_random_games(
    game: Game, num_games: int, max_plies: int, seed: int = _SEED
) -> GameRecords:
    """``num_games`` games of uniformly random moves, truncated at ``max_plies``.

    Values are noise.
    """
    rng = generator(seed, "bench", "store")
    batch = game.allocate(num_games)
    keys = rng.integers(1 << 63, size=num_games, dtype=np.uint64)
    states = np.empty((num_games, max_plies, game.spec.record_words), np.uint64)
    actions = np.empty((num_games, max_plies), np.int16)
    is_played = np.empty((num_games, max_plies), np.bool_)
    outcomes_white = np.zeros(num_games, np.int8)
    is_stochastic = game.spec.is_stochastic
    has_results = game.spec.value_kind is ValueKind.WDL
    for ply in range(max_plies):
        is_played[:, ply] = batch.termination == ONGOING
        states[:, ply] = batch.state[:, : game.spec.record_words]
        plies = np.full(num_games, ply, np.int32)
        actions[:, ply] = random_legal_actions(batch, keys, plies)
        sign = 1 - 2 * game.side_to_move(batch.state).astype(np.int8)
        chance = rng.integers(1 << 63, size=num_games, dtype=np.uint64) if is_stochastic else None
        game.step(batch, actions[:, ply].copy(), chance)
        has_won = is_played[:, ply] & (batch.reward > 0) & has_results
        outcomes_white[has_won] = sign[has_won]
    num_positions = int(is_played.sum())
    lengths = is_played.sum(axis=1)
    values = np.tanh(rng.normal(scale=0.3, size=num_positions)).astype(np.float32)
    return GameRecords(
        states=states[is_played],
        actions=actions[is_played],
        values_stm=np.clip(values, *game.spec.value_range),
        surprises=np.zeros(num_positions, np.float32),
        target_offsets=np.arange(num_positions + 1),
        target_actions=actions[is_played],
        target_weights=np.ones(num_positions, np.float32),
        game_offsets=np.concatenate([[0], np.cumsum(lengths)]),
        outcomes_white=outcomes_white,
        terminations=batch.termination.copy(),
        cut_values_white=np.zeros(num_games, np.float32),
        start_kinds=np.full(num_games, START_KINDS.index("ordinary"), np.uint8),
    )


def with_search_targets(game: Game, records: GameRecords) -> GameRecords:
    """``records`` with made-up visit fractions over up to 32 legal actions, and surprises."""
    rng = generator(_SEED, "bench", "search_targets")
    legal_actions, num_legal = game.legal_actions(records.states)
    lengths = np.minimum(num_legal, TARGET_ENTRIES)
    columns = np.arange(TARGET_ENTRIES)
    is_entry = columns < lengths[:, None]
    visits = np.where(is_entry, 1.0 + rng.geometric(0.3, is_entry.shape), 0.0)
    visits = np.where(is_entry, np.ceil(visits * _NUM_SIMULATIONS / visits.sum(1)[:, None]), 0.0)
    weights = (visits / visits.sum(axis=1)[:, None]).astype(np.float32)
    return replace(
        records,
        surprises=rng.exponential(size=len(lengths)).astype(np.float32),
        target_offsets=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        target_actions=legal_actions[:, :TARGET_ENTRIES][is_entry],
        target_weights=weights[is_entry],
    )


def random_window(num_games: int, max_plies: int) -> ReplayWindow:
    """A window over random games of chess with targets as a search writes them."""
    game = get_game("chess")
    records = with_search_targets(game, play_random_games(game, num_games, max_plies))
    with tempfile.TemporaryDirectory() as scratch:
        shard = Path(scratch) / "shard"
        write_shard(shard, records, {"game": "chess"})
        return ReplayWindow.load(game, [shard], capacity=records.num_positions)


def stepping(game: str, with_planes: bool) -> Work:
    """One ply of a batch of 1,024 random games of ``game``, again and again, on one core."""
    plies = _play_batch(get_game(game), with_planes)
    return Work(lambda: next(plies), items=STEPPED_GAMES)


def stepping_env(game: str, with_planes: bool) -> Work:
    """The same by the public environment."""
    plies = _play_env(make_env(game, STEPPED_GAMES, seed=_SEED), with_planes)
    return Work(lambda: next(plies), items=STEPPED_GAMES)


def _play_env(env: Env, with_planes: bool) -> Iterator[None]:
    keys = np.arange(_SEED, _SEED + STEPPED_GAMES, dtype=np.uint64)
    for ply in itertools.count():
        plies = np.full(STEPPED_GAMES, ply, dtype=np.int32)
        step = env.step(random_legal_actions(env.batch, keys, plies))
        if step.ended.any():
            env.reset(step.ended)
        if with_planes:
            env.observe(packed=True)
        yield


def _play_batch(game: Game, with_planes: bool) -> Iterator[None]:
    """Endless random games, one ply of the whole batch a turn."""
    batch = game.allocate(STEPPED_GAMES)
    keys = np.arange(_SEED, _SEED + STEPPED_GAMES, dtype=np.uint64)
    starts = game.initial_states(keys)
    for ply in itertools.count():
        actions = random_legal_actions(batch, keys, np.full(STEPPED_GAMES, ply, dtype=np.int32))
        chance = None
        if game.spec.is_stochastic:
            chance = random_words(keys, np.full(STEPPED_GAMES, ply, dtype=np.uint64))
        game.step(batch, actions, chance)
        ended = np.flatnonzero(batch.termination)
        if len(ended):
            game.reset(batch, ended, starts[: len(ended)])
        if with_planes:
            game.planes(batch.state)
        yield
