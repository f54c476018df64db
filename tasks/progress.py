"""Progress that crosses processes: workers send events, one board adds them up, listeners show it.

Events name a stage and a part of it (a shard, an opponent) and carry how much of the part is done.
The board keeps the latest of each part, so a lost or repeated event changes nothing.
"""

import contextlib
import contextvars
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from chess_snn.campaign import Receipt


@dataclass(frozen=True, slots=True)
class StageProgress:
    """How far one stage of an iteration is."""

    iteration: int
    stage: str
    """``self_play``, ``train`` or ``evaluate``."""
    unit: str
    """What is counted: games or steps."""
    done: int
    total: int
    """0 while it is not known."""
    seconds: float
    """Since the stage began."""

    @property
    def per_s(self) -> float:
        """Pace since the stage began."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """At this pace; None while there is none, or no total."""
        if not self.total or not self.done:
            return None
        return max(0.0, (self.total - self.done) / self.per_s)

    @property
    def share(self) -> float:
        """Done over total, in [0, 1]."""
        return min(1.0, self.done / self.total) if self.total else 0.0


class Listener(Protocol):
    """Somebody who is told how a campaign goes, from several threads."""

    def message(self, text: str) -> None:
        """Something happened: a server is up, a worker died."""
        ...

    def stage(self, progress: StageProgress) -> None:
        """A stage began, went on (about twice a second) or ended."""
        ...

    def iteration_finished(self, receipt: Receipt, num_iterations: int) -> None:
        """An iteration committed its receipt."""
        ...


class ProgressBoard:
    """Adds up the events of one stage after another and tells the listeners, from a thread."""

    def __init__(self, listeners: list[Listener], period_s: float = 0.5) -> None:
        self._listeners = listeners
        self._period_s = period_s
        self._lock = threading.Lock()
        self._done: dict[str, int] = {}
        self._stage = ""

    def handle_event(self, event: tuple[float, Mapping[str, Any]]) -> None:
        """Take a Dask event ``(time, {"stage", "part", "done", "worker"})``."""
        body = event[1]
        with self._lock:
            if body["stage"] == self._stage:
                self._done[body["part"]] = body["done"]

    def message(self, text: str) -> None:
        """Tell every listener."""
        for listener in self._listeners:
            listener.message(text)

    def iteration_finished(self, receipt: Receipt, num_iterations: int) -> None:
        """Tell every listener."""
        for listener in self._listeners:
            listener.iteration_finished(receipt, num_iterations)

    @contextlib.contextmanager
    def stage(self, iteration: int, stage: str, unit: str, total: int) -> Iterator[None]:
        """Watch one stage for the length of the block."""
        with self._lock:
            self._done, self._stage = {}, stage
        began = time.monotonic()

        def snapshot() -> StageProgress:
            with self._lock:
                done = sum(self._done.values())
            return StageProgress(iteration, stage, unit, done, total, time.monotonic() - began)

        with _repeating(lambda: self._tell(snapshot()), self._period_s):
            yield
        last = snapshot()
        self._tell(StageProgress(iteration, stage, unit, total or last.done, total, last.seconds))

    def _tell(self, progress: StageProgress) -> None:
        for listener in self._listeners:
            listener.stage(progress)


@contextlib.contextmanager
def _repeating(action: Callable[[], None], period_s: float) -> Iterator[None]:
    """Call ``action`` at once and every ``period_s`` in a thread, until the block ends."""
    ended = threading.Event()

    def repeat() -> None:
        action()
        while not ended.wait(period_s):
            action()

    # In a copy of this context: Prefect keeps the address of its server there.
    run = contextvars.copy_context().run
    thread = threading.Thread(target=run, args=(repeat,), name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
