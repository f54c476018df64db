"""What every worker process does first; Dask imports this module and calls :func:`dask_setup`."""

import signal


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C to the campaign, which ends its workers in order.

    A terminal sends it to every process in the foreground; a worker that dies of it on its own is
    taken for a fault.
    """
    del worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
