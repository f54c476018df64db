"""Ends engines with the process that started them, even if that process is killed with -9.

While a pool has engines, one small program knows their process groups. Its input ends with this
process, however this process ends, and it then kills the groups that are left::

    this process ──▶ +1234, -1234 ──▶ python guard.py
          │                                │ kills what is left
          └────────────▶ engine ◀──────────┘ at the end of its input

A parent-death signal (:mod:`chess_snn.processes`) would not do: it reaches only the process that
was started, and an engine is often behind a script.

The file is run by its path and imports nothing of this project: it costs one bare interpreter.
"""

import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

_ENDING_S: Final = 10.0


class EngineGuard:
    """The process groups to kill when this process ends. For one thread at a time."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._program: subprocess.Popen[bytes] | None = None
        _guards.add(self)

    def add(self, group: int) -> None:
        """Have a group killed when this process has ended.

        Raises:
            OSError: the system cannot start the program that does so.
        """
        self._groups.add(group)
        try:
            self._tell(f"+{group}\n")
        except OSError:
            self._groups.remove(group)
            raise

    def remove(self, group: int) -> None:
        """Leave a group alone from now on; its number may soon be another group's."""
        if group not in self._groups:
            return
        self._groups.remove(group)
        with suppress(OSError):  # a program that was killed kills nothing
            self._tell(f"-{group}\n")
        if not self._groups:
            self._end()

    def forget(self) -> None:
        """Drop everything in a process that was forked: the engines are its parent's."""
        program, self._program = self._program, None
        self._groups.clear()
        if program is not None:
            assert program.stdin is not None
            program.stdin.close()
            program.returncode = 0  # it is not a child of this process

    def _tell(self, line: str) -> None:
        """Send a line to the program; if it does not run, start it and send all groups."""
        if self._program is not None and self._program.poll() is not None:
            self._end()
        if self._program is None:
            self._program = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, bufsize=0,
                start_new_session=True,  # what ends this process's group must not end it
            )
            line = "".join(f"+{each}\n" for each in self._groups)
        assert self._program.stdin is not None
        self._program.stdin.write(line.encode())

    def _end(self) -> None:
        if self._program is None:
            return
        assert self._program.stdin is not None
        self._program.stdin.close()
        try:
            self._program.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            self._program.kill()
            self._program.wait()
        self._program = None


_guards: Final[weakref.WeakSet[EngineGuard]] = weakref.WeakSet()


def _forget_all() -> None:
    for guard in list(_guards):
        guard.forget()


os.register_at_fork(after_in_child=_forget_all)


def main(lines: Iterable[bytes]) -> None:
    """Read which groups there are, and kill those that are left at the end of ``lines``."""
    groups = set()
    for line in lines:
        group = int(line[1:])
        if line.startswith(b"+"):
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.stdin.buffer)
