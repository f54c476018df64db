"""What a shard costs to schedule among thousands: shards that take no time, simulated workers.

The shards take the same path as real ones: Prefect's mapped task,
:func:`tasks.compute.run_on_device`, the scheduler, a worker with the resource ``device``. The
scheduler, client and all workers share one interpreter, so the figures are upper bounds.
"""

import logging
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import dask
from distributed import Client, LocalCluster
from prefect import flow, task

from benchmarks.report import Report
from flows.iteration import waiting_tasks
from flows.servers import prefect_server
from tasks import compute
from tasks.cluster.worker_setup import DASK_SETTINGS
from tasks.compute import DEVICE, run_all_on_devices, run_on_device

_WORKERS, _WORKERS_QUICK = 2000, 20
_SHARDS, _SHARDS_QUICK = 10_000, 100
_PREFECT_SHARDS, _PREFECT_SHARDS_QUICK = 500, 10
_MOST_START_S: Final = 300.0
_WORKERS_AT_ONCE: Final = 100
_POLL_S: Final = 0.05
_WITHOUT_HOUSEKEEPING: Final = {
    "distributed.admin.system-monitor.interval": "1h",
    "distributed.admin.tick.interval": "1h",
    "distributed.admin.tick.cycle": "1h",
}
"""Two thousand workers that monitor their machine would leave the interpreter no time."""
_SHARED_THREAD: Final = "offload"
"""Where workers compute: thousands of threads would wake each second."""
_NO_TIME: Final = (time.sleep, 0.0)
"""A shard."""


def measure_scheduling(report: Report, scratch: Path, quick: bool) -> None:
    """Add the overhead of a shard, with Dask alone and with Prefect in front of it."""
    most = _WORKERS_QUICK if quick else _WORKERS
    shards = _SHARDS_QUICK if quick else _SHARDS
    prefect_shards = _PREFECT_SHARDS_QUICK if quick else _PREFECT_SHARDS
    compute.start()
    with _simulated_workers(report, most) as num_workers:
        if num_workers < most:
            report.note(f"Only {num_workers:,} of {most:,} workers started in {_MOST_START_S:g} s.")
        report.add("simulated workers", num_workers, "workers")
        report.progress(f"{shards:,} shards that take no time on {num_workers:,} workers")
        began = time.perf_counter()
        run_all_on_devices([_NO_TIME] * shards)
        taken = time.perf_counter() - began
        report.add("shards through Dask", shards, "shards")
        report.add("Dask, overhead a shard", 1e3 * taken / shards, "ms")
        report.progress(f"{prefect_shards:,} shards through Prefect as well")
        per_shard = _through_prefect(scratch, prefect_shards, num_workers)
        report.add("shards through Prefect and Dask", prefect_shards, "shards")
        report.add("Prefect and Dask, overhead a shard", 1e3 * per_shard, "ms")
    report.note("Prefect and Dask: all shards mapped at once, as in an iteration.")


@contextmanager
def _simulated_workers(report: Report, most: int) -> Iterator[int]:
    """``most`` workers in this process, or as many as start in time; yields their number."""
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    # Workers that end in the middle of a heartbeat log long errors.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with (
        dask.config.set({**DASK_SETTINGS, **_WITHOUT_HOUSEKEEPING}),
        LocalCluster(
            n_workers=0, threads_per_worker=1, processes=False, resources={DEVICE: 1},
            dashboard_address=None, memory_limit=0, silence_logs=logging.CRITICAL,
            executor=_SHARED_THREAD,
        ) as cluster,
        Client(cluster),
    ):
        num_workers, deadline = 0, time.monotonic() + _MOST_START_S
        while num_workers < most and time.monotonic() < deadline:
            wanted = min(most, num_workers + _WORKERS_AT_ONCE)
            cluster.scale(wanted)
            # The scheduler itself is asked: a client receives the facts of all workers each time.
            while (num_workers := len(cluster.scheduler.workers)) < wanted:
                if time.monotonic() > deadline:
                    break
                time.sleep(_POLL_S)
            report.progress(f"{num_workers:,} of {most:,} simulated workers run")
        yield num_workers


@task(name="self_play", task_run_name="self_play-{shard}")
def _empty_shard(shard: int) -> None:
    """A shard that takes no time."""
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
