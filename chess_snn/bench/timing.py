"""Clocks of benchmarks: works in turn, the peak of a processor, the time in the neurons."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from chess_snn.cores import num_cores
from chess_snn.nets.inference_neurons import InferenceNeurons

_Key = TypeVar("_Key")
_Fired = TypeVar("_Fired")


@dataclass(frozen=True, slots=True)
class Work:
    """Something that can be done again and again."""

    run: Callable[[], object]
    items: int
    """Positions or samples of one call."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to look."""

    rounds: int
    """Times that every work has its turn."""
    turn_s: float
    """Least seconds of a turn; it is one call at least."""


FULL = Pace(rounds=3, turn_s=0.4)
QUICK = Pace(rounds=1, turn_s=0.0)


def rates_in_turn(works: Mapping[_Key, Work], pace: Pace) -> dict[_Key, float]:
    """Items/s of each work: the median of its turns.

    They take turns, so that what else the machine does meets all of them alike. One call of each
    comes before, and is not counted.
    """
    for work in works.values():
        work.run()
    turns: dict[_Key, list[float]] = {key: [] for key in works}
    for _ in range(pace.rounds):
        for key, work in works.items():
            turns[key].append(_one_turn(work, pace.turn_s))
    return {key: statistics.median(rates) for key, rates in turns.items()}


def matrix_flops_per_s(dtype: torch.dtype, num_threads: int, size: int, rounds: int = 5) -> float:
    """Operations/s of a product of two square matrices; the best of some, two operations each MAC.

    It stands for a processor's peak: no layer of a network is larger or more regular.
    """
    left, right = (torch.randn(size, size).to(dtype) for _ in range(2))
    result = torch.empty(size, size, dtype=dtype)
    work = Work(lambda: torch.mm(left, right, out=result), items=2 * size**3)
    with torch_threads(num_threads):
        work.run()
        return max(_one_turn(work, turn_s=0.0) for _ in range(rounds))


class TimedNeurons:
    """Neurons of an inference network on a CPU, and the processor time of their calls."""

    def __init__(self, neurons: InferenceNeurons) -> None:
        self.kind = neurons.kind
        self.adds_bias_for_nothing = neurons.adds_bias_for_nothing
        self.seconds = 0.0
        """So far; of one thread, not of several at a time."""
        self._neurons = neurons

    def fire_static(self, current_BX: Tensor, ticks: int) -> Tensor:
        """As the neurons themselves."""
        return self._timed(lambda: self._neurons.fire_static(current_BX, ticks))

    def fire(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """As the neurons themselves."""
        return self._timed(lambda: self._neurons.fire(current_TBX, bias_C))

    def add_and_fire(
        self, shortcut_TBX: Tensor, branch_TBX: Tensor, bias_C: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """As the neurons themselves."""
        return self._timed(lambda: self._neurons.add_and_fire(shortcut_TBX, branch_TBX, bias_C))

    def mean_rate(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """As the neurons themselves."""
        return self._timed(lambda: self._neurons.mean_rate(current_TBX, bias_C))

    def _timed(self, call: Callable[[], _Fired]) -> _Fired:
        start = time.thread_time()
        fired = call()
        self.seconds += time.thread_time() - start
        return fired


@contextmanager
def torch_threads(num_threads: int) -> Iterator[None]:
    """Threads of torch's own while the context is open; as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def thread_counts() -> dict[str, int]:
    """What benchmarks of one core and of the machine run with, by the name in their tables."""
    cores = num_cores()
    return {"one core": 1} | ({f"{cores} cores": cores} if cores > 1 else {})


def _one_turn(work: Work, turn_s: float) -> float:
    calls, start = 0, time.perf_counter()
    while True:
        work.run()
        calls += 1
        seconds = time.perf_counter() - start
        if seconds >= turn_s:
            return calls * work.items / seconds
