"""Which process a record means, where its id may have been given to another one since.

The time at which a process began tells the two apart, but not by the clock: the system works it out
from the time since boot, so that it moves whenever the clock is set. On Linux a process is known by
the boot and by the kernel's ticks from there to its start, which nothing changes.
"""

import sys
from pathlib import Path
from typing import Final

import psutil

MOST_PID: Final = 2**31 - 1
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
TICKS_AFTER_NAME: Final = 19
"""Field 22 of /proc/PID/stat, counted from behind the second: a name in brackets, of any text."""


def start_of(pid: int) -> str:
    """What process ``pid`` shares with no other of that id, on one machine: ``boot:ticks``.

    Elsewhere than on Linux: seconds since the epoch, as the system tells them.

    Raises:
        psutil.NoSuchProcess: there is none.
    """
    if sys.platform != "linux":
        return repr(psutil.Process(pid).create_time())
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        raise psutil.NoSuchProcess(pid) from None
    boot = BOOT_ID.read_text().strip() if BOOT_ID.exists() else ""  # some sandboxes hide it
    return f"{boot}:{fields.rpartition(')')[2].split()[TICKS_AFTER_NAME]}"


def same_process(pid: int, started: str) -> psutil.Process | None:
    """The process ``pid``, if it is alive and ``started`` is its start; else another has its id."""
    if not 0 < pid <= MOST_PID:
        return None
    try:
        process = psutil.Process(pid)
        is_same = start_of(pid) == started
        is_alive = process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return None
    return process if is_same and is_alive else None
