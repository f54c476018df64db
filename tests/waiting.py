"""Waiting for what other processes do."""

import time
from collections.abc import Callable, Iterable

import psutil

WAIT_S = 300.0
GONE_WITHIN_S = 5.0
"""Time that is promised."""


def wait_for(
    condition: Callable[[], object], what: str = "waited too long", timeout_s: float = WAIT_S,
    poll_s: float = 0.05,
) -> object:
    """The first answer of ``condition`` that is true."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(poll_s)
    return found


def assert_gone(processes: Iterable[psutil.Process]) -> None:
    """None of them is left, zombies aside."""
    _, alive = psutil.wait_procs(processes, timeout=GONE_WITHIN_S)
    left = [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    assert not left, [p.cmdline() for p in left]
