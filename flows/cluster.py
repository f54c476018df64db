"""The workers of a campaign, wherever they are."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

import dask
from distributed import Client

from chess_snn.campaign import CampaignConfig, CampaignFolder
from chess_snn.campaign.machine.slots import WorkerSlot
from chess_snn.campaign.machine.training_launch import choose_ranks
from chess_snn.campaign.machine.workers import plan_here
from chess_snn.devices import gpus_option, name_devices
from chess_snn.errors import ClusterError
from chess_snn.tasks import compute
from chess_snn.tasks.cluster.identity import IDENTITY
from chess_snn.tasks.cluster.nannies import local_cluster
from chess_snn.tasks.cluster.programs import check_scheduler
from chess_snn.tasks.cluster.security import security_of
from chess_snn.tasks.cluster.worker_pool import WorkerPool
from chess_snn.tasks.cluster.worker_setup import DASK_SETTINGS
from chess_snn.tasks.progress import ProgressBoard
from chess_snn.tasks.remote import PROGRESS_TOPIC
from chess_snn.types import LogFn
from chess_snn.wording import counted

_CERTIFICATES: Final = "cluster.certificates"
_WAIT_S: Final = 300.0
"""How long a campaign waits for its first worker before it gives up."""


@contextmanager
def campaign_workers(folder: CampaignFolder, say: LogFn) -> Iterator[WorkerPool]:
    """Have the campaign's workers for the length of the block.

    Local ones end with it; those of a scheduler that runs already stay there. ``say`` gets a line
    for workers that come and go, and for choices other than those asked for.

    Raises:
        ConfigError: devices, workers or certificates that do not exist.
        ClusterError: the scheduler cannot be used, no worker came, or none sees the folder.
    """
    opened = _open_local if folder.config.cluster.kind == "local" else _open_address
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(DASK_SETTINGS))
        yield opened(folder, stack, say)


@contextmanager
def watched_workers(folder: CampaignFolder, board: ProgressBoard) -> Iterator[WorkerPool]:
    """:func:`campaign_workers`, whose progress ``board`` tells."""
    with campaign_workers(folder, board.message) as pool:
        board.watch_workers(lambda: pool.states)
        pool.client.subscribe_topic(PROGRESS_TOPIC, board.handle_event)
        with board.running():
            yield pool


def check_cluster(config: CampaignConfig) -> None:
    """Return if the scheduler of a campaign could be used, as far as that is known beforehand.

    Raises:
        ConfigError: certificates that do not exist.
        ClusterError: the scheduler cannot be used.
    """
    settings = config.cluster
    security = security_of(settings.address, settings.certificates, _CERTIFICATES)
    check_scheduler(settings.address, security)


def _open_local(folder: CampaignFolder, stack: ExitStack, say: LogFn) -> WorkerPool:
    plan = plan_here(folder.config)
    for note in plan.notes:
        say(note)
    client = stack.enter_context(Client(stack.enter_context(local_cluster(plan.slots))))
    check_devices(client, plan.slots)
    pool = _followed(client, stack, say, num_own_workers=len(plan.slots))
    threads = plan.slots[0].num_threads
    devices = name_devices(slot.device for slot in plan.slots)
    say(
        f"self-play: {counted(len(plan.slots), 'worker')} on {devices}, "
        f"{counted(threads, 'thread')} each, "
        f"{counted(folder.config.self_play.games_per_iteration, 'game')} an iteration"
    )
    say(choose_ranks(folder.config, len(plan.slots[0].machine_gpus)).why)
    return pool


def check_devices(client: Client, slots: Sequence[WorkerSlot]) -> None:
    """See that every worker can use the device of its slot.

    Raises:
        ClusterError: one cannot, such as a GPU that has failed since the slots were chosen.
    """
    infos = client.scheduler_info(-1)["workers"].values()
    faults = {info["name"]: info[IDENTITY]["fault"] for info in infos if info[IDENTITY]["fault"]}
    if not faults:
        return
    lost = {slot.device for slot in slots if slot.name in faults}
    left = sorted({slot.device for slot in slots} - lost, key=lambda device: device.index)
    numbers = gpus_option([device.index for device in left])
    hint = f"or go on without it: --gpus {numbers}" if left else "or go on with: --device cpu"
    raise ClusterError(
        f"{next(iter(faults.values()))}; look at nvidia-smi and the kernel's log, {hint}"
    )


def _open_address(folder: CampaignFolder, stack: ExitStack, say: LogFn) -> WorkerPool:
    settings = folder.config.cluster
    security = security_of(settings.address, settings.certificates, _CERTIFICATES)
    check_scheduler(settings.address, security)
    client = stack.enter_context(Client(settings.address, security=security))
    address = settings.address
    pool = _followed(client, stack, say, shared=folder)
    if not pool.workers:
        say(f"waiting for workers of {address}, at most {_WAIT_S:.0f} s")
    if not pool.wait_for_workers(_WAIT_S):
        if pool.dismissals:
            raise ClusterError(pool.dismissals[0])
        raise ClusterError(
            f"no worker that can be used came to {address} within {_WAIT_S:.0f} s; "
            f"start some: chess-snn cluster worker {address}"
        )
    slots = [worker.slot for worker in pool.workers]
    machines = "; ".join(
        f"{sum(slot.host == host for slot in slots)} on "
        f"{name_devices(slot.device for slot in slots if slot.host == host)} of {host}"
        for host in sorted({slot.host for slot in slots})
    )
    say(f"self-play: {counted(pool.num_workers, 'worker')}, {machines}")
    for gpus in sorted({len(slot.machine_gpus) for slot in slots}):
        say(choose_ranks(folder.config, gpus).why)
    return pool


def _followed(
    client: Client, stack: ExitStack, say: LogFn, *, num_own_workers: int = 0,
    shared: CampaignFolder | None = None,
) -> WorkerPool:
    pool = WorkerPool(client, say, num_own_workers=num_own_workers, shared=shared)
    stack.enter_context(pool.running())
    stack.enter_context(compute.watched_by(pool))
    return pool
