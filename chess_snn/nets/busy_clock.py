"""How long something was in use, by however many at once."""

import threading
import time
from types import TracebackType


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
