"""Cost of a stored position, in bytes and in time, on one core.

The games are uniformly random: positions repeat less than in real play, so real shards are a
little smaller. A rate divides by the wall time or the CPU time of all threads, whichever is longer,
so a second core cannot improve it. The bars hold for games played without search.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.harness import Quick, Report, benchmark
from benchmarks.random_data import TARGET_ENTRIES, play_random_games, with_search_targets
from chess_snn.data import GameRecords, ReplayWindow, read_shard, write_shard
from chess_snn.data.manifest import stored_bytes
from chess_snn.games import Game, get_game
from chess_snn.rng import generator

BYTES_BAR: Final = 40.0
WRITE_BAR: Final = 500_000.0
READ_BAR: Final = 1_000_000.0

_NUM_GAMES: Final = 256
_MAX_PLIES: Final = 200
_BATCH_SIZES: Final = (256, 2048)
_BATCHES_PER_ROUND: Final = 20
_SEED: Final = 1


def run(report: Report, quick: Quick = False) -> None:
    """Writing and reading shards, and sampling from the window."""
    num_rounds = 3 if quick else 15
    game = get_game("chess")
    records = play_random_games(game, _NUM_GAMES, _MAX_PLIES)
    with tempfile.TemporaryDirectory(prefix="chess-snn-bench-") as folder:
        _measure_shards(report, Path(folder, "policy"), records, num_rounds, bars=True)
        searched = with_search_targets(game, records)
        name = f", {TARGET_ENTRIES}-entry targets"
        _measure_shards(report, Path(folder, "search"), searched, num_rounds, name)
        _measure_window(report, game, Path(folder, "search", "shard-0"), num_rounds)
    report.note(
        f"one shard of {records.num_games} random games, {records.num_positions:,} positions; "
        "sync, manifest and verification included; medians"
    )


command = benchmark("store", run)


def _measure_shards(
    report: Report, parent: Path, records: GameRecords, num_rounds: int, name: str = "",
    bars: bool = False,
) -> None:
    folders = [parent / f"shard-{k}" for k in range(num_rounds)]
    meta = {"game": "chess"}
    write = [_seconds(partial(write_shard, folder, records, meta)) for folder in folders]
    read = [_seconds(partial(read_shard, folder)) for folder in folders]
    N = records.num_positions
    num_bytes = stored_bytes(folders[0])
    at_most = BYTES_BAR if bars else None
    report.add(f"on the disk{name}", num_bytes / N, "bytes/position", at_most=at_most)
    at_least = WRITE_BAR if bars else None
    report.add(f"written{name}", N / statistics.median(write), "positions/s", at_least=at_least)
    at_least = READ_BAR if bars else None
    report.add(f"read back{name}", N / statistics.median(read), "positions/s", at_least=at_least)


def _measure_window(report: Report, game: Game, shard: Path, num_rounds: int) -> None:
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
