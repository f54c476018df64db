"""The workers of a campaign, wherever they are."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import dask
from distributed import Client

from chess_snn.campaign import CampaignConfig
from chess_snn.campaign.workers import plan_here
from chess_snn.cores import num_cores
from chess_snn.errors import ClusterError
from tasks.cluster.liveness import DASK_SETTINGS
from tasks.cluster.local import local_cluster
from tasks.cluster.reaching import check_scheduler
from tasks.cluster.security import security_of
from tasks.cluster.software import resource

_OWN_THREADS = 0
"""Lets a worker compute with as many threads as its place has."""


@dataclass(frozen=True, slots=True)
class Crew:
    """The workers of a campaign."""

    client: Client
    num_workers: int
    """That play games; of a cluster, when the campaign began."""
    threads_each: int
    """Cores of a worker while all work side by side; 0 where each knows its own."""
    num_cores: int
    """For training; 0 takes all of the worker's machine."""
    shares_cores: bool
    """Whether workers compute on the cores that training wants all of."""


@contextmanager
def campaign_crew(config: CampaignConfig, say: Callable[[str], None]) -> Iterator[Crew]:
    """Have the campaign's workers for the length of the block.

    Local ones, jobs and pods end with it; those of a scheduler that runs already stay there.

    Args:
        config: of the campaign.
        say: is told what was chosen otherwise than asked for.

    Raises:
        ConfigError: devices, workers or certificates that do not exist.
        ClusterError: the scheduler cannot be used, or no worker came.
    """
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(DASK_SETTINGS))
        make = {"local": _local_crew, "address": _crew_at_address}[config.cluster.kind]
        yield make(config, stack, say)


def _local_crew(config: CampaignConfig, stack: ExitStack, say: Callable[[str], None]) -> Crew:
    plan = plan_here(config)
    for note in plan.notes:
        say(note)
    cluster = stack.enter_context(local_cluster(plan.places))
    client = stack.enter_context(Client(cluster))
    return Crew(
        client, len(plan.players), plan.places[0].num_threads, num_cores(),
        shares_cores=any(place.device.shares_cores for place in plan.places),
    )


def _crew_at_address(config: CampaignConfig, stack: ExitStack, say: Callable[[str], None]) -> Crew:
    settings = config.cluster
    security = security_of(settings.address, settings.certificates, "cluster.certificates")
    check_scheduler(settings.address, security)
    client = stack.enter_context(Client(settings.address, security=security))
    say(f"waiting for workers of {settings.address}, at most {settings.wait_s:.0f} s")
    try:
        client.wait_for_workers(1, timeout=settings.wait_s)
    except TimeoutError as error:
        raise ClusterError(
            f"no worker came to {settings.address} within cluster.wait_s = "
            f"{settings.wait_s:.0f} s; start some: chess-snn cluster worker {settings.address}"
        ) from error
    offered = [
        worker.get("resources", {}) for worker in client.scheduler_info(-1)["workers"].values()
    ]
    players = sum(resource("play") in resources for resources in offered)
    return Crew(client, max(1, players), _OWN_THREADS, _OWN_THREADS, shares_cores=True)
