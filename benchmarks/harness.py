"""Measure rates in turn, so that ratios within one run hold whatever else the machine does."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch

from chess_snn.cores import num_cores

_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Work:
    """A call that can be repeated."""

    run: Callable[[], object]
    items: int = 1
    """Positions, samples or games that one call handles."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to measure."""

    rounds: int
    """Turns of every work; the median counts."""
    turn_s: float
    """A turn repeats the call until this many seconds have passed; it makes at least one call."""


FULL = Pace(rounds=3, turn_s=0.4)
QUICK = Pace(rounds=1, turn_s=0.0)


def rates_in_turn(
    works: Mapping[_Key, Work], pace: Pace, wait: Callable[[], object] = lambda: None
) -> dict[_Key, float]:
    """Items/s of each work: the median of its turns.

    The works take turns, so that the machine's other load meets all of them alike. One call of each
    comes first and is not counted.

    Args:
        works: what to measure, by any key.
        pace: how many turns, and how long.
        wait: blocks until a device has finished what the calls started.
    """
    for work in works.values():
        work.run()
        wait()
    turns: dict[_Key, list[float]] = {key: [] for key in works}
    for _ in range(pace.rounds):
        for key, work in works.items():
            turns[key].append(_one_turn(work, pace.turn_s, wait))
    return {key: statistics.median(rates) for key, rates in turns.items()}


def rate(work: Work, pace: Pace) -> float:
    """Items/s of one work; see :func:`rates_in_turn`."""
    return rates_in_turn({0: work}, pace)[0]


def _one_turn(work: Work, turn_s: float, wait: Callable[[], object]) -> float:
    calls, start = 0, time.perf_counter()
    while True:
        work.run()
        calls += 1
        if time.perf_counter() - start >= turn_s:
            wait()
            return calls * work.items / (time.perf_counter() - start)


@contextmanager
def torch_threads(num_threads: int) -> Iterator[None]:
    """Set torch's number of threads in the block, and restore it afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def thread_counts() -> dict[str, int]:
    """Numbers of threads to measure with, by their name in the tables: one core, all cores."""
    cores = num_cores()
    return {"one core": 1} | ({f"{cores} cores": cores} if cores > 1 else {})
