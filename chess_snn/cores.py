"""How many processor cores this program may use, and being bound to a few of them."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_CAN_BIND: Final = hasattr(os, "sched_setaffinity")
_OWN_THREADS: Final = Path("/proc/self/task")

_unbound: set[int] | None = None
"""Cores of this process before :func:`bind_to`; None where that was never called."""


def num_cores() -> int:
    """Cores that this program may run on, >= 1; fewer than the machine's where it is bound.

    A process that :func:`bind_to` has bound to its share of them counts all of them still.
    """
    return len(_unbound) if _unbound is not None else len(available_cores())


def available_cores() -> list[int]:
    """Numbers of the cores that this process may run on now, ascending."""
    if _CAN_BIND:
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def bind_to(cores: Iterable[int]) -> None:
    """Keep this process, its threads and its future children on ``cores``; Linux alone can."""
    global _unbound  # noqa: PLW0603 - of the process, as the binding itself is
    if _CAN_BIND:
        _unbound = set(available_cores()) if _unbound is None else _unbound
        _bind_threads(set(cores))


@contextmanager
def unbound() -> Iterator[None]:
    """Let this process use all of its cores for the length of the block, bound or not."""
    if _unbound is None:
        yield
        return
    bound = set(available_cores())
    _bind_threads(_unbound)
    try:
        yield
    finally:
        _bind_threads(bound)


def _bind_threads(cores: set[int]) -> None:
    """Each thread has cores of its own; a new one begins with those of who starts it."""
    for thread in [0, *(int(entry.name) for entry in _OWN_THREADS.iterdir())]:
        try:
            os.sched_setaffinity(thread, cores)
        except ProcessLookupError:  # it ended meanwhile
            continue
