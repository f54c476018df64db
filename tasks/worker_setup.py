"""What every worker process does first; Dask imports this module and calls :func:`dask_setup`.

So everything that a worker runs is imported before it is known to be there. Later, the import would
hold up its signs of life, on a busy machine for so long that it would be taken for frozen.
"""

import logging
import os
import signal

import tasks.remote  # noqa: F401 - for its modules
from chess_snn.campaign.machine.places import own_place
from chess_snn.cores import bind_to
from tasks.cluster.liveness import quiet_dask


def dask_setup(worker: object) -> None:
    """Take the place that was given to this worker; leave signals and errors to the campaign.

    A terminal sends Ctrl-C to every process in the foreground, and Prefect sends SIGTERM to the
    process group of a run that is cancelled; a worker that dies of it on its own is taken for a
    fault, and another one is started. So it leaves that group. An exception of a task is raised
    where its result is waited for, and need not be printed here as well; nor that the queue to the
    nanny is gone when this process ends.
    """
    del worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setpgid(0, 0)
    quiet_dask()
    for name in ("distributed.worker", "distributed.nanny"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    place = own_place()
    if place is not None and place.cores:
        bind_to(place.cores)
