"""How Dask tells the dead from the slow, in every process of a cluster."""

import logging
from typing import Final

DASK_SETTINGS: Final = {
    # A worker that says nothing for this long is taken for frozen, and replaced.
    "distributed.scheduler.worker-ttl": "30s",
    "distributed.comm.timeouts.connect": "30s",
    # One that died is started again, which takes its time on a machine that is busy.
    "distributed.deploy.lost-worker-timeout": "10 minutes",
    # A worker that grows is ended at its bound; paused, it would wait for memory for ever.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
}


def quiet_dask() -> None:
    """Leave out what Dask says of its daily business; warnings stay."""
    logging.getLogger("distributed").setLevel(logging.WARNING)
