"""What a shard costs to schedule where there are thousands: shards that take no time.

The shards go the way of real ones: Prefect's mapped task, :func:`tasks.compute.run_on_device`, the
scheduler, a worker with the resource ``device``. Scheduler, client and all workers share one
interpreter here, so the figures hold what workers do for shards as well, and are upper bounds; what
workers do otherwise, looking at their own machine twice a second, is left out.
"""

import logging
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import dask
import psutil
from distributed import Client, LocalCluster
from prefect import flow, task

from chess_snn.bench.report import BenchReport
from flows.iteration import waiting_tasks
from flows.servers import prefect_server
from tasks import compute
from tasks.cluster.liveness import DASK_SETTINGS
from tasks.compute import DEVICE, run_all_on_devices, run_on_device

Tell = Callable[[str], None]

_MOST_MEMORY_SHARE: Final = 0.5
"""Of what the machine has left when the first worker starts."""
_MOST_START_S: Final = 300.0
_MOST_FILES_SHARE: Final = 0.8
"""Of the open files that this process may have; a worker has three."""
_WORKERS_AT_ONCE: Final = 100
_LOOK_S: Final = 0.05
_WITHOUT_HOUSEKEEPING: Final = {
    "distributed.admin.system-monitor.interval": "1h",
    "distributed.admin.tick.interval": "1h",
    "distributed.admin.tick.cycle": "1h",
}
"""Looks of a worker at its own machine: two thousand that share an interpreter leave it no time."""


@dataclass(frozen=True, slots=True)
class _Scale:
    """How much is asked for."""

    workers: int
    shards: int
    prefect_shards: int


_FULL: Final = _Scale(workers=2000, shards=10_000, prefect_shards=500)
_QUICK: Final = _Scale(workers=20, shards=100, prefect_shards=10)
_NO_TIME: Final = (time.sleep, 0.0)
"""A shard."""
_SHARED_THREAD: Final = "offload"
"""Where workers compute: thousands of threads would wake each second, and wait for one another."""


def measure_many_workers(report: BenchReport, scratch: Path, quick: bool, tell: Tell) -> None:
    """Add the overhead a shard, by Dask alone and with Prefect before it."""
    scale = _QUICK if quick else _FULL
    compute.start()
    with _simulated_crew(scale.workers, tell) as num_workers:
        if num_workers < scale.workers:
            report.notes.append(
                f"Only {num_workers:,} of {scale.workers:,} workers were started: they reached "
                f"{_MOST_MEMORY_SHARE:.0%} of the memory there was, {_MOST_START_S:.0f} s, or the "
                "limit of open files (ulimit -n)."
            )
        report.add("simulated workers", num_workers, "workers")
        tell(f"{scale.shards:,} shards that take no time on {num_workers:,} workers")
        began = time.perf_counter()
        run_all_on_devices([_NO_TIME] * scale.shards)
        taken = time.perf_counter() - began
        report.add("shards through Dask", scale.shards, "shards")
        report.add("Dask, overhead a shard", 1e3 * taken / scale.shards, "ms")
        tell(f"{scale.prefect_shards:,} shards through Prefect as well")
        per_shard = _through_prefect(scratch, scale.prefect_shards, num_workers)
        report.add("shards through Prefect and Dask", scale.prefect_shards, "shards")
        report.add("Prefect and Dask, overhead a shard", 1e3 * per_shard, "ms")
    report.notes.append(
        f"{scale.shards:,} shards that take no time went through Dask in {taken:.1f} s. Prefect "
        "and Dask: all mapped at once, as an iteration maps its own."
    )


@contextmanager
def _simulated_crew(most: int, tell: Tell) -> Iterator[int]:
    """As many workers in this process as ``most``, or as memory and time allow; how many."""
    with (
        dask.config.set({**DASK_SETTINGS, **_WITHOUT_HOUSEKEEPING}),
        _quiet(),
        LocalCluster(
            n_workers=0, threads_per_worker=1, processes=False, resources={DEVICE: 1},
            dashboard_address=None, memory_limit=0, silence_logs=logging.CRITICAL,
            executor=_SHARED_THREAD,
        ) as cluster,
        Client(cluster),
    ):
        _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
        num_workers, began = 0, time.monotonic()
        most_bytes = int(_MOST_MEMORY_SHARE * psutil.virtual_memory().available)
        while num_workers < most and _has_room(began, most_bytes):
            asked_for = min(most, num_workers + _WORKERS_AT_ONCE)
            cluster.scale(asked_for)
            # Asked of the scheduler itself: a client is sent the facts of all workers each time.
            while (num_workers := len(cluster.scheduler.workers)) < asked_for:
                if time.monotonic() - began > _MOST_START_S:
                    break
                time.sleep(_LOOK_S)
            tell(f"{num_workers:,} of {most:,} simulated workers are up")
        yield num_workers


def _has_room(began: float, most_bytes: int) -> bool:
    here = psutil.Process()
    most_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return bool(
        here.memory_info().rss < most_bytes
        and here.num_fds() < _MOST_FILES_SHARE * most_files
        and time.monotonic() - began < _MOST_START_S
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Workers that are ended in the middle of a heartbeat say so at length."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


@task(name="self_play", task_run_name="self_play-{shard}")
def _empty_shard(shard: int) -> None:
    """A shard that takes no time: what is left is the way to a worker and back."""
    run_on_device(*_NO_TIME)


def _through_prefect(scratch: Path, num_shards: int, num_workers: int) -> float:
    """Seconds a shard, from the first submission to the last result."""

    @flow(name="bench-shards", task_runner=waiting_tasks(num_workers))
    def shards() -> float:
        began = time.perf_counter()
        _empty_shard.map(range(num_shards)).result()
        return time.perf_counter() - began

    with prefect_server(scratch / "services"):
        seconds: float = shards()
    return seconds / num_shards
