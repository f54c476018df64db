"""``bench store``: what a stored position costs, in bytes and in time, on one core.

The games are uniformly random ones: positions repeat less than in real play, so real shards are a
little smaller. A rate is positions over the wall time or the CPU time of all threads, whichever
is longer, so that no second core can flatter it. The bars hold for games played without search.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from chess_snn.bench.report import BenchReport
from chess_snn.data import START_KINDS, GameRecords, ReplayWindow, read_shard, write_shard
from chess_snn.games import ONGOING, Game, ValueKind, get_game
from chess_snn.games.sampling import random_legal_actions
from chess_snn.rng import generator

BYTES_BAR: Final = 40.0
WRITE_BAR: Final = 500_000.0
READ_BAR: Final = 1_000_000.0

_NUM_GAMES: Final = 256
_PLY_CAP: Final = 200
_TARGET_ENTRIES: Final = 32
_NUM_SIMULATIONS: Final = 64
"""Search targets are visit fractions of this many simulations."""
_BATCH_SIZES: Final = (256, 2048)
_BATCHES_PER_ROUND: Final = 20
_SEED: Final = 1


def run(quick: bool = False) -> BenchReport:
    """Write, read and sample a shard of random chess games in a temporary folder.

    Args:
        quick: three rounds instead of fifteen; the medians are noisier.
    """
    num_rounds = 3 if quick else 15
    game = get_game("chess")
    records = play_random_games(game, _NUM_GAMES, _PLY_CAP)
    report = BenchReport("store")
    with tempfile.TemporaryDirectory(prefix="chess-snn-bench-") as folder:
        _measure_shards(report, Path(folder, "policy"), records, num_rounds, bars=True)
        searched = with_search_targets(game, records)
        name = f", {_TARGET_ENTRIES}-entry targets"
        _measure_shards(report, Path(folder, "search"), searched, num_rounds, name)
        _measure_window(report, game, Path(folder, "search", "shard-0"), num_rounds)
    report.notes.append(
        f"one shard of {records.num_games} random games, {records.num_positions:,} positions; "
        "sync, manifest and verification included; medians"
    )
    return report


def play_random_games(game: Game, num_games: int, ply_cap: int) -> GameRecords:
    """``num_games`` games of uniformly random moves, cut at ``ply_cap``; values are noise."""
    rng = generator(_SEED, "bench", "store")
    batch = game.allocate(num_games)
    keys = rng.integers(1 << 63, size=num_games, dtype=np.uint64)
    states = np.empty((num_games, ply_cap, game.spec.record_words), np.uint64)
    actions = np.empty((num_games, ply_cap), np.int16)
    is_played = np.empty((num_games, ply_cap), np.bool_)
    outcomes_white = np.zeros(num_games, np.int8)
    is_stochastic = game.spec.is_stochastic
    has_results = game.spec.value_kind is ValueKind.WDL
    for ply in range(ply_cap):
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
    lengths = np.minimum(num_legal, _TARGET_ENTRIES)
    columns = np.arange(_TARGET_ENTRIES)
    is_entry = columns < lengths[:, None]
    visits = np.where(is_entry, 1.0 + rng.geometric(0.3, is_entry.shape), 0.0)
    visits = np.where(is_entry, np.ceil(visits * _NUM_SIMULATIONS / visits.sum(1)[:, None]), 0.0)
    weights = (visits / visits.sum(axis=1)[:, None]).astype(np.float32)
    return replace(
        records,
        surprises=rng.exponential(size=len(lengths)).astype(np.float32),
        target_offsets=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        target_actions=legal_actions[:, :_TARGET_ENTRIES][is_entry],
        target_weights=weights[is_entry],
    )


def _measure_shards(
    report: BenchReport, parent: Path, records: GameRecords, num_rounds: int, name: str = "",
    bars: bool = False,
) -> None:
    folders = [parent / f"shard-{k}" for k in range(num_rounds)]
    meta = {"game": "chess"}
    write = [_seconds(partial(write_shard, folder, records, meta)) for folder in folders]
    read = [_seconds(partial(read_shard, folder)) for folder in folders]
    N = records.num_positions
    num_bytes = sum(file.stat().st_size for file in folders[0].rglob("*") if file.is_file())
    at_most = BYTES_BAR if bars else None
    report.add(f"on the disk{name}", num_bytes / N, "bytes/position", at_most=at_most)
    at_least = WRITE_BAR if bars else None
    report.add(f"written{name}", N / statistics.median(write), "positions/s", at_least=at_least)
    at_least = READ_BAR if bars else None
    report.add(f"read back{name}", N / statistics.median(read), "positions/s", at_least=at_least)


def _measure_window(report: BenchReport, game: Game, shard: Path, num_rounds: int) -> None:
    load_window = partial(ReplayWindow.load, game, [shard], capacity=1 << 30)
    load = [_seconds(load_window) for _ in range(num_rounds)]
    window = load_window()
    N = window.records.num_positions
    report.add("window loaded", N / statistics.median(load), "positions/s")
    rng = generator(_SEED, "bench", "sample")
    for batch_size in _BATCH_SIZES:
        window.sample(batch_size, rng)  # compiles
        for name, share in {"uniformly": 0.0, "by surprise": 1.0}.items():
            sample = partial(window.sample, batch_size, rng, surprise_share=share)
            sampled = [_seconds(sample) for _ in range(_BATCHES_PER_ROUND * num_rounds)]
            rate = batch_size / statistics.median(sampled)
            report.add(f"sampled {name}, batches of {batch_size}", rate, "samples/s")


def _seconds(work: Callable[[], object]) -> float:
    """Wall time or CPU time of all threads, whichever is longer."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return max(time.perf_counter() - wall, time.process_time() - cpu)
