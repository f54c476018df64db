"""Worker processes under Dask nannies, and the cluster of a campaign on this machine."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from distributed import Nanny, Scheduler, Security, SpecCluster
from distributed.core import Status

from chess_snn.campaign.machine.slots import WorkerSlot
from chess_snn.errors import ClusterError
from chess_snn.tasks.cluster.identity import own_resource

ANY_LOOPBACK_PORT: Final = "127.0.0.1:0"
"""Address of Dask's own pages, which have no password and are not used here."""

EXIT_TOPIC: Final = "worker-exit"
"""Dask topic of an event ``{"worker", "exit_code", "oom_kills", "is_over_budget"}`` for each
process of a worker that ended."""

_WORKER_SETUP: Final = "chess_snn.tasks.cluster.worker_setup"
"""Module that Dask imports in each worker."""

_VMSTAT: Final = Path("/proc/vmstat")
_OOM_KILLS: Final = "oom_kill "

_STARTS: Final = 4
"""Starts of a process that dies before it is up; more often, and something kills every one."""

_DISMISSAL: Final = "scheduler-close-worker"
"""Reason that Dask gives where a client has retired a worker."""

_LOOPBACK: Final = "127.0.0.1"
_GOODBYE: Final = "Closed comm"
"""Begins what Dask's scheduler says, with a traceback, where it was about to write to a client that
has just left, as at the end of a campaign. Connections that break are told by the campaign."""


def nanny_options(slot: WorkerSlot) -> dict[str, Any]:
    """Arguments of a :class:`distributed.Nanny` that puts its worker in ``slot``."""
    return {
        "nthreads": 1,
        "memory_limit": slot.memory_bytes,
        "resources": {own_resource(): 1},
        "env": slot.environment(),
        "preload": [_WORKER_SETUP],
        "dashboard_address": ANY_LOOPBACK_PORT,
        "silence_logs": logging.ERROR,
    }


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


class WorkerNanny(Nanny):  # type: ignore[misc]  # distributed has no types
    """A nanny that does not give up a worker that was killed while it started.

    It reports how the worker's process ended: the scheduler sees no exit code.
    """

    is_dismissed = False
    """Whether a campaign has told its worker to go, rather than lost it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Same as the base class."""
        super().__init__(*args, **kwargs)
        self._oom_kills, self._pid_over_budget = count_oom_kills(), self._last_over_budget()

    def _last_over_budget(self) -> int:
        """The last process that Dask ended because it took more memory than its share."""
        pid: int = self.memory_manager._last_terminated_pid
        return pid

    def _on_worker_exit_sync(self, exitcode: int) -> None:
        kills_before, self._oom_kills = self._oom_kills, count_oom_kills()
        pid_before, self._pid_over_budget = self._pid_over_budget, self._last_over_budget()
        if self.status is Status.running:
            self.log_event(EXIT_TOPIC, {
                "worker": self.name, "exit_code": exitcode,
                "oom_kills": self._oom_kills - kills_before,
                "is_over_budget": self._pid_over_budget != pid_before,
            })
        super()._on_worker_exit_sync(exitcode)

    async def instantiate(self) -> Status:
        """Start as :meth:`distributed.Nanny.instantiate`, again where the process died."""
        for _ in range(_STARTS):
            status = await super().instantiate()
            if status is Status.running or self.status not in (Status.init, Status.running):
                break
        return status

    def close_gracefully(self, reason: str = "nanny-close-gracefully") -> None:
        """Close as :meth:`distributed.Nanny.close_gracefully`."""
        self.is_dismissed = reason == _DISMISSAL
        super().close_gracefully(reason)


class OwnCluster(SpecCluster):  # type: ignore[misc]  # distributed has no types
    """A cluster that can be stopped while its workers start, and leaves none of them then."""

    def __init__(self, **kwargs: Any) -> None:
        """Start as the base class does, which closes itself after errors, and not after Ctrl-C."""
        try:
            super().__init__(**kwargs)
        except BaseException:
            if hasattr(self, "status"):  # else there is nothing to close yet
                self.close()
            raise

    async def _close(self) -> None:
        # The base class knows of workers once they are up.
        starting = [each for each in self._created if each not in self.workers.values()]
        await asyncio.gather(*(each.close() for each in starting), return_exceptions=True)
        await super()._close()


def _is_no_goodbye(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(_GOODBYE)


def local_cluster(slots: Sequence[WorkerSlot]) -> OwnCluster:
    """A cluster with a worker in each of ``slots``; it is up when this returns.

    Its processes know one another by a certificate that is made for them and kept in memory: who
    may talk to Dask may run programs, and loopback is open to every user of the machine.

    Raises:
        ClusterError: a worker does not come up.
    """
    security = Security.temporary()
    logging.getLogger("distributed.scheduler").addFilter(_is_no_goodbye)
    # Dask silences handlers of its own, and Prefect prints what reaches those of the root logger.
    logging.getLogger("distributed").setLevel(logging.ERROR)
    try:
        return OwnCluster(
            security=security,
            scheduler={
                "cls": Scheduler,
                "options": {
                    "host": _LOOPBACK, "port": 0, "dashboard_address": ANY_LOOPBACK_PORT,
                    "security": security,
                },
            },
            workers={
                slot.name: {
                    "cls": WorkerNanny,
                    "options": {"host": _LOOPBACK, "security": security, **nanny_options(slot)},
                }
                for slot in slots
            },
            silence_logs=logging.ERROR,
        )
    except RuntimeError as error:
        raise ClusterError(
            f"a worker does not come up: {error.__cause__ or error}; look at the machine's memory, "
            "and take fewer workers: execution.workers"
        ) from error
