"""What ends an input that never would, and keeps one that takes its process with it."""

import mmap
import resource
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

LIMIT_S = 20.0
"""Seconds of processor time an input may take. The wall clock would tell of the machine's load."""
HARD_LIMIT_S = 60
"""More seconds, after which the process is killed, for what runs outside of Python."""

_MAILBOX_BYTES = 1 << 20
_HEADER = struct.Struct("<I")


class HangError(Exception):
    """An input took too long."""


class Mailbox:
    """A file that holds the input that is being tried: it outlives the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_bytes(bytes(_MAILBOX_BYTES))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _MAILBOX_BYTES)

    def put(self, data: bytes) -> None:
        kept = data[: _MAILBOX_BYTES - _HEADER.size]
        self._memory[: _HEADER.size] = _HEADER.pack(len(kept))
        self._memory[_HEADER.size : _HEADER.size + len(kept)] = kept

    @staticmethod
    def read(path: Path) -> bytes:
        """What was put there last."""
        held = path.read_bytes()
        (length,) = _HEADER.unpack_from(held)
        return held[_HEADER.size : _HEADER.size + length]


class Watch:
    """Told of each input before it is tried."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    def __call__(self, data: bytes) -> None:
        self._mailbox.put(data)
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        used = resource.getrusage(resource.RUSAGE_SELF)
        killed_at_s = int(used.ru_utime + used.ru_stime + LIMIT_S + HARD_LIMIT_S)
        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (killed_at_s, most))


@contextmanager
def bounded_inputs(mailbox: Mailbox) -> Iterator[Watch]:
    """Bound every input of the block; from the main thread of a process of its own.

    What hangs in Python raises HangError there. What hangs elsewhere ends the process by SIGXCPU.
    """
    before, limits = signal.signal(signal.SIGPROF, _raise), resource.getrlimit(resource.RLIMIT_CPU)
    try:
        yield Watch(mailbox)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_CPU, limits)
        signal.signal(signal.SIGPROF, before)


def _raise(number: int, frame: FrameType | None) -> None:
    raise HangError(f"over {LIMIT_S:g} s of processor time")

