"""Groups of games on C cores and one device, event by event, for any number of cores.

A group waits for a core, computes on it, waits for a lane, and then for the device, in turns.
Cores, lanes and the device serve in the order of arrival. Two things of a real run are missing:
cores that slow each other down through shared memory, and Python's lock.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from benchmarks.simulated_device import LATENCY_S, Stage

_HOST: Final = 0
_DEVICE: Final = 1


@dataclass(frozen=True, slots=True)
class QueueResult:
    """Counts from the device's first batch to the first group's last answer."""

    seconds: float
    busy_s: float
    num_evaluations: int
    """Answered in that time."""

    @property
    def busy_share(self) -> float:
        """Share of the time in which a batch was on the device."""
        return self.busy_s / self.seconds


def run_queue(
    groups: Sequence[Sequence[Stage]], num_cores: int, num_lanes: int,
    batch_s: Callable[[int], float], latency_s: float = LATENCY_S,
) -> QueueResult:
    """Play the stages of every group, each in its order, until one group has no more.

    Args:
        groups: at least one stage each.
        num_cores: on which host stages run, one at a time and to their end.
        num_lanes: batches that may be at the device or on their way.
        batch_s: seconds of a batch on the device, by its rows.
        latency_s: of a batch, half before and half after the device.
    """
    # Earliest first; a group's number decides between equal times.
    waiting = [(0.0, number, 0, _HOST) for number in range(len(groups))]
    cores, lanes = [0.0] * num_cores, [0.0] * num_lanes
    batches: list[tuple[float, float, int]] = []  # start, end, rows
    free_at = 0.0
    while True:
        now, number, turn, place = heappop(waiting)
        if turn == len(groups[number]):
            return _count(batches, end=now - latency_s / 2)
        stage = groups[number][turn]
        if place == _HOST:
            ended = max(now, heappop(cores)) + stage.host_s
            heappush(cores, ended)
            heappush(waiting, (ended, number, turn, _DEVICE))
            continue
        start = max(max(now, heappop(lanes)) + latency_s / 2, free_at)
        free_at = start + batch_s(stage.num_rows)
        batches.append((start, free_at, stage.num_rows))
        answered = free_at + latency_s / 2
        heappush(lanes, answered)
        heappush(waiting, (answered, number, turn + 1, _HOST))


def _count(batches: Sequence[tuple[float, float, int]], end: float) -> QueueResult:
    return QueueResult(
        seconds=end - batches[0][0],
        busy_s=sum(max(0.0, min(ended, end) - start) for start, ended, _ in batches),
        num_evaluations=sum(rows for _, ended, rows in batches if ended <= end),
    )
