"""How Dask tells the dead from the slow, in every process of a cluster."""

import logging
from typing import Final

from tasks import nanny_setup

DASK_SETTINGS: Final = {
    # By the wall clock, which may jump; campaigns end frozen workers (flows.worker_watch).
    "distributed.scheduler.worker-ttl": None,
    "distributed.nanny.preload": [nanny_setup.__name__],
    "distributed.comm.timeouts.connect": "30s",
    # One that died is started again, which takes its time on a machine that is busy.
    "distributed.deploy.lost-worker-timeout": "10 minutes",
    # A worker that grows is ended at its bound; paused, it would wait for memory for ever.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    # For pages of Dask's: a hundred looks a second at each stack, an hour of which is kept.
    "distributed.worker.profile.enabled": False,
}


def quiet_dask() -> None:
    """Leave out what Dask says of its daily business; warnings stay."""
    logging.getLogger("distributed").setLevel(logging.WARNING)
