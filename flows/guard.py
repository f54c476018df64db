"""Run a command, and end all it has started when it ends: ``python guard.py GRACE_S COMMAND...``.

A Prefect worker's flow runs are processes in sessions of their own, and so are what those start: no
signal to a group reaches them all, and a worker that is told to stop kills its runs before they can
say so. The guard tells the command's children to stop and waits, then the command, and kills
whatever is left. On Linux it is a subreaper (``prctl(PR_SET_CHILD_SUBREAPER)``): a descendant that
loses its parent becomes the guard's own child, so none can hide from it.

The file is run by its path, through :mod:`chess_snn.reaped`: where the guard's owner is killed, the
kernel sends the guard SIGTERM. It imports nothing else of this project.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

PR_SET_CHILD_SUBREAPER = 36
"""From ``<sys/prctl.h>``."""

ORPHAN_GRACE_S = 3.0
"""What descendants have to end by themselves where the guard's owner, and so its servers, died."""

POLL_S = 0.1
KILL_TIMEOUT_S = 10.0
"""Longest wait for killed processes to be gone."""

EXIT_TOLD_TO_STOP = 128 + signal.SIGTERM
"""Exit code where the command was told to stop."""

REAPED = Path(__file__).parents[1] / "chess_snn" / "reaped.py"


class Guard:
    """One command and its descendants."""

    def __init__(self, command: list[str], grace_s: float) -> None:
        self._owner = os.getppid()
        self._grace_s = grace_s
        self._is_told_to_stop = False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._note_signal)
        _become_subreaper()
        launcher = [sys.executable, "-I", str(REAPED), str(os.getpid())]
        self._child = subprocess.Popen(
            [*launcher, *command], stdin=subprocess.DEVNULL, start_new_session=True
        )

    def run(self) -> int:
        """Wait for the command, or for a signal; return an exit code once nothing is left."""
        code = None
        while code is None and not self._is_told_to_stop:
            time.sleep(POLL_S)
            code = self._collect()
        self._end_descendants()
        return EXIT_TOLD_TO_STOP if code is None else code

    def _note_signal(self, *_: object) -> None:
        self._is_told_to_stop = True

    def _collect(self) -> int | None:
        """Take leave of every child that has ended; the command's exit code if it is among them."""
        code = None
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:  # there are no children
                return code
            if pid == 0:  # none of them has ended
                return code
            if pid == self._child.pid:
                code = os.waitstatus_to_exitcode(status)

    def _end_descendants(self) -> None:
        """First whom the command started, while it can tell what became of them; then all."""
        begun = time.monotonic()
        told: set[psutil.Process] = set()
        while left := _descendants():
            grace_s = self._grace_s if os.getppid() == self._owner else ORPHAN_GRACE_S
            if time.monotonic() - begun > grace_s:
                self._kill_descendants()
                return
            runs = [run for child in _children(psutil.Process()) for run in _children(child)]
            for process in runs or left:
                if process not in told:
                    told.add(process)
                    _signal(process, signal.SIGTERM)
            time.sleep(POLL_S)
            self._collect()

    def _kill_descendants(self) -> None:
        deadline = time.monotonic() + KILL_TIMEOUT_S
        while (left := _descendants()) and time.monotonic() < deadline:
            for process in left:
                _signal(process, signal.SIGKILL)
            time.sleep(POLL_S)
            self._collect()


def _children(parent: psutil.Process) -> list[psutil.Process]:
    try:
        children: list[psutil.Process] = parent.children()
    except psutil.NoSuchProcess:
        return []
    return children


def _descendants() -> list[psutil.Process]:
    children: list[psutil.Process] = psutil.Process().children(recursive=True)
    return children


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return  # it ended by itself


def _become_subreaper() -> None:
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


def main(arguments: list[str]) -> int:
    """Run the command in ``arguments[1:]`` with the seconds of grace in ``arguments[0]``."""
    grace_s, *command = arguments
    return Guard(command, float(grace_s)).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
