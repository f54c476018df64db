"""When workers computed: noted by a plugin of the scheduler that a campaign starts in this process.

Dask loads this module into its scheduler (``distributed.scheduler.preload``), and calls
:func:`dask_setup`; it is the same module here, so what is noted there can be read here.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import dask
from distributed import Scheduler, SchedulerPlugin

Interval = tuple[float, float]
"""Seconds since the epoch: began, ended."""

_COMPUTE: Final = "compute"
"""Dask's name of the time in the function itself, beside transfers."""

_noted: list[Interval] = []


class _BusyTimes(SchedulerPlugin):  # type: ignore[misc]  # distributed has no types
    """Notes when each call began and ended on its worker."""

    name = "chess-snn-busy-times"

    def transition(self, key: object, start: str, finish: str, *_: Any, **facts: Any) -> None:
        if start == "processing" and finish in {"memory", "erred"}:
            # Not when it says it ended: Dask moves that by what it takes the worker's clock to be
            # off, which a heartbeat that was answered late puts seconds out.
            ended = time.time()
            _noted.extend(
                (ended - (part["stop"] - part["start"]), ended)
                for part in facts.get("startstops") or () if part["action"] == _COMPUTE
            )


def dask_setup(scheduler: Scheduler) -> None:
    """Called by Dask when the scheduler starts."""
    scheduler.add_plugin(_BusyTimes(), idempotent=True)


@contextmanager
def noted_busy_times() -> Iterator[list[Interval]]:
    """Note what workers of schedulers do that are started in the block; filled as calls end."""
    _noted.clear()
    with dask.config.set({"distributed.scheduler.preload": [__name__]}):
        yield _noted


def union_s(intervals: Iterable[Interval]) -> float:
    """Seconds in which at least one of the intervals was under way."""
    total, reached = 0.0, float("-inf")
    for began, ended in sorted(intervals):
        total += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    return total
