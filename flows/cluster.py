"""The workers of a campaign, wherever they are."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Final

import dask
from distributed import Client, Security

from chess_snn.campaign import CampaignConfig, CampaignFolder
from chess_snn.campaign.machine.gpu_sharing_probe import measure_where_unknown
from chess_snn.campaign.machine.places import WorkerPlace
from chess_snn.campaign.machine.training_launch import choose_ranks, training_gpus
from chess_snn.campaign.machine.workers import plan_here
from chess_snn.cores import num_cores
from chess_snn.devices import gpus_option, name_devices
from chess_snn.errors import ClusterError, UsageError
from chess_snn.types import LogFn
from tasks import compute
from tasks.cluster.crew_watch import CrewWatch
from tasks.cluster.identity import device_fault
from tasks.cluster.liveness import DASK_SETTINGS
from tasks.cluster.nannies import local_cluster
from tasks.cluster.reaching import check_scheduler, wait_for_scheduler
from tasks.cluster.security import certificates_folder, find_security, security_of
from tasks.cluster.worker_watch import watched_workers

_OWN: Final = 0
"""As a number of threads: as many as the worker's place has."""

_CERTIFICATES: Final = "cluster.certificates"


@dataclass(frozen=True, slots=True)
class Crew:
    """The workers of a campaign; they may change while it runs."""

    client: Client
    watch: CrewWatch
    threads_each: int
    """Cores of a worker while all work side by side; 0 where each knows its own."""
    num_cores: int
    """For training; 0 takes all of the worker's machine."""
    num_own_players: int = 0
    """Workers that this process starts, and starts again where they die, to play games."""

    @property
    def num_workers(self) -> int:
        """Workers that play games, >= 1 even while all of them are away.

        Own workers count also while they start again.
        """
        return max(1, self.num_own_players, sum(member.plays for member in self.watch.members))

    @property
    def addresses(self) -> list[str]:
        """Of all workers that are there."""
        return [member.address for member in self.watch.members]

    @property
    def shares_cores(self) -> bool:
        """Whether workers compute on the cores that training wants all of."""
        return any(member.shares_cores for member in self.watch.members)


@contextmanager
def campaign_crew(folder: CampaignFolder, say: LogFn) -> Iterator[Crew]:
    """Have the campaign's workers for the length of the block.

    Local ones, jobs and pods end with it; those of a scheduler that runs already stay there.

    Args:
        folder: of the campaign.
        say: is told of workers that come and go, and of what was chosen otherwise than asked for.

    Raises:
        ConfigError: devices, workers or certificates that do not exist.
        ClusterError: the scheduler cannot be used, or no worker came.
    """
    openers = {
        "local": _open_local, "address": _open_address, "slurm": _open_slurm,
        "kubernetes": _open_kubernetes,
    }
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(DASK_SETTINGS))
        yield openers[folder.config.cluster.kind](folder, stack, say)


def check_crew(config: CampaignConfig) -> None:
    """Return if the workers of a campaign could be had, as far as that is known beforehand.

    Raises:
        ConfigError: devices, workers or certificates that do not exist.
        ClusterError: the scheduler cannot be used.
    """
    settings = config.cluster
    if settings.kind == "local":
        plan_here(config)
        choose_ranks(config, len(training_gpus(config)))
    elif settings.kind == "address":
        security = security_of(settings.address, settings.certificates, _CERTIFICATES)
        check_scheduler(settings.address, security)
    else:
        find_security(f'cluster.kind = "{settings.kind}"', settings.certificates, _CERTIFICATES)
        if settings.kind == "slurm" and shutil.which("sbatch") is None:
            raise ClusterError(
                'cluster.kind = "slurm", and there is no sbatch on PATH; start the campaign where '
                "jobs are submitted"
            )


def _open_local(folder: CampaignFolder, stack: ExitStack, say: LogFn) -> Crew:
    measure_where_unknown(folder.config, say)
    plan = plan_here(folder.config)
    for note in plan.notes:
        say(note)
    client = stack.enter_context(Client(stack.enter_context(local_cluster(plan.places))))
    check_devices(client, plan.places)
    crew = replace(
        _watched(client, stack, say, plan.places[0].num_threads, num_cores()),
        num_own_players=len(plan.players),
    )
    play_on = {place.device for place in plan.players}
    train_on = {place.device for place in plan.places if "train" in place.roles}
    say(
        f"self-play: {len(plan.players)} workers on {name_devices(play_on)}, {crew.threads_each} "
        f"thread{'' if crew.threads_each == 1 else 's'} each"
        + ("" if train_on == play_on else f"; training: {name_devices(train_on)}")
    )
    say(choose_ranks(folder.config, len(plan.places[0].machine_gpus)).why)
    return crew


def check_devices(client: Client, places: Sequence[WorkerPlace]) -> None:
    """See that every worker can use the device of its place.

    Raises:
        ClusterError: one cannot, such as a GPU that has failed since the places were chosen.
    """
    faults: dict[str, str] = client.run(device_fault)
    if not any(faults.values()):
        return
    names = {address: str(info["name"]) for address, info
             in client.scheduler_info(-1)["workers"].items()}
    broken = {names[address] for address, fault in faults.items() if fault}
    lost = {place.device for place in places if place.name in broken}
    left = sorted({place.device for place in places} - lost, key=lambda device: device.index)
    numbers = gpus_option([device.index for device in left])
    way_out = f"or go on without it: --gpus {numbers}" if left else "or go on with: --device cpu"
    raise ClusterError(
        f"{next(filter(None, faults.values()))}; look at nvidia-smi and the kernel's log, {way_out}"
    )


def _open_address(folder: CampaignFolder, stack: ExitStack, say: LogFn) -> Crew:
    settings = folder.config.cluster
    security = security_of(settings.address, settings.certificates, _CERTIFICATES)
    check_scheduler(settings.address, security)
    return _at_scheduler(settings.address, security, folder, stack, say)


def _open_slurm(folder: CampaignFolder, stack: ExitStack, say: LogFn) -> Crew:
    settings = folder.config.cluster
    security = find_security('cluster.kind = "slurm"', settings.certificates, _CERTIFICATES)
    certificates = certificates_folder(settings.certificates)
    try:
        from tasks.cluster.slurm import slurm_cluster  # noqa: PLC0415 - an extra

        cluster = slurm_cluster(settings, folder.config.execution, security, certificates)
    except ModuleNotFoundError as error:
        raise _missing(error, "slurm") from error
    except RuntimeError as error:
        lines = str(error).strip().splitlines()
        raise ClusterError(
            f"Slurm did not take the jobs: {lines[-1]}; look at the settings cluster.*"
        ) from error
    client = stack.enter_context(Client(stack.enter_context(cluster), security=security))
    say(f"{settings.jobs} jobs of Slurm are submitted")
    return _with_workers(client, folder, stack, say)


def _open_kubernetes(folder: CampaignFolder, stack: ExitStack, say: LogFn) -> Crew:
    settings = folder.config.cluster
    security = find_security('cluster.kind = "kubernetes"', settings.certificates, _CERTIFICATES)
    try:
        from tasks.cluster.kubernetes import kubernetes_cluster  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise _missing(error, "kubernetes") from error
    name = f"chess-snn-{folder.campaign_id[:8]}"
    address = stack.enter_context(
        kubernetes_cluster(name, settings, folder.config.execution, say)
    )
    say(f"{settings.jobs} pods of workers are asked for, and one of a scheduler")
    wait_for_scheduler(address, security, settings.wait_s, say)
    return _at_scheduler(address, security, folder, stack, say)


def _at_scheduler(
    address: str, security: Security | None, folder: CampaignFolder, stack: ExitStack, say: LogFn
) -> Crew:
    client = stack.enter_context(Client(address, security=security))
    return _with_workers(client, folder, stack, say)


def _with_workers(client: Client, folder: CampaignFolder, stack: ExitStack, say: LogFn) -> Crew:
    """Wait for a worker that can be used; others may follow at any time."""
    wait_s, address = folder.config.cluster.wait_s, client.scheduler.address
    crew = _watched(client, stack, say, _OWN, _OWN)
    if not crew.watch.members:
        say(f"waiting for workers of {address}, at most {wait_s:.0f} s")
    if not crew.watch.wait_for_members(wait_s):
        raise ClusterError(
            f"no worker that can be used came to {address} within cluster.wait_s = {wait_s:.0f} s; "
            f"start some: chess-snn cluster worker {address}"
        )
    players = [member for member in crew.watch.members if member.plays]
    machines = "; ".join(
        f"{sum(member.host == host for member in players)} on "
        f"{name_devices(member.hardware for member in players if member.host == host)} of {host}"
        for host in sorted({member.host for member in players})
    )
    say(f"self-play: {crew.num_workers} workers, {machines}")
    if folder.config.cluster.training_machines == 1:
        for gpus in sorted({member.gpus for member in crew.watch.members if member.trains}):
            say(choose_ranks(folder.config, gpus).why)
    return crew


def _watched(
    client: Client, stack: ExitStack, say: LogFn, threads_each: int, cores: int
) -> Crew:
    watch = CrewWatch(client, say)
    stack.enter_context(watch.running())
    stack.enter_context(compute.watched_by(watch))
    stack.enter_context(watched_workers(client, say))
    return Crew(client, watch, threads_each, cores)


def _missing(error: ModuleNotFoundError, extra: str) -> UsageError:
    return UsageError(
        f"cluster.kind = \"{extra}\" needs {error.name}; install it with: "
        f"pip install 'chess-snn[{extra}]'"
    )
