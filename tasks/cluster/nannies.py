"""A worker process in its place, under a Dask nanny that starts it again when it dies."""

import logging
from typing import Any, Final

from distributed import Nanny

from chess_snn.campaign.machine.places import WorkerPlace
from tasks import worker_setup
from tasks.cluster.software import resource

ANY_LOOPBACK_PORT: Final = "127.0.0.1:0"
"""For pages of Dask's that nobody here reads."""

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
    """A nanny that knows why its worker said good-bye."""

    farewell = ""
    """Why the worker ended of itself, in Dask's words; empty where it did not."""

    def close_gracefully(self, reason: str = "nanny-close-gracefully") -> None:
        """As :meth:`distributed.Nanny.close_gracefully`."""
        self.farewell = reason
        super().close_gracefully(reason)

    @property
    def is_dismissed(self) -> bool:
        """Whether a campaign has told its worker to go, rather than lost it."""
        return self.farewell == _DISMISSAL
