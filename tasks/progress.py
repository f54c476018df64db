"""Progress that crosses processes: workers send events, one board adds them up, listeners show it.

Events name a stage of an iteration and a part of it (a shard, a match), and carry how much of the
part is done. The board keeps the latest of each part, so a lost or repeated event changes nothing.
Stages may overlap.
"""

import contextlib
import contextvars
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from chess_snn.campaign import Receipt
from chess_snn.campaign.viewing.alarms import Alarm
from chess_snn.campaign.viewing.live import WorkerProgress
from tasks.cluster.crew_watch import WorkerState
from tasks.worker_board import WorkerBoard

_WORKERS_PERIOD_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class StageProgress:
    """How far one stage of an iteration is."""

    iteration: int
    stage: str
    """``supervised``, ``self_play``, ``train``, ``evaluate``, ``challenge`` or ``final``."""
    unit: str
    """What is counted: games or steps."""
    done: int
    total: int
    """0 while it is not known."""
    seconds: float
    """Since the stage began."""
    has_ended: bool = False
    """Whether this is the last that is told of the stage."""

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
    """Somebody who is told how a campaign goes, from several threads, but one at a time."""

    def message(self, text: str) -> None:
        """Something happened: a server is up, a worker died."""
        ...

    def stage(self, progress: StageProgress) -> None:
        """A stage began, went on (about twice a second) or ended."""
        ...

    def workers(self, workers: Sequence[WorkerProgress]) -> None:
        """How every worker fares, about every two seconds; none before there are any."""
        ...

    def iteration_finished(self, receipt: Receipt, alarms: Sequence[Alarm]) -> None:
        """An iteration committed its receipt; ``alarms`` are those that are new."""
        ...


class ProgressBoard:
    """Adds up the events of the stages that are under way and tells the listeners."""

    def __init__(self, listeners: list[Listener], period_s: float = 0.5) -> None:
        self._listeners = listeners
        self._period_s = period_s
        self._counting = threading.Lock()
        self._telling = threading.RLock()
        self._stages: dict[tuple[int, str], _Stage] = {}
        self._workers: WorkerBoard | None = None

    def watch_workers(self, states: Callable[[], Sequence[WorkerState]]) -> None:
        """From now on tell of the workers too, which ``states`` knows."""
        self._workers = WorkerBoard(states)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Tell of the stages under way every ``period_s``, from a thread, until the block ends."""
        ended = threading.Event()

        def repeat() -> None:
            next_workers_s = time.monotonic()
            while not ended.wait(self._period_s):
                self._tell_of_stages()
                if time.monotonic() >= next_workers_s:
                    next_workers_s = time.monotonic() + _WORKERS_PERIOD_S
                    self._tell_of_workers()

        # In a copy of this context: Prefect keeps the address of its server there.
        run = contextvars.copy_context().run
        thread = threading.Thread(target=run, args=(repeat,), name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def handle_event(self, event: tuple[float, Mapping[str, Any]]) -> None:
        """Take a Dask event, ``(time, body)``; :mod:`tasks.remote` says what the body has."""
        body = event[1]
        if self._workers is not None:
            self._workers.handle_event(body)
        self.count(body["iteration"], body["stage"], body["part"], body["done"])

    def count(self, iteration: int, stage: str, part: str, done: int) -> None:
        """Note how much of a part of a stage is done."""
        with self._counting:
            watched = self._stages.get((iteration, stage))
            if watched is not None:
                watched.done[part] = done

    def message(self, text: str) -> None:
        """Tell every listener."""
        with self._telling:
            for listener in self._listeners:
                listener.message(text)

    def iteration_finished(self, receipt: Receipt, alarms: Sequence[Alarm]) -> None:
        """Tell every listener."""
        with self._telling:
            for listener in self._listeners:
                listener.iteration_finished(receipt, alarms)

    @contextlib.contextmanager
    def stage(self, iteration: int, stage: str, unit: str, total: int) -> Iterator[None]:
        """Watch one stage for the length of the block."""
        watched = _Stage(iteration, stage, unit, total)
        with self._counting:
            self._stages[iteration, stage] = watched
        self._tell(watched.progress())
        completed = False
        try:
            yield
            completed = True
        finally:
            with self._telling, self._counting:
                del self._stages[iteration, stage]
            self._tell(watched.last_progress(completed))

    def _tell_of_stages(self) -> None:
        with self._telling:  # so that nothing is told of a stage after its last
            with self._counting:
                told = [stage.progress() for stage in self._stages.values()]
            for progress in told:
                self._tell(progress)

    def _tell_of_workers(self) -> None:
        if self._workers is None:
            return
        with self._telling:
            told = self._workers.progress()
            for listener in self._listeners:
                listener.workers(told)

    def _tell(self, progress: StageProgress) -> None:
        with self._telling:
            for listener in self._listeners:
                listener.stage(progress)


@dataclass(slots=True)
class _Stage:
    """A stage under way."""

    iteration: int
    name: str
    unit: str
    total: int
    done: dict[str, int] = field(default_factory=dict)
    """By part."""
    began: float = field(default_factory=time.monotonic)

    def progress(self) -> StageProgress:
        return StageProgress(
            self.iteration, self.name, self.unit, sum(self.done.values()), self.total,
            time.monotonic() - self.began,
        )

    def last_progress(self, completed: bool) -> StageProgress:
        last = self.progress()
        done = self.total if completed and self.total else last.done
        return replace(last, done=done, has_ended=True)
