"""Start a command that ends when its parent does: ``python reaped.py PARENT_PID COMMAND...``.

A process killed with -9 cannot clean up behind itself. On Linux the kernel can: this launcher asks
for SIGTERM at its parent's death (``prctl(PR_SET_PDEATHSIG)``, kept across ``exec``) and then
becomes the command, so the pid its parent knows stays the right one. Elsewhere it only becomes the
command, and whoever starts it has to reap what a killed parent left.

The file is run by its path and imports nothing of this project: it costs one bare interpreter.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""From ``<sys/prctl.h>``."""

PARENT_IS_DEAD = 3
"""Exit code of a launcher that found its parent gone before it could ask for the signal."""


def end_with_parent(parent_pid: int, signal_number: int = signal.SIGTERM) -> None:
    """Have the kernel send a signal to this process when ``parent_pid`` dies; exit if it has."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent_pid:
        sys.exit(PARENT_IS_DEAD)


def main(arguments: list[str]) -> None:
    """Become the command in ``arguments[1:]``, tied to the parent pid in ``arguments[0]``."""
    parent_pid, *command = arguments
    end_with_parent(int(parent_pid))
    os.execvp(command[0], command)  # noqa: S606 - the command is our own


if __name__ == "__main__":
    main(sys.argv[1:])
