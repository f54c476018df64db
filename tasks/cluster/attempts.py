"""A call as a worker makes it, and what it means to people when it fails.

The result comes back with the worker and the device; an error becomes one line that names the work
and the fix.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import torch
from distributed import KilledWorker, get_worker

from chess_snn.errors import ChessSnnError, MemoryExhaustedError, WorkersLostError
from tasks.cluster.identity import own_device

_Result = TypeVar("_Result")

BEGUN_TOPIC: Final = "begun"
"""Dask topic of the keys of calls that a worker has begun."""

Call = Sequence[Any]
"""``(function, *arguments)``; of stages of :mod:`tasks.remote` the first is the campaign folder."""

_ALLOCATION_FAILED: Final = ("can't allocate memory", "not enough memory", "bad_alloc")
"""What torch says on a CPU, where its error is any RuntimeError."""

_WAY_OUT: Final = (
    "free some, or go on with fewer workers (execution.workers in campaign.toml) by "
    "`chess-snn campaign resume`"
)


@dataclass(frozen=True, slots=True)
class Done(Generic[_Result]):
    """What a call returned, and where it ran."""

    result: _Result
    worker: str
    """The worker's name."""
    device: str
    """As :func:`tasks.cluster.identity.own_device` names it; empty if the worker has no place."""
    seconds: float
    """That the worker spent on it."""


def attempt(function: Callable[..., Any], *arguments: Any) -> Done[Any]:
    """Call ``function(*arguments)`` on this worker; an error of it carries the device."""
    began, worker = time.monotonic(), get_worker()
    worker.log_event(BEGUN_TOPIC, worker.get_current_task())
    try:
        result = function(*arguments)
    except Exception as error:
        error.failed_on = own_device()  # type: ignore[attr-defined]  # goes along when pickled
        raise
    return Done(result, str(worker.name), own_device(), time.monotonic() - began)


def device_of(error: BaseException) -> str:
    """Where :func:`attempt` met ``error``; empty where that is not known."""
    return str(getattr(error, "failed_on", ""))


def plain_error(error: Exception, call: Call) -> ChessSnnError | None:
    """What ``error`` of ``call`` means to people; None where it is not known here."""
    if isinstance(error, KilledWorker):
        return WorkersLostError(
            f"{error.allowed_failures + 1} workers died one after another that had {_name(call)} "
            "to do; the lines above say how. Everything committed is safe; where memory ran out, "
            f"{_WAY_OUT}"
        )
    if isinstance(error, torch.OutOfMemoryError):
        return MemoryExhaustedError(
            f"the device's memory ran out in {_name(call)} ({_first_line(error)}); {_WAY_OUT}"
        )
    if isinstance(error, MemoryError) or _is_failed_allocation(error):
        return MemoryExhaustedError(
            f"the worker's memory ran out in {_name(call)} ({_first_line(error)}); {_WAY_OUT}"
        )
    return None


def _is_failed_allocation(error: Exception) -> bool:
    text = str(error)
    return isinstance(error, RuntimeError) and any(sign in text for sign in _ALLOCATION_FAILED)


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _name(call: Call) -> str:
    """``play_shard(3, 0)``: the function and the numbers it was given."""
    function, *arguments = call
    numbers = ", ".join(str(argument) for argument in arguments if isinstance(argument, int))
    return f"{function.__name__}({numbers})"
