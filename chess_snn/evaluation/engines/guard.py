"""Engines end with the process that asks them, also where that is killed with -9.

One small program a process, while it has engines, is told of each, and its input ends with the
process, however that ends::

    this process ──▶ +1234, -1234 ──▶ python guard.py
          │                                │ at the end of its input kills
          └────────────▶ engine ◀──────────┘ the groups that are left

A parent-death signal (:mod:`chess_snn.reaped`) would not do: it comes at the end of the thread that
started the engine, which a match has for one move alone, and does not reach what a script started.

The file is run by its path and imports nothing of this project: it costs one bare interpreter.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

_ENDING_S: Final = 10.0


class EngineGuard:
    """Knows the process groups that are to be killed when this process ends."""

    def __init__(self) -> None:
        self._start_anew()

    def _start_anew(self) -> None:
        # Re-entrant: the garbage collector may end a player while another one's engine is added.
        self._lock = threading.RLock()
        self._is_busy = False
        self._groups: set[int] = set()
        self._leaving: list[int] = []
        self._program: subprocess.Popen[bytes] | None = None

    def add(self, group: int) -> None:
        """Have a group killed, once this process has ended.

        Raises:
            OSError: the system cannot start the program that does so.
        """
        with self._lock, self._busy():
            self._groups.add(group)
            try:
                self._tell(f"+{group}\n")
            except OSError:
                self._groups.remove(group)
                raise

    def remove(self, group: int) -> None:
        """Leave a group alone; to be called while its number is still its own."""
        with self._lock:
            self._leaving.append(group)
            if not self._is_busy:
                with self._busy():
                    pass

    def forget(self) -> None:
        """In a process that was forked: the engines are its parent's."""
        program = self._program
        self._start_anew()
        if program is not None:
            assert program.stdin is not None
            program.stdin.close()
            program.returncode = 0  # it is no child of this process

    @contextmanager
    def _busy(self) -> Iterator[None]:
        """With the lock held; whoever leaves meanwhile is seen to at the end."""
        self._is_busy = True
        try:
            yield
        finally:
            while self._leaving:
                self._take_leave(self._leaving.pop())
            self._is_busy = False

    def _take_leave(self, group: int) -> None:
        if group not in self._groups:
            return
        self._groups.remove(group)
        with suppress(OSError):  # a program that was killed kills nobody
            self._tell(f"-{group}\n")
        if not self._groups:
            self._end()

    def _tell(self, line: str) -> None:
        """To the program; where it does not run it is started, and told of all."""
        if self._program is not None and self._program.poll() is not None:
            self._end()  # somebody has killed it
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
