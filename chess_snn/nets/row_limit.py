"""Fewer positions in a call of the network, where the memory of its device runs out."""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Final

import torch

_LOG = logging.getLogger(__name__)

LEAST_ROWS: Final = 32
"""A call of so few positions is not cut again: a device that cannot hold it is of no use."""


class RowLimit:
    """Most positions of a call; halved whenever one was too many, and never raised again.

    Rows do not influence each other, so that their answers are the same in calls of any size. Used
    by several threads at once.
    """

    def __init__(self, most: int) -> None:
        """Begin with calls of up to ``most`` positions."""
        self._begun_with = self._most = most
        self._lock = threading.Lock()

    @property
    def reduced_rows(self) -> int | None:
        """Most positions of a call since memory ran out; None while it never has."""
        return self._most if self._most < self._begun_with else None

    def answer(self, rows: slice, answer: Callable[[slice], None]) -> None:
        """Call ``answer`` with ``rows``, in parts that the limit allows; halve it where it must be.

        Raises:
            torch.OutOfMemoryError: ``LEAST_ROWS`` positions are too many.
        """
        for part in self._parts(rows):
            try:
                answer(part)
            except torch.OutOfMemoryError:
                size = part.stop - part.start
                if size <= LEAST_ROWS:
                    raise
                self._lower_to(max(LEAST_ROWS, size // 2))
                self.answer(part, answer)

    def _parts(self, rows: slice) -> Iterator[slice]:
        lo = rows.start
        while lo < rows.stop:  # the limit may fall on the way
            hi = min(lo + self._most, rows.stop)
            yield slice(lo, hi)
            lo = hi

    def _lower_to(self, most: int) -> None:
        with self._lock:
            if most >= self._most:  # another thread was first
                return
            self._most = most
        _LOG.warning("the device's memory ran out: %d positions in a call from now on", most)
