"""Runs Prefect tasks on Dask workers: submit, wait, and let go when the flow is stopping.

Prefect sets a task run to Running when its function begins. Ours first wait for a Dask worker, so
they set their own state; Prefect records it as it records the states that it sets itself.
"""

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from distributed import Client, Future, default_client
from prefect.client.schemas.objects import State, TaskRun
from prefect.context import TaskRunContext
from prefect.states import Pending, Running
from prefect.utilities.engine import emit_task_run_state_change_event

from chess_snn.errors import (
    ChessSnnError,
    MemoryExhaustedError,
    RankLostError,
    SchedulerLostError,
    WorkersLostError,
)
from chess_snn.failpoints import failpoint
from chess_snn.nets.gpu.gpu_faults import explain
from chess_snn.tasks.cluster.identity import own_resource
from chess_snn.tasks.cluster.worker_pool import WorkerPool
from chess_snn.tasks.remote import BEGUN_TOPIC, Call, Done, attempt, device_of, plain_error
from chess_snn.types import LogFn

_Result = TypeVar("_Result")

DEVICE: Final = own_resource()
"""Dask resource of which a worker has one; a function that needs a device takes it whole."""

RETRIES: Final = 2
"""How often a failed task is retried. The task of a killed worker is always repeated."""
_POLL_S: Final = 0.5
_SOON_S: Final = 0.05
"""A worker that is free begins within this; then the state of a task is left alone."""

_stopping = threading.Event()
_rebuild: Callable[[Callable[[], Any]], Any] | None = None
_begun: dict[str, threading.Event] = {}
"""Events to set when a worker begins a call, by the call's key."""

_pool: WorkerPool | None = None
"""Tells which devices there are; None without a watch; then nothing is retried elsewhere."""


class StoppedError(RuntimeError):
    """The campaign is stopping; what this task had committed stays committed."""


BACKGROUND: Final = -1
"""Priority of what should fill devices that have nothing else to do."""


def run_on_device(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Run ``function(*arguments)`` on a worker, and return its result.

    Raises as :func:`all_done`.
    """
    result: _Result = all_done([(function, *arguments)])[0].result
    return result


def run_all_on_devices(calls: Sequence[Call], priority: int = 0) -> list[Any]:
    """Run ``function(*arguments)`` for each of ``calls``, side by side; results in their order.

    Raises as :func:`all_done`.
    """
    return [done.result for done in all_done(calls, priority)]


def all_done(calls: Sequence[Call], priority: int = 0) -> list[Done[Any]]:
    """Run ``function(*arguments)`` for each of ``calls``, side by side; results, and who ran them.

    Dask redoes a call where its worker dies; an exception of the function itself is raised here.
    One that meets corrupt data is run again once that is rebuilt; see :func:`rebuilds_by`.

    Args:
        calls: each is ``(function, *arguments)``.
        priority: a waiting call of higher priority goes first; none is interrupted.

    Raises:
        StoppedError: :func:`stop` was called meanwhile.
        BeyondRepairError: a call needs something that is damaged and cannot be made again.
        WorkersLostError: several workers died that had one of the calls to do; names it.
        SchedulerLostError: the connection to the scheduler is lost.
        MemoryExhaustedError: a worker ran out of memory; names the call.
    """
    if not calls:  # all of a resumed match may be played
        return []
    client, begun = default_client(), threading.Event()
    made = [_Attempts(client, call, priority, begun) for call in calls]
    try:
        _wait_for_a_worker(client, begun)
        return [each.done() for each in made]
    finally:
        if waiting := [each.future for each in made if not each.future.done()]:
            client.cancel(waiting)


def rebuilding(work: Callable[[], _Result]) -> _Result:
    """Call ``work``, again after corrupt data that it meets is rebuilt; return its result.

    See :func:`rebuilds_by`.
    """
    result: _Result = work() if _rebuild is None else _rebuild(work)
    return result


class _Attempts:
    """One call, made again on another device where the first one failed it."""

    def __init__(self, client: Client, call: Call, priority: int, begun: threading.Event) -> None:
        """Submit ``call``; ``begun`` is set once a worker begins it."""
        self._client, self._call, self._begun = client, call, begun
        self._options = {"resources": {DEVICE: 1}, "priority": priority, "pure": False}
        self.future, self._was_awaited = self._submit(), False

    def done(self) -> Done[Any]:
        """The call, once the corrupt data it met is rebuilt."""
        return rebuilding(self._plainly_done)

    def _plainly_done(self) -> Done[Any]:
        if self._was_awaited:
            self.future = self._submit()
        self._was_awaited = True
        try:
            return self._done_somewhere()
        except Exception as error:
            plain = plain_error(error, self._call)
            if plain is None:
                raise
            raise plain from error

    def _done_somewhere(self) -> Done[Any]:
        """An error that the call meets on two devices is its own."""
        try:
            done: Done[Any] = _wait(self._client, self.future)
        except (ChessSnnError, StoppedError):
            raise
        except Exception as error:
            failed = device_of(error)
            if _pool is None or not failed or not _pool.addresses_without(failed):
                raise
            done = self._elsewhere(_pool, failed)
            _pool.failed(failed, str(explain(error)))
        if _pool is not None:
            _pool.health.succeeded(done.device)
        return done

    def _elsewhere(self, pool: WorkerPool, failed: str) -> Done[Any]:
        """The call's result on another device than ``failed``, however workers come and go."""
        while True:
            workers = pool.addresses_without(failed)
            self.future = self._submit(workers)
            answer: Done[Any] | None = _wait(self._client, self.future, workers)
            if answer is not None:
                return answer
            self._client.cancel(self.future)

    def _submit(self, workers: Sequence[str] | None = None) -> Future:
        # Dask estimates how long work takes by the beginning of its key.
        key = f"{self._call[0].__name__}-{uuid.uuid4().hex}"
        _begun[key] = self._begun
        future = self._client.submit(
            attempt, *self._call, key=key, workers=workers, **self._options
        )
        future.add_done_callback(lambda _: _note_begun(key))
        return future


def _note_begun(key: str) -> None:
    """Tell who waits for it that a worker has begun the call, if that is not known yet."""
    if (begun := _begun.pop(key, None)) is not None:
        begun.set()


def _wait_for_a_worker(client: Client, begun: threading.Event) -> None:
    """Return once a worker has begun one of the calls; until then the Prefect task is Pending.

    Return at once if the workers are not watched.
    """
    if _pool is None or begun.wait(_SOON_S):
        return
    with pending():
        while not begun.wait(_POLL_S) and client.status == "running":
            give_up_if_stopping()


def _wait(client: Client, future: Future, workers: Sequence[str] = ()) -> Any:
    """The future's result; None once all of ``workers`` have left, if there were any."""
    # Never by `result(timeout)`: where that gives up it takes along what others fetch with it.
    has_ended = threading.Event()
    future.add_done_callback(lambda _: has_ended.set())
    while not has_ended.wait(_POLL_S):
        give_up_if_cut_off(client)
        if workers and _pool is not None and not _pool.has_any(workers):
            return None
    give_up_if_stopping()
    try:
        if not future.cancelled() and future.done():
            return future.result()
    except UnboundLocalError:  # what Dask makes of a future that is cancelled meanwhile
        if not future.cancelled():
            raise
    raise _scheduler_lost(client)


def give_up_if_stopping() -> None:
    """Raise StoppedError if :func:`stop` was called."""
    if _stopping.is_set():
        raise StoppedError("the campaign is stopping")


def give_up_if_cut_off(client: Client) -> None:
    """Give up as :func:`give_up_if_stopping`, and where the scheduler is gone.

    Raises:
        StoppedError: :func:`stop` was called.
        SchedulerLostError: the client has no scheduler any more.
    """
    is_cut_off = client.status != "running"
    give_up_if_stopping()  # asked second: who stops closes its client after that
    if is_cut_off:
        raise _scheduler_lost(client)


def _scheduler_lost(client: Client) -> SchedulerLostError:
    return SchedulerLostError(
        f"the connection to the Dask scheduler at {client.scheduler.address} broke. Everything "
        "committed is safe: start the scheduler again, then go on by `chess-snn campaign resume`"
    )


def is_worth_retrying(task: object, task_run: object, state: State[Any]) -> bool:
    """Whether a failed task may do better next time: not with damaged data, nor when stopping."""
    del task, task_run
    return _may_do_better(state.result(raise_on_failure=False))


def tried_again(work: Callable[[], _Result], tell: LogFn) -> _Result:
    """Call ``work``, retrying as Prefect retries a task; return its result.

    ``tell`` gets a line for each error after which it is tried again.
    """
    for left in range(RETRIES, 0, -1):
        try:
            return work()
        except Exception as error:
            if not _may_do_better(error):
                raise
            tell(f"{error}; it is tried again, at most {left} times")
    return work()


def _may_do_better(error: object) -> bool:
    """Whether what has failed with ``error`` is worth another try."""
    if isinstance(error, RankLostError | WorkersLostError | MemoryExhaustedError):
        return True
    return not isinstance(error, ChessSnnError | StoppedError)


def stop() -> None:
    """Make every waiting task give up within a second."""
    failpoint("campaign.stopping")
    _stopping.set()


def start() -> None:
    """Allow tasks to wait again."""
    _stopping.clear()


@contextmanager
def watched_by(pool: WorkerPool) -> Iterator[None]:
    """Tell ``pool`` how calls fare in the block, and try elsewhere what a device fails at.

    Prefect tasks are Pending in the block while all of their calls wait for a worker.
    """
    global _pool  # noqa: PLW0603 - of the process, as the client is
    client = pool.client
    client.subscribe_topic(BEGUN_TOPIC, lambda event: _note_begun(event[1]))
    _pool = pool
    try:
        yield
    finally:
        _pool = None
        if client.status == "running":
            client.unsubscribe_topic(BEGUN_TOPIC)


@contextmanager
def rebuilds_by(rebuild: Callable[[Callable[[], Any]], Any]) -> Iterator[None]:
    """Have ``rebuild`` call all work within the block, again after corrupt data is rebuilt.

    See :meth:`chess_snn.campaign.integrity.rebuild.Rebuilder.run`.
    """
    global _rebuild  # noqa: PLW0603
    _rebuild = rebuild
    try:
        yield
    finally:
        _rebuild = None


@contextmanager
def stopped_by_errors() -> Iterator[None]:
    """Make every waiting task give up where an error, or a signal, ends the block."""
    try:
        yield
    except BaseException:
        stop()
        raise


WAITING: Final = "waiting for a worker"
"""Message of the Pending state."""


@contextmanager
def pending() -> Iterator[None]:
    """Set the task run that this code belongs to Pending for the length of the block.

    It is Running again afterwards, unless the block raises. Code outside of a task runs as it is.
    """
    context = TaskRunContext.get()
    if context is None:
        yield
        return
    _set_state(context.task_run, Pending(message=WAITING))
    yield
    _set_state(context.task_run, Running())


def _set_state(run: TaskRun, state: State[Any]) -> None:
    before = run.state
    state.state_details.task_run_id, state.state_details.flow_run_id = run.id, run.flow_run_id
    run.state, run.state_id = state, state.id
    run.state_type, run.state_name = state.type, state.name
    if state.is_running():  # the page shows how long it ran from here on
        run.start_time = state.timestamp
    emit_task_run_state_change_event(task_run=run, initial_state=before, validated_state=state)
