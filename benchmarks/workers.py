"""One worker beside two, and the orchestration's share of an iteration.

Every worker has one thread and plays the same games, shard by shard. The orchestration's own time
is the time in which no worker plays, trains or evaluates.
"""

import importlib
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.harness import Quick, Report, benchmark
from chess_snn.campaign import CampaignFolder, load_config, read_receipts
from chess_snn.campaign.machine.cost import warm_up
from chess_snn.campaign.stages import play_shard, prepare_first_generation
from chess_snn.campaign.store.plans import begin_iteration
from chess_snn.cli.orchestration import load_flows
from chess_snn.cores import num_cores

LEAST_RATIO: Final = 1.8
MOST_SHARE: Final = 0.05

_ORDER, _ORDER_QUICK = (1, 2, 2, 1), (1, 2)
"""Workers of each turn; the machine's drift has the same weight for both."""
_SHARDS, _SHARDS_QUICK = 16, 2
"""Many, so that waiting for the last one takes little of the whole."""
_GAMES_A_SHARD, _GAMES_A_SHARD_QUICK = 64, 4
_SETTINGS: Final = (
    "execution.device=cpu", "net.precision=int8", "self_play.max_plies_first=60",
    "search.simulations_first=8",
)

ITERATIONS: Final = 3
_SELF_PLAY_S: Final = 45.0
"""Self-play of an iteration, which lasts about a minute with training and evaluation."""
_ITERATION_GAMES_QUICK: Final = 16
_ITERATION_SHARDS: Final = 8
_CAMPAIGN_SETTINGS: Final = (
    *_SETTINGS, "execution.workers=2", "self_play.max_plies_last=60",
    "search.simulations_last=8", "training.presentations=1.0", 'evaluation.opponents=["random"]',
    "evaluation.num_openings=4", "evaluation.max_plies=60", "promotion.max_openings=4",
    f"campaign.iterations={ITERATIONS}",
)

Interval = tuple[float, float]
"""Start and end, in seconds since the epoch."""


def run(report: Report, quick: Quick = False) -> None:
    """One worker beside two, and what orchestration takes of a campaign.

    Takes about 8 minutes.
    """
    load_flows("campaign")  # first: it checks that Prefect is installed, and configures it
    with tempfile.TemporaryDirectory(prefix="chess-snn-bench-") as scratch:
        report.progress("self-play with one and two workers")
        games_per_s = _measure_workers(report, Path(scratch), quick)
        report.progress(f"a campaign of {ITERATIONS} iterations")
        _measure_orchestration(report, Path(scratch), games_per_s, quick)


command = benchmark("workers", run)


def _measure_workers(report: Report, scratch: Path, quick: bool) -> float:
    """Add games/s with one and two workers and their ratio; return games/s with two."""
    shards = _SHARDS_QUICK if quick else _SHARDS
    games = _GAMES_A_SHARD_QUICK if quick else _GAMES_A_SHARD
    order = _ORDER_QUICK if quick else _ORDER
    taken = [_play(scratch / f"turn-{turn}", num_workers, shards, games)
             for turn, num_workers in enumerate(order)]
    per_s = {
        workers: order.count(workers) * shards * games
        / sum(s for s, each in zip(taken, order, strict=True) if each == workers)
        for workers in (1, 2)
    }
    report.add("self-play, 1 worker", per_s[1], "games/s")
    report.add("self-play, 2 workers", per_s[2], "games/s")
    has_bar = num_cores() >= max(order)
    report.add("self-play, 2 workers over 1", per_s[2] / per_s[1], "times",
               at_least=LEAST_RATIO if has_bar else None)
    turns = ", ".join(f"{n} in {s:.1f} s" for n, s in zip(order, taken, strict=True))
    report.note(f"Workers' turns, each over {shards} shards of {games} games: {turns}.")
    if not has_bar:
        report.note("1 core: two workers share it, so the ratio has no bar.")
    return per_s[2]


def _play(directory: Path, num_workers: int, shards: int, games: int) -> float:
    """Seconds that ``num_workers`` take for the shards, after one shard each to warm up."""
    compute: Any = importlib.import_module("chess_snn.tasks.compute")
    config = load_config(settings=(
        *_SETTINGS, f"execution.workers={num_workers}", f"self_play.games_per_shard={games}",
        f"self_play.concurrent_games={games}",
        f"self_play.games_per_iteration={games * (shards + num_workers)}",
    ))
    folder = CampaignFolder.create(directory, config)
    warm_up(config)
    prepare_first_generation(folder)
    begin_iteration(folder, 0, 0.0)

    def play(numbers: range) -> None:
        # Not by chess_snn.tasks.remote, which takes all threads of the worker's slot.
        compute.run_all_on_devices([(play_shard, folder.path, 0, number) for number in numbers])

    compute.start()
    with load_flows("cluster").campaign_workers(folder, say=lambda line: None):
        # Loads kernels and network: a worker takes one shard at a time, so each gets one of these.
        play(range(shards, shards + num_workers))
        began = time.perf_counter()
        play(range(shards))
        return time.perf_counter() - began


def _measure_orchestration(
    report: Report, scratch: Path, games_per_s: float, quick: bool
) -> None:
    """Run a campaign of three iterations of about a minute; add the time without workers' work."""
    games = _ITERATION_GAMES_QUICK if quick else round(_SELF_PLAY_S * games_per_s)
    folder = CampaignFolder.create(scratch / "campaign", load_config(settings=(
        *_CAMPAIGN_SETTINGS, f"self_play.games_per_iteration={games}",
        f"self_play.games_per_shard={-(-games // _ITERATION_SHARDS)}",
    )))
    with noted_busy_times() as intervals:
        load_flows("campaign").launch_campaign(folder, lambda event: None)
    receipts = read_receipts(folder)
    # Time from the first plan to the last receipt: servers and workers ran before.
    span_s = receipts[-1].elapsed_s - receipts[0].plan.elapsed_s
    own_s = span_s - union_s(intervals)
    report.add("iteration", span_s / len(receipts), "s")
    report.add("orchestration, own time an iteration", own_s / len(receipts), "s")
    report.add(
        "orchestration, share of the iterations", own_s / span_s, "share",
        at_most=None if quick else MOST_SHARE,
    )
    report.note(
        f"The share is of {len(receipts)} iterations of a campaign with its Prefect server, MLflow "
        f"store and 2 workers: time in which no worker worked, of {len(intervals)} calls."
    )


_noted: list[Interval] = []


def dask_setup(scheduler: Any) -> None:
    """Called by Dask, which loads this module into its scheduler."""
    from distributed import SchedulerPlugin  # noqa: PLC0415 -- an extra

    class BusyTimes(SchedulerPlugin):  # type: ignore[misc]  # distributed has no types
        """Notes when each call began and ended on its worker."""

        name = "chess-snn-busy-times"

        def transition(self, key: object, start: str, finish: str, *_: Any, **facts: Any) -> None:
            if start == "processing" and finish in {"memory", "erred"}:
                # Not the time that the worker reports: Dask shifts it by its estimate of the
                # worker's clock, which a late heartbeat makes wrong by seconds.
                ended = time.time()
                _noted.extend(
                    (ended - (part["stop"] - part["start"]), ended)
                    for part in facts.get("startstops") or () if part["action"] == "compute"
                )

    scheduler.add_plugin(BusyTimes(), idempotent=True)


@contextmanager
def noted_busy_times() -> Iterator[list[Interval]]:
    """Note when workers compute, for schedulers that this process starts in the block."""
    dask: Any = importlib.import_module("dask")
    _noted.clear()
    with dask.config.set({"distributed.scheduler.preload": [__name__]}):
        yield _noted


def union_s(intervals: Iterable[Interval]) -> float:
    """Seconds that at least one of the intervals covers."""
    total, reached = 0.0, float("-inf")
    for began, ended in sorted(intervals):
        total += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    return total
