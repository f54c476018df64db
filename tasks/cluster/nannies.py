"""A worker process in its place, under a Dask nanny that starts it again when it dies."""

import logging
from typing import Any, Final

from distributed import Nanny
from distributed.core import Status

from chess_snn.campaign.machine.places import WorkerPlace
from tasks import worker_setup
from tasks.cluster.software import resource

ANY_LOOPBACK_PORT: Final = "127.0.0.1:0"
"""For pages of Dask's that nobody here reads."""

_STARTS: Final = 4
"""Of a process that dies before it is up; more often, and something kills every one."""

_DISMISSAL: Final = "scheduler-close-worker"
"""What Dask gives as the reason where a client has retired a worker."""


def nanny_options(place: WorkerPlace) -> dict[str, Any]:
    """Arguments of a :class:`distributed.Nanny` that puts its worker in ``place``."""
    return {
        "nthreads": 1,
        "memory_limit": place.memory_bytes,
        "resources": {resource(role): 1 for role in place.roles},
        "env": place.environment(),
        "preload": [worker_setup.__name__],
        "dashboard_address": ANY_LOOPBACK_PORT,
        "silence_logs": logging.ERROR,
    }


class AttentiveNanny(Nanny):  # type: ignore[misc]  # distributed has no types
    """A nanny that does not give up a worker that was killed while it started.

    And one that knows why its worker said good-bye.
    """

    farewell = ""
    """Why the worker ended of itself, in Dask's words; empty where it did not."""

    async def instantiate(self) -> Status:
        """As :meth:`distributed.Nanny.instantiate`, again where the process died on its way."""
        for _ in range(_STARTS):
            status = await super().instantiate()
            if status is Status.running or self.status not in (Status.init, Status.running):
                break
        return status

    def close_gracefully(self, reason: str = "nanny-close-gracefully") -> None:
        """As :meth:`distributed.Nanny.close_gracefully`."""
        self.farewell = reason
        super().close_gracefully(reason)

    @property
    def is_dismissed(self) -> bool:
        """Whether a campaign has told its worker to go, rather than lost it."""
        return self.farewell == _DISMISSAL
