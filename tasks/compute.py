"""From a Prefect task to a Dask worker: submit, wait, and let go when the flow is stopping."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from distributed import Client, Future, TimeoutError, default_client
from prefect.client.schemas.objects import State

from chess_snn.errors import (
    ChessSnnError,
    DamagedFolderError,
    MemoryExhaustedError,
    RankLostError,
    WorkersLostError,
)
from chess_snn.failpoints import failpoint
from tasks.failures import Call, plain_error

_Result = TypeVar("_Result")

DEVICE: Final = "device"
"""Dask resource of which a worker has one; a function that needs a device takes it whole."""

_POLL_S: Final = 0.5

_stopping = threading.Event()
_mend: Callable[[DamagedFolderError], None] | None = None


class StoppedError(RuntimeError):
    """The campaign is stopping; what this task had committed stays committed."""


BACKGROUND: Final = -1
"""Priority of what should fill devices that have nothing else to do."""


def run_on_device(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Run ``function(*arguments)`` on a worker and return its result.

    Dask redoes it where its worker dies; an exception of the function itself is raised here.

    Raises:
        StoppedError: :func:`stop` was called meanwhile.
        BeyondRepairError: it needs something that is damaged and cannot be made again.
    """
    result: _Result = run_all_on_devices([(function, *arguments)])[0]
    return result


def run_all_on_devices(calls: Sequence[Call], priority: int = 0) -> list[Any]:
    """Run ``function(*arguments)`` for each of ``calls``, side by side; results in their order.

    One that stumbles over something damaged is run again, once that is mended; see
    :func:`mended_by`.

    Args:
        calls: each is ``(function, *arguments)``.
        priority: a waiting call of higher priority goes first; none is interrupted.

    Raises:
        WorkersLostError: several workers died that had one of the calls to do; names it.
        MemoryExhaustedError: one ran out of memory; names it.
    """
    client = default_client()

    def submit(call: Call) -> Future:
        return client.submit(*call, pure=False, resources={DEVICE: 1}, priority=priority)

    futures = [submit(call) for call in calls]
    try:
        for number, call in enumerate(calls):
            while (error := _damage(client, futures[number], call)) is not None:
                if _mend is None:
                    raise error
                _mend(error)
                futures[number] = submit(call)
        return [
            _outcome(client, future, call) for future, call in zip(futures, calls, strict=True)
        ]
    finally:
        client.cancel([future for future in futures if not future.done()])


def _outcome(client: Client, future: Future, call: Call) -> Any:
    try:
        return _wait(client, future)
    except Exception as error:
        plain = plain_error(error, call)
        if plain is None:
            raise
        raise plain from error


def _damage(client: Client, future: Future, call: Call) -> DamagedFolderError | None:
    """What damage a call stumbled over, once it has ended; its other errors are raised."""
    try:
        _outcome(client, future, call)
    except DamagedFolderError as error:
        return error
    return None


def _wait(client: Client, future: Future) -> Any:
    while not _stopping.is_set():
        try:
            return future.result(timeout=_POLL_S)
        except TimeoutError:
            if future.done():  # it was not the wait that timed out, or it has just come
                return future.result()
            if client.status != "running":
                break
    raise StoppedError("the campaign is stopping")


def is_worth_retrying(task: object, task_run: object, state: State[Any]) -> bool:
    """Whether a failed task may do better next time: not with damaged data, nor when stopping."""
    del task, task_run
    error = state.result(raise_on_failure=False)
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
def mended_by(mend: Callable[[DamagedFolderError], None]) -> Iterator[None]:
    """Have ``mend`` mend, for the length of the block, whatever damage a call stumbles over.

    It returns once that is mended, and raises where it cannot be.
    """
    global _mend  # noqa: PLW0603
    _mend = mend
    try:
        yield
    finally:
        _mend = None


@contextmanager
def stopped_by_errors() -> Iterator[None]:
    """Make every waiting task give up where an error, or a signal, ends the block."""
    try:
        yield
    except BaseException:
        stop()
        raise
