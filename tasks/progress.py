"""Progress that crosses processes: workers send events, one board adds them up, listeners show it.

Events name a stage of an iteration and a part of it (a shard, a match), and carry how much of the
part is done. The board keeps the latest of each part, so a lost or repeated event changes nothing.
Stages may overlap. A listener may hang, as where a server does: it keeps neither the others nor who
tells waiting.
"""

import contextlib
import contextvars
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from chess_snn.campaign import Receipt
from chess_snn.campaign.viewing.alarms import Alarm
from chess_snn.campaign.viewing.live import WorkerProgress
from tasks.cluster.device_use import WorkerState
from tasks.worker_board import WorkerBoard

_WORKERS_PERIOD_S: Final = 2.0
_PATIENCE_S: Final = 2.0
"""With a listener; then it is told later, by itself."""
_JOIN_S: Final = 5.0

_logger = logging.getLogger(__name__)


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


_News = Callable[[Listener], object]


class _Mailbox:
    """Tells one listener, in the order of posting, from a thread that lasts while there is news."""

    def __init__(self, listener: Listener) -> None:
        self.is_late = False
        """Whether somebody has waited in vain, and there is still news to be told."""
        self._listener = listener
        # Prefect keeps the address of its server there.
        self._context = contextvars.copy_context()
        self._changing = threading.Lock()
        self._letters: deque[tuple[_News, Future[None]]] = deque()
        self._is_telling = False

    def post(self, news: _News) -> Future[None]:
        """Have the listener told, after whatever was posted before."""
        letter: Future[None] = Future()
        with self._changing:
            self._letters.append((news, letter))
            if not self._is_telling:
                threading.Thread(target=self._deliver, name="listener", daemon=True).start()
        return letter

    def wait_for(self, letter: Future[None]) -> None:
        """Return once that is told, raising what the listener does, or when it takes too long."""
        if not self.is_late:
            wait([letter], _PATIENCE_S)
        with self._changing:
            if not letter.done():
                self.is_late = True
                return
        letter.result()

    def _deliver(self) -> None:
        with self._changing:
            if self._is_telling:  # by another thread, which was posted to a moment before
                return
            self._is_telling = True
        while True:
            with self._changing:
                if not self._letters:
                    self._is_telling = self.is_late = False
                    return
                news, letter = self._letters.popleft()
            try:
                self._context.run(news, self._listener)
            except Exception as error:  # noqa: BLE001  # whoever waits for it gets it
                if self.is_late:  # nobody waits for it
                    _logger.warning("%s: %s", type(self._listener).__name__, error)
                letter.set_exception(error)
            else:
                letter.set_result(None)


_Posted = tuple[_Mailbox, Future[None]]


class ProgressBoard:
    """Adds up the events of the stages that are under way and tells the listeners."""

    def __init__(self, listeners: list[Listener], period_s: float = 0.5) -> None:
        self._mailboxes = [_Mailbox(listener) for listener in listeners]
        self._period_s = period_s
        self._counting = threading.Lock()
        self._posting = threading.Lock()
        """Never held while a listener is told."""
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
            thread.join(_JOIN_S)

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
        self._tell(lambda listener: listener.message(text))

    def iteration_finished(self, receipt: Receipt, alarms: Sequence[Alarm]) -> None:
        """Tell every listener."""
        self._tell(lambda listener: listener.iteration_finished(receipt, alarms))

    @contextlib.contextmanager
    def stage(self, iteration: int, stage: str, unit: str, total: int) -> Iterator[None]:
        """Watch one stage for the length of the block."""
        watched = _Stage(iteration, stage, unit, total)
        with self._counting:
            self._stages[iteration, stage] = watched
        first = watched.progress()
        self._tell(lambda listener: listener.stage(first))
        completed = False
        try:
            yield
            completed = True
        finally:
            with self._posting, self._counting:  # so that nothing is posted of it after its last
                del self._stages[iteration, stage]
            last = watched.last_progress(completed)
            self._tell(lambda listener: listener.stage(last))

    def _tell_of_stages(self) -> None:
        with self._posting:
            with self._counting:
                told = [stage.progress() for stage in self._stages.values()]

            def show(listener: Listener) -> None:
                for progress in told:
                    listener.stage(progress)

            posted = self._post(show, is_passing=True)
        self._wait_for(posted)

    def _tell_of_workers(self) -> None:
        if self._workers is not None:
            told = self._workers.progress()
            self._tell(lambda listener: listener.workers(told), is_passing=True)

    def _tell(self, news: _News, is_passing: bool = False) -> None:
        with self._posting:
            posted = self._post(news, is_passing)
        self._wait_for(posted)

    def _post(self, news: _News, is_passing: bool = False) -> list[_Posted]:
        """To all, what is passing only to those that keep up."""
        mailboxes = [each for each in self._mailboxes if not (is_passing and each.is_late)]
        return [(mailbox, mailbox.post(news)) for mailbox in mailboxes]

    @staticmethod
    def _wait_for(posted: list[_Posted]) -> None:
        for mailbox, letter in posted:
            mailbox.wait_for(letter)


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
