"""Child processes: they end with this process, however it ends, and so does all they started.

A process that is killed with -9 cannot clean up after itself. On Linux the kernel can: a child is
started through this file, which asks for SIGTERM when its parent dies (``PR_SET_PDEATHSIG``, kept
across ``exec``) and then becomes the command, or watches it::

    python processes.py PARENT_PID COMMAND...                  becomes COMMAND, with the same pid
    python processes.py PARENT_PID --tree GRACE_S COMMAND...   runs it, and ends all it has started
    python processes.py PARENT_PID --group COMMAND...          runs it, and kills its process group

In a shell, ``python -m chess_snn.processes --tree GRACE_S COMMAND...`` does the second.

On other systems, the next start has to stop what a killed process left (:func:`end`).

The file is run by its path and imports nothing of this project: it costs one bare interpreter.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psutil

PARENT_IS_DEAD: Final = 3
"""Exit code of a child that found its parent dead before it could ask for the signal."""

EXIT_STOPPED: Final = 128 + signal.SIGTERM
"""Exit code of a ``--tree`` process that was stopped."""

CANNOT_RUN: Final = 126
"""Exit code of a ``--group`` process whose command is not a program, as in a shell."""

KILL_TIMEOUT_S: Final = 10.0
"""Longest wait for killed processes to be gone."""

STOP_TIMEOUT_S: Final = 10.0
"""Default time between SIGTERM and SIGKILL."""

_TREE: Final = "--tree"
_GROUP: Final = "--group"
_ORPHAN_GRACE_S: Final = 3.0
"""Time that a tree has to end when its owner, and so the owner's servers, died."""
_POLL_S: Final = 0.1
_LOG_TAIL_LINES: Final = 15

# From <sys/prctl.h>.
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


def start(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None,
    stdout: IO[Any] | int | None = None, stderr: IO[Any] | int | None = None,
    tree_grace_s: float | None = None, inherited: Sequence[int] = (), stays: bool = False,
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
        inherited: open files that the command takes over, under the same numbers.
        stays: whether it goes on when this process ends.
    """
    tree = [] if tree_grace_s is None else [_TREE, str(tree_grace_s)]
    bound = [] if stays else [sys.executable, "-I", __file__, str(os.getpid()), *tree]
    return subprocess.Popen(
        [*bound, *command],
        env=os.environ | dict(environment or {}), stdin=subprocess.DEVNULL, stdout=stdout,
        stderr=stderr, start_new_session=True, pass_fds=inherited,
    )


def group_command(command: Sequence[str]) -> list[str]:
    """Return a command that runs ``command`` in a group that is killed when this process ends.

    It has the command's pipes and exit status. SIGTERM kills the group too, so the command and its
    children, such as a program behind a script, end at once.
    """
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), _GROUP, *command]


def stop(child: "subprocess.Popen[bytes]", grace_s: float = STOP_TIMEOUT_S) -> None:
    """End a child that leads a session, and everything in it."""
    end(partial(os.killpg, child.pid), lambda: child.poll() is not None, grace_s)
    child.wait()


def end(
    send: Callable[[int], object], has_ended: Callable[[], bool], grace_s: float = STOP_TIMEOUT_S
) -> None:
    """End a process, which need not be a child, or a session: SIGTERM, then SIGKILL.

    Args:
        send: sends a signal.
        has_ended: whether the process, or the session's leader, has.
        grace_s: time between SIGTERM and SIGKILL.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            send(number)
        except ProcessLookupError:  # all of them have ended
            return
        deadline = time.monotonic() + grace_s
        while not has_ended() and time.monotonic() < deadline:
            time.sleep(_POLL_S)


def log_tail(log: bytes) -> str:
    """The last lines of what a process wrote to its log, for messages."""
    return b"\n".join(log.splitlines()[-_LOG_TAIL_LINES:]).decode(errors="replace")


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


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(option, value, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), f"prctl({option}, {value}) failed")


def _run_group(command: Sequence[str], owner: int) -> int:
    """Run ``command`` in a group of its own until it ends, ``owner`` does, or SIGTERM comes.

    The kernel kills the command, if not its children, should this process be killed.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_STOPPED))
    try:
        child = subprocess.Popen(
            command, process_group=0,
            preexec_fn=partial(  # noqa: PLW1509 - this process has one thread
                _prctl, _PR_SET_PDEATHSIG, signal.SIGKILL
            ),
        )
    except OSError:
        return CANNOT_RUN
    try:
        while child.poll() is None and os.getppid() == owner:
            time.sleep(_POLL_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        code = child.wait()
    if code < 0:
        with suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


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
        while left := _children(recursive=True):
            grace_s = self._grace_s if os.getppid() == self._owner else _ORPHAN_GRACE_S
            if time.monotonic() - begun > grace_s:
                self._kill_descendants()
                return
            runs = [run for child in _children() for run in _children(child)]
            for process in set(runs or left) - told:
                told.add(process)
                _send(process, signal.SIGTERM)
            time.sleep(_POLL_S)
            self._reap()

    def _kill_descendants(self) -> None:
        deadline = time.monotonic() + KILL_TIMEOUT_S
        while (left := _children(recursive=True)) and time.monotonic() < deadline:
            for process in left:
                _send(process, signal.SIGKILL)
            time.sleep(_POLL_S)
            self._reap()


def _children(
    parent: "psutil.Process | None" = None, *, recursive: bool = False
) -> "list[psutil.Process]":
    """Descendants of this process, if none is given."""
    import psutil  # noqa: PLC0415 - only --tree needs it

    try:
        found: list[psutil.Process] = (parent or psutil.Process()).children(recursive=recursive)
    except psutil.NoSuchProcess:
        return []
    return found


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
    if command[0] == _GROUP:
        return _run_group(command[1:], int(parent_pid))
    if command[0] == _TREE:
        _, grace_s, *command = command
        return _Tree(command, float(grace_s), int(parent_pid)).run()
    end_with_parent(int(parent_pid))
    return os.execvp(command[0], command)  # noqa: S606 - the command is our own


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
