"""The Dask cluster of a campaign on this machine: warm worker processes, one device each."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import dask
from distributed import Client, LocalCluster

from chess_snn.campaign import CampaignConfig
from chess_snn.campaign.devices import find_devices, is_gpu
from chess_snn.campaign.workers import num_workers, threads_each
from chess_snn.cores import num_cores
from tasks import nanny_setup, worker_setup
from tasks.compute import DEVICE

_LOOPBACK = "127.0.0.1"
_ANY_LOOPBACK_PORT = f"{_LOOPBACK}:0"

_DASK_SETTINGS = {
    # By the wall clock, which may jump; flows.worker_watch ends frozen workers.
    "distributed.scheduler.worker-ttl": None,
    "distributed.nanny.preload": [nanny_setup.__name__],
    "distributed.comm.timeouts.connect": "30s",
}


@dataclass(frozen=True, slots=True)
class Crew:
    """The workers of a campaign."""

    client: Client
    num_workers: int
    num_cores: int
    """Of this machine."""
    shares_cores: bool
    """Whether workers compute on the cores that training wants all of."""

    @property
    def threads_each(self) -> int:
        """Cores of a worker while all work side by side."""
        return threads_each(self.num_workers)


@contextmanager
def local_crew(config: CampaignConfig) -> Iterator[Crew]:
    """Have the campaign's workers for the length of the block; they end with this process."""
    count = num_workers(config)
    with (
        dask.config.set(_DASK_SETTINGS),
        LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            host=_LOOPBACK,
            dashboard_address=_ANY_LOOPBACK_PORT,
            worker_dashboard_address=_ANY_LOOPBACK_PORT,
            resources={DEVICE: 1},
            preload=[worker_setup.__name__],
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        on_gpus = is_gpu(find_devices(config.execution.device)[0])
        yield Crew(client, count, num_cores(), shares_cores=not on_gpus)
