"""First steps of every process of a Dask cluster; Dask imports this module in workers.

So everything that a worker runs is imported before it is known to be there. Later, the import would
hold up its signs of life, on a busy machine for so long that it would be taken for frozen.

Dask repeats some work, such as heartbeats. Tornado would time it by the wall clock: if that were
put back by an hour, all of it would stop for an hour, and living workers would be taken for frozen.
So Tornado's loops go by the monotonic clock from the import of this module on, before anything
begins; and so do the only instants that Dask gives them, those of its batches.
"""

import logging
import os
import signal
import time
from typing import Final

from distributed import Worker, batched
from tornado.ioloop import IOLoop

import chess_snn.tasks.remote  # noqa: F401 - for its modules
from chess_snn.campaign.machine.slots import own_slot
from chess_snn.cores import bind_to
from chess_snn.tasks.cluster.identity import IDENTITY, tell_identity

DASK_SETTINGS: Final = {
    # Goes by the wall clock, which may jump; worker_pool.py ends frozen workers.
    "distributed.scheduler.worker-ttl": None,
    "distributed.comm.timeouts.connect": "30s",
    # One that died is started again by its nanny. So long after, Dask would look whether it is
    # there, and close the nanny of one that happens to be starting just then, once more.
    "distributed.deploy.lost-worker-timeout": "10000 days",
    # A worker that grows is ended at its bound; paused, it would wait for memory for ever.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    # Serves pages of Dask's: a hundred looks a second at each stack, an hour of which is kept.
    "distributed.worker.profile.enabled": False,
}


def _monotonic_s(self: IOLoop) -> float:
    return time.monotonic()


IOLoop.time = _monotonic_s  # type: ignore[method-assign]  # Tornado has no setting for it
batched.time = time.monotonic


def quiet_dask() -> None:
    """Leave out what Dask says of its daily business; warnings stay."""
    logging.getLogger("distributed").setLevel(logging.WARNING)


def dask_setup(worker: Worker) -> None:
    """Take the place that was given to this worker, and tell the scheduler what it is.

    Signals and errors are left to the campaign. A terminal sends Ctrl-C to every process in the
    foreground, and Prefect sends SIGTERM to the process group of a run that is cancelled; a worker
    that dies of it on its own is taken for a fault, and another one is started. So it leaves that
    group. An exception of a task is raised where its result is waited for, and need not be printed
    here as well; nor that the queue to the nanny is gone when this process ends.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setpgid(0, 0)
    quiet_dask()
    for name in ("distributed.worker", "distributed.nanny"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    slot = own_slot()
    if slot is not None:
        if slot.cores:
            bind_to(slot.cores)
        worker.startup_information[IDENTITY] = lambda _: tell_identity(slot)
