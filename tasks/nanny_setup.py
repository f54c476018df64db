"""What every nanny, the parent of one worker process, does first: tell how that process ended.

Dask imports this module and calls :func:`dask_setup` (``distributed.nanny.preload``, or
``dask worker --preload-nanny tasks.nanny_setup``). The dead cannot tell, and the scheduler sees no
exit code.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from distributed import Nanny
from distributed.core import Status

EXIT_TOPIC: Final = "worker-exit"
"""Dask topic of an event ``{"worker", "exit_code", "oom_kills", "is_over_budget"}`` for each
process of a worker that ended."""

_VMSTAT: Final = Path("/proc/vmstat")
_OOM_KILLS: Final = "oom_kill "


def dask_setup(nanny: Nanny) -> None:
    """Tell of every end of its worker's process while others are to follow."""
    go_on: Callable[[int], None] = nanny._on_worker_exit_sync
    oom_kills, ended_by_nanny = count_oom_kills(), _ended_by(nanny)

    def tell(exit_code: int) -> None:
        nonlocal oom_kills, ended_by_nanny
        kills_before, oom_kills = oom_kills, count_oom_kills()
        ended_before, ended_by_nanny = ended_by_nanny, _ended_by(nanny)
        if nanny.status is Status.running:
            event: dict[str, Any] = {
                "worker": nanny.name, "exit_code": exit_code,
                "oom_kills": oom_kills - kills_before,
                "is_over_budget": ended_by_nanny != ended_before,
            }
            nanny.log_event(EXIT_TOPIC, event)
        go_on(exit_code)

    nanny._on_worker_exit_sync = tell


def _ended_by(nanny: Nanny) -> int:
    """The last process that the nanny ended because it took more memory than its share."""
    pid: int = nanny.memory_manager._last_terminated_pid
    return pid


def count_oom_kills(vmstat: Path = _VMSTAT) -> int:
    """Processes that the kernel has killed for want of memory since the machine started.

    0 where the kernel does not tell, as before Linux 4.13.
    """
    try:
        lines = vmstat.read_text().splitlines()
    except OSError:
        return 0
    found = (line for line in lines if line.startswith(_OOM_KILLS))
    return int(next(found, "oom_kill 0").split()[1])
