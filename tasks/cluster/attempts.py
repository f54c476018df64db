"""A call as a worker makes it: its result comes back with the worker and the device."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from distributed import get_worker

from tasks.cluster.identity import own_device

_Result = TypeVar("_Result")

BEGUN_TOPIC: Final = "begun"
"""Dask topic of the keys of calls that a worker has begun."""


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
