"""Interface of networks for search, players, benchmarks: positions in, logits and values out.

Those on GPUs have a :class:`RowLimit`, fewer positions in a call where memory runs out, and measure
their time by a :class:`BusyClock`.

Dimensions: B positions, P bitplanes, M columns for legal actions.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol

from chess_snn.later import torch
from chess_snn.types import Closeable, Float32Array, Int16Array, Int32Array, UInt64Array

_LOG = logging.getLogger(__name__)

LEAST_ROWS: Final = 32
"""A call of so few positions is not cut again: a device that cannot hold it is of no use."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The network's answer for B positions."""

    legal_logits: Float32Array
    """float32[B, M]: the logit of each listed legal action; -inf in the columns behind them."""
    value_stm: Float32Array
    """float32[B], side to move's view: win minus loss in [-1, 1], or the expected return in
    [0, ``GameSpec.value_limit``]."""
    wdl_stm: Float32Array
    """float32[B, 3]: probabilities of win, draw and loss for the side to move; rows sum to 1.
    float32[B, 0] in a game without win and loss."""


class Evaluator(Protocol):
    """A network ready to answer on one device."""

    @property
    def network_seconds(self) -> float:
        """Seconds the device was busy with answers since the evaluator was made; only grows.

        On a CPU it is the mean over the evaluator's threads of the processor time each has used.
        """
        ...

    def evaluate(
        self, planes: UInt64Array, legal_actions: Int16Array, num_legal: Int32Array
    ) -> Evaluation:
        """Evaluate ``planes`` uint64[B, P] with legal lists int16[B, M] and counts int32[B].

        Rows do not influence each other: the answer for a row is the same, to the rounding of the
        device, whatever stands in the other rows.
        """
        ...


class OwnedEvaluator(Evaluator, Closeable, Protocol):
    """An evaluator with the threads and the memory that it holds on its device."""


class RowLimit:
    """Most positions of a call; halved whenever one was too many, and never raised again.

    Rows do not influence each other, so that their answers are the same in calls of any size. Used
    by several threads at once.
    """

    def __init__(self, most: int) -> None:
        """Begin with calls of up to ``most`` positions."""
        self.most = most
        """Most positions of a call from now on."""
        self._lock = threading.Lock()

    def answer(self, rows: slice, answer: Callable[[slice], None]) -> None:
        """Call ``answer`` with ``rows``, in parts that the limit allows; halve it where it must be.

        Raises:
            torch.OutOfMemoryError: ``LEAST_ROWS`` positions are too many.
        """
        for part in self._parts(rows):
            # Not inside the except block: the traceback holds the memory of the failed call.
            if not self._fits(part, answer):
                self.answer(part, answer)

    def _fits(self, part: slice, answer: Callable[[slice], None]) -> bool:
        """Call ``answer`` with ``part``; halve the limit and return False if memory runs out."""
        try:
            answer(part)
        except torch.OutOfMemoryError:
            size = part.stop - part.start
            if size <= LEAST_ROWS:
                raise
            self._lower_to(max(LEAST_ROWS, size // 2))
            return False
        return True

    def _parts(self, rows: slice) -> Iterator[slice]:
        lo = rows.start
        while lo < rows.stop:  # the limit may fall on the way
            hi = min(lo + self.most, rows.stop)
            yield slice(lo, hi)
            lo = hi

    def _lower_to(self, most: int) -> None:
        with self._lock:
            if most >= self.most:  # another thread was first
                return
            self.most = most
        _LOG.warning("the device's memory ran out: %d positions in a call from now on", most)


class BusyClock:
    """Seconds of wall clock during which at least one ``with`` block was open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._num_open = 0
        self._since = 0.0
        self._seconds = 0.0

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        with self._lock:
            running = time.perf_counter() - self._since if self._num_open else 0.0
            return self._seconds + running

    def __enter__(self) -> None:
        """One more is using it."""
        with self._lock:
            if self._num_open == 0:
                self._since = time.perf_counter()
            self._num_open += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """One less is using it."""
        with self._lock:
            self._num_open -= 1
            if self._num_open == 0:
                self._seconds += time.perf_counter() - self._since
