"""How Dask tells the dead from the slow, in every process of a cluster.

What it does every so often, heartbeats among it, Tornado would do by the wall clock: where that is
put back by an hour, all of it would cease for an hour, and whoever looks would take the living for
frozen. So Tornado's loops go by the monotonic clock from the import of this module on, which comes
before anything is begun; and so do the only instants that Dask gives them, those of its batches.
"""

import logging
import time
from typing import Final

from distributed import batched
from tornado.ioloop import IOLoop

from tasks.cluster import worker_watch

DASK_SETTINGS: Final = {
    # By the wall clock, which may jump; campaigns end frozen workers (tasks.cluster.worker_watch).
    "distributed.scheduler.worker-ttl": None,
    "distributed.nanny.preload": [worker_watch.__name__],
    "distributed.comm.timeouts.connect": "30s",
    # One that died is started again by its nanny. So long after, Dask would look whether it is
    # there, and close the nanny of one that happens to be starting just then, once more.
    "distributed.deploy.lost-worker-timeout": "10000 days",
    # A worker that grows is ended at its bound; paused, it would wait for memory for ever.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    # For pages of Dask's: a hundred looks a second at each stack, an hour of which is kept.
    "distributed.worker.profile.enabled": False,
}


def _monotonic_s(self: IOLoop) -> float:
    return time.monotonic()


IOLoop.time = _monotonic_s  # type: ignore[method-assign]  # Tornado has no setting for it
batched.time = time.monotonic


def quiet_dask() -> None:
    """Leave out what Dask says of its daily business; warnings stay."""
    logging.getLogger("distributed").setLevel(logging.WARNING)
