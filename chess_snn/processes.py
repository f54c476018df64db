"""Child processes: they end with this process, however it ends, and so does all they started.

A process that is killed with -9 cannot clean up after itself. On Linux the kernel can: a child is
started through this file, which asks for SIGTERM when its parent dies (``PR_SET_PDEATHSIG``, kept
across ``exec``) and then becomes the command, or watches it::

    python processes.py PARENT_PID COMMAND...                  becomes COMMAND, with the same pid
    python processes.py PARENT_PID --tree GRACE_S COMMAND...   runs it, and ends all it has started

In a shell, ``python -m chess_snn.processes --tree GRACE_S COMMAND...`` does the latter.

On other systems, the next start has to stop what a killed process left (:func:`stop_leftover`).

The file is run by its path and imports nothing of this project: it costs one bare interpreter.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psutil

PARENT_IS_DEAD: Final = 3
"""Exit code of a child that found its parent dead before it could ask for the signal."""

EXIT_STOPPED: Final = 128 + signal.SIGTERM
"""Exit code of a ``--tree`` process that was stopped."""

KILL_TIMEOUT_S: Final = 10.0
"""Longest wait for killed processes to be gone."""

STOP_TIMEOUT_S: Final = 10.0
"""Default time between SIGTERM and SIGKILL."""

_TREE: Final = "--tree"
_ORPHAN_GRACE_S: Final = 3.0
"""Time that a tree has to end when its owner, and so the owner's servers, died."""
_POLL_S: Final = 0.1
_LOG_TAIL_LINES: Final = 15

# From <sys/prctl.h>.
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36

# Fields of /proc/PID/stat, counted from the state, which follows the name.
_STATE: Final = 0
_START_TICKS: Final = 19
_ZOMBIE: Final = "Z"
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def start(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None,
    stdout: IO[Any] | int | None = None, stderr: IO[Any] | int | None = None,
    tree_grace_s: float | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a child in a session of its own; on Linux it ends with the *thread* that called this.

    Ctrl-C in the terminal does not reach it.

    Args:
        command: program and arguments.
        environment: variables beside those of this process.
        stdout: as for :class:`subprocess.Popen`.
        stderr: likewise.
        tree_grace_s: if given, a process between this one and the command ends all descendants of
            the command, which may have sessions of their own: so many seconds after SIGTERM the
            rest is killed. Needs psutil.
    """
    tree = [] if tree_grace_s is None else [_TREE, str(tree_grace_s)]
    return subprocess.Popen(
        [sys.executable, "-I", __file__, str(os.getpid()), *tree, *command],
        env=os.environ | dict(environment or {}), stdin=subprocess.DEVNULL, stdout=stdout,
        stderr=stderr, start_new_session=True,
    )


def stop(child: "subprocess.Popen[bytes]", grace_s: float = STOP_TIMEOUT_S) -> None:
    """End a child that leads a session, and everything in it: SIGTERM, then SIGKILL."""
    _end_session(child.pid, partial(_wait_for_exit, child, grace_s))
    child.wait()


def stop_leftover(pid: int, started: str, grace_s: float = STOP_TIMEOUT_S) -> None:
    """As :func:`stop`, for the child of a process that is dead; leaves a reused ``pid`` alone."""
    if is_running(pid, started):
        _end_session(pid, partial(_wait_for_end, pid, started, grace_s))


def start_of(pid: int) -> str:
    """A text that distinguishes process ``pid`` from all others with this id on the machine.

    On Linux ``boot:ticks``: the boot and the kernel's ticks until the start, which do not change
    when the clock is set. Elsewhere the time of the start.

    Raises:
        ProcessLookupError: there is no such process.
    """
    found = _look(pid)
    if found is None:
        raise ProcessLookupError(f"there is no process {pid}")
    return found[0]


def is_running(pid: int, started: str) -> bool:
    """Whether ``pid`` is the process whose :func:`start_of` was ``started``, and has not ended."""
    return _look(pid) == (started, True)


def log_tail(log_file: Path) -> str:
    """The last lines of a log, for messages."""
    lines = log_file.read_text(errors="replace").splitlines()
    return "\n".join(lines[-_LOG_TAIL_LINES:]) or "(empty)"


def describe_exit(code: int) -> str:
    """How a process with this ``returncode`` ended: ``was killed by SIGKILL``."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal
        return f"was killed by signal {-code}"


def end_with_parent(parent_pid: int, signal_number: int = signal.SIGTERM) -> None:
    """Have the kernel send a signal to this process when ``parent_pid`` dies; exit if it has."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)
    if os.getppid() != parent_pid:
        sys.exit(PARENT_IS_DEAD)


def _end_session(leader: int, wait: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(leader, number)
        except ProcessLookupError:  # all of them have ended
            return
        wait()


def _wait_for_exit(child: "subprocess.Popen[bytes]", timeout_s: float) -> None:
    try:
        child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return


def _wait_for_end(pid: int, started: str, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while is_running(pid, started) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _look(pid: int) -> tuple[str, bool] | None:
    """When a process started, and whether it still runs."""
    if sys.platform != "linux":
        return _look_by_psutil(pid)
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = line.rpartition(")")[2].split()  # the name before may contain spaces and brackets
    boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""  # some sandboxes hide it
    return f"{boot}:{fields[_START_TICKS]}", fields[_STATE] != _ZOMBIE


def _look_by_psutil(pid: int) -> tuple[str, bool] | None:
    import psutil  # noqa: PLC0415 - not on Linux, and a command started through this file needs none

    try:
        process = psutil.Process(pid)
        return repr(process.create_time()), process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, ValueError):
        return None


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(option, value, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), f"prctl({option}, {value}) failed")


class _Tree:
    """One command and its descendants, in the process between the command and its owner.

    The flow runs of a Prefect worker, and what they start, have sessions of their own: no signal to
    a group reaches all of them, and a worker kills its runs when it is stopped, before they can
    report it. So the runs are stopped first, then the worker, and the rest is killed. On Linux
    this process is a subreaper: a descendant that loses its parent becomes a child of this process,
    so none is missed.
    """

    def __init__(self, command: Sequence[str], grace_s: float, owner: int) -> None:
        self._owner = owner
        self._grace_s = grace_s
        self._is_told_to_stop = False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._note_signal)
        end_with_parent(owner)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._child = start(command)

    def run(self) -> int:
        """Wait for the command, or for a signal; return an exit code once nothing is left."""
        code = None
        while code is None and not self._is_told_to_stop:
            time.sleep(_POLL_S)
            code = self._reap()
        self._end_descendants()
        return EXIT_STOPPED if code is None else code

    def _note_signal(self, *_: object) -> None:
        self._is_told_to_stop = True

    def _reap(self) -> int | None:
        """Reap all children that have ended; the command's exit code if it is among them."""
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
        """Stop the command's own children first, while it can report their ends; then all."""
        begun = time.monotonic()
        told: set[psutil.Process] = set()
        while left := _descendants():
            grace_s = self._grace_s if os.getppid() == self._owner else _ORPHAN_GRACE_S
            if time.monotonic() - begun > grace_s:
                self._kill_descendants()
                return
            runs = [run for child in _descendants(recursive=False) for run in _children(child)]
            for process in set(runs or left) - told:
                told.add(process)
                _send(process, signal.SIGTERM)
            time.sleep(_POLL_S)
            self._reap()

    def _kill_descendants(self) -> None:
        deadline = time.monotonic() + KILL_TIMEOUT_S
        while (left := _descendants()) and time.monotonic() < deadline:
            for process in left:
                _send(process, signal.SIGKILL)
            time.sleep(_POLL_S)
            self._reap()


def _descendants(*, recursive: bool = True) -> "list[psutil.Process]":
    import psutil  # noqa: PLC0415 - only --tree needs it

    return _children(psutil.Process(), recursive=recursive)


def _children(parent: "psutil.Process", *, recursive: bool = False) -> "list[psutil.Process]":
    import psutil  # noqa: PLC0415 - as above

    try:
        children: list[psutil.Process] = parent.children(recursive=recursive)
    except psutil.NoSuchProcess:
        return []
    return children


def _send(process: "psutil.Process", number: signal.Signals) -> None:
    import psutil  # noqa: PLC0415 - as above

    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return  # it ended by itself


def main(arguments: Sequence[str]) -> int:
    """Become the command in ``arguments``, or run it as a tree, as the module's docstring says."""
    if arguments[0] == _TREE:
        arguments = [str(os.getppid()), *arguments]
    parent_pid, *command = arguments
    if command[0] == _TREE:
        _, grace_s, *command = command
        return _Tree(command, float(grace_s), int(parent_pid)).run()
    end_with_parent(int(parent_pid))
    return os.execvp(command[0], command)  # noqa: S606 - the command is our own


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
