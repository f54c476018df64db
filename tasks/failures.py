"""What goes wrong on a worker, in one line that names the work and the way out."""

from collections.abc import Sequence
from typing import Any, Final

import torch
from distributed import KilledWorker

from chess_snn.errors import ChessSnnError, MemoryExhaustedError, WorkersLostError

Call = Sequence[Any]
"""``(function, *arguments)``; of stages of :mod:`tasks.remote` the first is the campaign folder."""

_ALLOCATION_FAILED: Final = ("can't allocate memory", "not enough memory", "bad_alloc")
"""What torch says on a CPU, where its error is any RuntimeError."""

_WAY_OUT: Final = (
    "free some, or go on with fewer workers (execution.workers in campaign.toml) by "
    "`chess-snn campaign resume`"
)


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
