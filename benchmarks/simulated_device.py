"""A device that waits as long as a model says, behind the interface of evaluators.

Real searches and real threads run on it, so a machine without a GPU shows how busy they would keep
one. Its answers cost the host about what filling a batch and reading the answer cost.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chess_snn.nets.evaluator import Evaluation
from chess_snn.types import Int16Array, Int32Array, UInt64Array

LATENCY_S = 50e-6
"""From a caller's launch to the device's first kernel, and from its last to the caller."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What a group of games does between two answers: time on a core, then a question."""

    host_s: float
    num_rows: int


def answer_by_bits(planes: UInt64Array, legal_actions: Int16Array) -> Evaluation:
    """Every action alike, and a value from the position's bits."""
    mixed = planes.sum(axis=1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    win = (mixed >> np.uint64(40)).astype(np.float32) / np.float32(2**24)
    wdl = np.stack([win, np.zeros_like(win), 1 - win], axis=1)
    return Evaluation.of_wdl(np.zeros(legal_actions.shape, np.float32), wdl)


class SimulatedDevice:
    """Serves one batch at a time, in the order of arrival. Calls from several threads are safe."""

    reduced_rows: int | None = None

    def __init__(self, batch_s: Callable[[int], float], num_lanes: int) -> None:
        """``batch_s`` gives the seconds of a batch, ``num_lanes`` how many may be on their way."""
        self._batch_s = batch_s
        self._lanes = threading.BoundedSemaphore(num_lanes)
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Begin to count anew; no call may be under way."""
        self.num_evaluations = 0
        self.network_seconds = 0.0
        self._began, self._free_at = float("inf"), 0.0

    @property
    def seconds(self) -> float:
        """From the start of the first batch to the end of the last."""
        return self._free_at - self._began if self.num_evaluations else 0.0

    @property
    def busy_share(self) -> float:
        """Share of :attr:`seconds` in which a batch was on the device."""
        return self.network_seconds / self.seconds if self.seconds else 0.0

    def evaluate(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Evaluation:
        """See :meth:`chess_snn.nets.evaluator.Evaluator.evaluate`; waits without using a core."""
        del num_legal
        with self._lanes:
            answer = answer_by_bits(planes, legal_actions)
            time.sleep(max(0.0, self._finished_at(len(planes)) - time.perf_counter()))
        return answer

    def _finished_at(self, num_rows: int) -> float:
        with self._lock:
            start = max(time.perf_counter() + LATENCY_S / 2, self._free_at)
            seconds = self._batch_s(num_rows)
            self._began = min(self._began, start)
            self._free_at = start + seconds
            self.network_seconds += seconds
            self.num_evaluations += num_rows
            return self._free_at + LATENCY_S / 2


class StageRecorder:
    """Answers at once, and keeps what one group of games does between the answers."""

    network_seconds = 0.0
    reduced_rows: int | None = None

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self._answered = 0.0

    def evaluate(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Evaluation:
        """See :meth:`chess_snn.nets.evaluator.Evaluator.evaluate`; for one thread."""
        del num_legal
        answer = answer_by_bits(planes, legal_actions)
        # Processor time of this thread: other programs and threads do not count.
        now = time.thread_time()
        self.stages.append(Stage(now - self._answered, len(planes)))
        self._answered = now
        return answer
