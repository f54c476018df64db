"""Makes the events of a running campaign, and passes each to its listeners.

Workers send how much of a part (a shard, a match) of a stage is done. The board adds the parts up;
it keeps the newest count of each part, so a lost or repeated message changes nothing. Stages may
overlap. A listener may hang, for example while its server hangs: it delays neither the other
listeners nor the campaign.
"""

import contextlib
import contextvars
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from typing import Any, Final

from chess_snn.campaign.viewing.events import (
    STAGES_OF_STEPS,
    Event,
    Listener,
    Message,
    StageProgress,
    WorkerProgress,
    WorkersProgress,
)

_WORKERS_PERIOD_S: Final = 2.0
_PATIENCE_S: Final = 2.0
"""Wait for a listener; after that it receives its events later."""
_END_PATIENCE_S: Final = 5.0
"""Wait for late listeners, and for threads, when everything ends."""
_PACE_S: Final = 60.0
"""Length of the window that a worker's pace is measured in."""
_LEAST_PACE_S: Final = 1.0
"""A pace over a shorter time is not shown."""

_logger = logging.getLogger(__name__)


class ProgressBoard:
    """Adds up the progress of stages and workers, and tells the listeners what happens."""

    def __init__(self, listeners: Sequence[Listener], period_s: float = 0.5) -> None:
        self._mailboxes = [_Mailbox(listener) for listener in listeners]
        self._period_s = period_s
        self._counting = threading.Lock()
        self._posting = threading.RLock()
        """Never held while a listener is called."""
        self._stages: dict[tuple[int, str], Stage] = {}
        self._workers: WorkerBoard | None = None

    def watch_workers(self, states: Callable[[], Sequence[WorkerProgress]]) -> None:
        """Also report, from now on, the workers that ``states`` returns."""
        self._workers = WorkerBoard(states)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Report the stages under way every ``period_s``, from a thread, until the block ends."""
        ended = threading.Event()

        def repeat() -> None:
            next_workers_s = time.monotonic()
            while not ended.wait(self._period_s):
                with self._posting, self._counting:
                    posted = [
                        each for stage in self._stages.values()
                        for each in self._post(stage.progress(), is_passing=True)
                    ]
                _wait_for(posted)
                if self._workers is not None and time.monotonic() >= next_workers_s:
                    next_workers_s = time.monotonic() + _WORKERS_PERIOD_S
                    workers = WorkersProgress(tuple(self._workers.progress()))
                    _wait_for(self._post(workers, is_passing=True))

        # Runs in a copy of this context: Prefect keeps the address of its server there.
        run = contextvars.copy_context().run
        thread = threading.Thread(target=run, args=(repeat,), name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(_END_PATIENCE_S)
            wait([mailbox.newest for mailbox in self._mailboxes], _END_PATIENCE_S)

    def handle_event(self, event: tuple[float, Mapping[str, Any]]) -> None:
        """Take a Dask event, ``(time, body)``, of :mod:`chess_snn.tasks.remote`."""
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

    def tell(self, event: Event, context: contextvars.Context | None = None) -> None:
        """Pass ``event`` to every listener.

        The listeners are called in ``context``, by default the one that the board was made in.
        Prefect keeps there which flow run an artifact belongs to.
        """
        _wait_for(self._post(event, context))

    def message(self, text: str) -> None:
        """Tell every listener that something has happened."""
        self.tell(Message(text))

    @contextlib.contextmanager
    def stage(self, iteration: int, stage: str, unit: str, total: int) -> Iterator["Stage"]:
        """Report one stage for the length of the block."""
        watched = Stage(iteration, stage, unit, total)
        with self._counting:
            self._stages[iteration, stage] = watched
        self.tell(watched.progress())
        completed = False
        try:
            yield watched
            completed = True
        finally:
            watched.ended = time.monotonic()
            with self._posting, self._counting:  # so that its last event is really the last
                del self._stages[iteration, stage]
            self.tell(watched.last_progress(completed))

    def _post(
        self, event: Event, context: contextvars.Context | None = None, *, is_passing: bool = False
    ) -> "list[tuple[_Mailbox, Future[None]]]":
        """Hand an event to all listeners; one that is passing, only to those that keep up."""
        with self._posting:
            return [
                (mailbox, mailbox.post(event, context)) for mailbox in self._mailboxes
                if not (is_passing and mailbox.is_late)
            ]


def _wait_for(posted: "Sequence[tuple[_Mailbox, Future[None]]]") -> None:
    for mailbox, delivered in posted:
        mailbox.wait_for(delivered)


class _Mailbox:
    """Calls one listener, in the order of posting, from a thread of its own."""

    def __init__(self, listener: Listener) -> None:
        self.newest: Future[None] = Future()
        """Done when everything posted is delivered."""
        self.newest.set_result(None)
        self._missed = self.newest
        """The newest event when a caller last waited in vain."""
        self._listener = listener
        self._context = contextvars.copy_context()
        self._letters: queue.SimpleQueue[_Letter] = queue.SimpleQueue()
        # It ends with the process: a listener may hang, and nothing waits for it then.
        threading.Thread(target=self._deliver, name="listener", daemon=True).start()

    @property
    def is_late(self) -> bool:
        """Whether a caller has waited in vain, and events are still to be delivered."""
        return not self._missed.done()

    def post(self, event: Event, context: contextvars.Context | None) -> Future[None]:
        """Have the listener called after everything posted before."""
        self.newest = Future()
        self._letters.put((event, context, self.newest))
        return self.newest

    def wait_for(self, delivered: Future[None]) -> None:
        """Return once that is delivered, raising what the listener raised; or if it is late."""
        if not self.is_late:
            wait([delivered], _PATIENCE_S)
        if delivered.done():
            delivered.result()
        else:
            self._missed = self.newest

    def _deliver(self) -> None:
        while True:
            event, context, delivered = self._letters.get()
            try:
                (context or self._context).copy().run(self._listener, event)
            except Exception as error:  # noqa: BLE001  # the caller that waits for it raises it
                if self.is_late:  # no caller waits for it
                    _logger.warning("a listener failed: %s: %s", type(error).__name__, error)
                delivered.set_exception(error)
            else:
                delivered.set_result(None)


_Letter = tuple[Event, contextvars.Context | None, Future[None]]


@dataclass(slots=True)
class Stage:
    """A stage under way, or one that has ended."""

    iteration: int
    name: str
    unit: str
    total: int
    done: dict[str, int] = field(default_factory=dict)
    """Units done, by part."""
    begun_s: float = field(default_factory=time.time)
    began: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    """Both by the monotonic clock."""

    @property
    def seconds(self) -> float:
        """Duration; it has ended."""
        return self.ended - self.began

    def progress(self) -> StageProgress:
        """How far it is."""
        done, seconds = sum(self.done.values()), time.monotonic() - self.began
        return StageProgress(
            self.iteration, self.name, self.unit, done, self.total,
            per_s=done / seconds if seconds > 0 else 0.0, begun_s=self.begun_s,
        )

    def last_progress(self, completed: bool) -> StageProgress:
        """The same for its end, where the total of a stage that has completed is known."""
        last = self.progress()
        if completed:
            total = self.total or last.done
            last = replace(last, done=total, total=total)
        return replace(last, has_ended=True)


class WorkerBoard:
    """Counts the games of each worker; one thread may report while another one asks."""

    def __init__(
        self, states: Callable[[], Sequence[WorkerProgress]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._states, self._clock = states, clock
        self._lock = threading.Lock()
        self._tallies: dict[str, _Tally] = {}

    def handle_event(self, body: Mapping[str, Any]) -> None:
        """Take what a worker sent: see :mod:`chess_snn.tasks.remote`."""
        with self._lock:
            tally = self._tallies.setdefault(str(body["sender"]), _Tally())
            tally.add(body, self._clock())

    def progress(self) -> list[WorkerProgress]:
        """Progress of all workers that are connected, by name."""
        now_s = self._clock()
        with self._lock:
            return [
                self._tallies.get(state.name, _Tally()).progress(state, now_s)
                for state in sorted(self._states(), key=lambda state: state.name)
            ]


@dataclass(slots=True)
class _Tally:
    """Reports of one worker."""

    games: int = 0
    doing: str = ""
    heard_s: float = 0.0
    part: tuple[Any, ...] = ()
    done: int = 0
    """Units done of the part."""
    recent: deque[tuple[float, int]] = field(default_factory=deque)
    """Games of the last minute: when, and how many."""

    def add(self, body: Mapping[str, Any], now_s: float) -> None:
        part = (body["iteration"], body["stage"], body["part"])
        # A part that is begun again counts from its beginning.
        before = self.done if part == self.part and body["done"] >= self.done else 0
        self.part, self.done, self.heard_s = part, body["done"], now_s
        if body["stage"] not in STAGES_OF_STEPS:
            self.games += body["done"] - before
            self.recent.append((now_s, body["done"] - before))
        self.doing = "" if body["done"] >= body["total"] else (
            f"iteration {part[0]} {part[1]}, {part[2]}: {body['done']:,} of {body['total']:,}"
        )

    def progress(self, state: WorkerProgress, now_s: float) -> WorkerProgress:
        while self.recent and now_s - self.recent[0][0] > _PACE_S:
            self.recent.popleft()
        seconds = now_s - self.recent[0][0] if self.recent else 0.0
        # The games of the oldest entry were played before the time that is counted.
        games = sum(number for _, number in self.recent) - (self.recent[0][1] if seconds else 0)
        return replace(
            state, doing=self.doing, games=self.games,
            games_per_s=games / seconds if seconds > _LEAST_PACE_S else 0.0,
            quiet_s=min(state.quiet_s, now_s - self.heard_s) if self.heard_s else state.quiet_s,
        )
