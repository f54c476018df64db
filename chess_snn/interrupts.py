"""Ctrl-C and SIGTERM: the first one stops a program in good order, the second one at once.

Signals belong to the process, and so does what is remembered of them here.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

EXIT_INTERRUPTED: Final = 130
"""Exit code of a program that was stopped, in order or at once."""

_ONE_SIGNAL_S: Final = 0.5
"""A batch system may tell a process and its whole group; so close together, both are one."""

_AT_ONCE: Final = b"\nended at once; everything committed is safe\n"


@dataclass(slots=True)
class _Heard:
    """The stop signals that this process has got inside of :func:`interruptible`."""

    is_listening: bool = False
    first_s: float | None = None
    """When the first signal came, by the monotonic clock."""


_heard = _Heard()


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGINT or SIGTERM; end the process at the second.

    SIGTERM comes from `kill`, Slurm and `docker stop`. SIGINT stays ignored where it is: a shell
    does so to its background jobs, and Ctrl-C is then meant for the job in the foreground.

    The second one leaves the process as kill -9 does: nothing is cleaned up, what was committed is
    whole, and the children end because their parent has.
    """
    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, _hear) for number in numbers}
    _heard.is_listening, _heard.first_s = True, None
    try:
        yield
    finally:
        _heard.is_listening = False
        for number, handler in before.items():
            signal.signal(number, handler)


def listen_again() -> None:
    """Take SIGTERM back from a library that took it for itself inside of :func:`interruptible`.

    Outside of it nothing changes: there the library may know better.
    """
    if _heard.is_listening:
        signal.signal(signal.SIGTERM, _hear)


def _hear(number: int, frame: FrameType | None) -> None:
    del number, frame
    now_s = time.monotonic()
    if _heard.first_s is None:
        _heard.first_s = now_s
        raise KeyboardInterrupt
    if now_s - _heard.first_s > _ONE_SIGNAL_S:
        os.write(2, _AT_ONCE)
        os._exit(EXIT_INTERRUPTED)
