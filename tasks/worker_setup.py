"""What every worker process does first; Dask imports this module and calls :func:`dask_setup`."""

import logging
import signal


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C and the telling of errors to the campaign.

    A terminal sends Ctrl-C to every process in the foreground; a worker that dies of it on its own
    is taken for a fault. An exception of a task is raised where its result is waited for, and need
    not be printed here as well.
    """
    del worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)
