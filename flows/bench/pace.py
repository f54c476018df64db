"""Games/s of self-play with one and with two workers, through the crew that campaigns have.

Every worker has one thread and plays the same games, shard by shard; so the ratio is of the same
work, and what is missing to two is what workers cost each other and the scheduler them.
"""

import time
from pathlib import Path
from typing import Final

from chess_snn.bench.report import BenchReport
from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.machine.warm_up import warm_up
from chess_snn.campaign.stages import prepare_first_generation
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.campaign.store.receipts import ShardFacts
from chess_snn.cores import num_cores
from flows.cluster import campaign_crew
from tasks import compute, remote

LEAST_RATIO: Final = 1.8
_NUM_THREADS: Final = 1
_ORDER: Final = (1, 2, 2, 1)
"""Workers of each turn; the machine's own drift weighs alike on both."""
_ORDER_QUICK: Final = (1, 2)
_SHARDS: Final = 16
"""So many that the last one to end keeps the other worker waiting for little of the whole."""
_SHARDS_QUICK: Final = 2
_GAMES_A_SHARD: Final = 64
_GAMES_A_SHARD_QUICK: Final = 4
_SETTINGS: Final = (
    "execution.device=cpu", "net.precision=int8", "self_play.max_plies_first=60",
    "search.simulations_first=8",
)


def measure_pace(report: BenchReport, scratch: Path, quick: bool) -> float:
    """Add games/s with one and two workers and their ratio; games/s with two."""
    shards = _SHARDS_QUICK if quick else _SHARDS
    games = _GAMES_A_SHARD_QUICK if quick else _GAMES_A_SHARD
    seconds = {1: 0.0, 2: 0.0}
    order = _ORDER_QUICK if quick else _ORDER
    turns_told = []
    for turn, num_workers in enumerate(order):
        taken = _play(scratch / f"turn-{turn}", num_workers, shards, games)
        seconds[num_workers] += taken
        turns_told.append(f"{num_workers} in {taken:.1f} s")
    turns = order.count(1)
    per_s = {workers: turns * shards * games / taken for workers, taken in seconds.items()}
    report.add("self-play, 1 worker", per_s[1], "games/s")
    report.add("self-play, 2 workers", per_s[2], "games/s")
    bar = LEAST_RATIO if num_cores() >= max(order) else None
    report.add("self-play, 2 workers over 1", per_s[2] / per_s[1], "times", at_least=bar)
    report.notes.append(
        f"Workers' turns, each over {shards} shards of {games} games: {', '.join(turns_told)}."
    )
    if bar is None:
        report.notes.append(f"{num_cores()} core: two workers share it, and the bar is not held")
    return per_s[2]


def _play(directory: Path, num_workers: int, shards: int, games: int) -> float:
    """Seconds that so many workers take for the shards; each has played one before."""
    config = load_config(settings=(
        *_SETTINGS, f"execution.workers={num_workers}", f"self_play.games_per_shard={games}",
        f"self_play.concurrent_games={games}",
        f"self_play.games_per_iteration={games * (shards + num_workers)}",
    ))
    folder = CampaignFolder.create(directory, config)
    warm_up(config)
    prepare_first_generation(folder)
    begin_iteration(folder, 0, 0.0)
    compute.start()
    with campaign_crew(folder, say=lambda line: None):
        # Loads kernels and network: a worker takes one shard at a time, so each gets one of these.
        _play_shards(folder, range(shards, shards + num_workers))
        began = time.perf_counter()
        _play_shards(folder, range(shards))
        return time.perf_counter() - began


def _play_shards(folder: CampaignFolder, numbers: range) -> list[ShardFacts]:
    return compute.run_all_on_devices([
        (remote.play_shard, str(folder.path), 0, number, _NUM_THREADS) for number in numbers
    ])
