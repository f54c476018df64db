"""A call as a worker makes it: whatever comes of it, the device that it was made on is told."""

from collections.abc import Callable
from typing import Any

from tasks.cluster.identity import own_device


def attempt(function: Callable[..., Any], *arguments: Any) -> tuple[str, Any]:
    """The device, and what ``function(*arguments)`` returns; an error of it carries the device."""
    try:
        return own_device(), function(*arguments)
    except Exception as error:
        error.failed_on = own_device()  # type: ignore[attr-defined]  # goes along when pickled
        raise


def device_of(error: BaseException) -> str:
    """Where :func:`attempt` met ``error``; empty where that is not known."""
    return str(getattr(error, "failed_on", ""))
