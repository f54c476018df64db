"""Number of worker processes that a machine gives to a campaign, and their resources."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.machine.slots import Machine, WorkerSlot, this_machine
from chess_snn.devices import Device, choose_devices, visible_gpus
from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.search import tree_bytes
from chess_snn.wording import counted

_MIB: Final = 2**20
_GIB: Final = 2**30

_LIBRARY_BYTES: Final = 450 * _MIB
"""Memory of a worker that has loaded torch and the kernels, and has a small network."""
_GPU_CONTEXT_BYTES: Final = 1500 * _MIB
"""Memory of the host, for one that has opened a GPU besides."""
_USUAL_SHARE_OF_TREES: Final = 6
"""Ordinary positions take a sixth of what trees may come to at worst."""
_KEPT_SHARE: Final = 0.1
"""Share of memory for the campaign's own process, its servers and the system."""
_WORKERS_A_GPU: Final = 2
"""While one is in its trees, the other is in the network."""
_LEAST_GPU_BYTES_EACH: Final = 4 * _GIB


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """The workers of one machine."""

    slots: tuple[WorkerSlot, ...]
    notes: tuple[str, ...]
    """Sentences about choices other than those asked for, and devices without a worker."""


def config_here(load: Callable[..., CampaignConfig]) -> CampaignConfig:
    """The configuration of a new campaign, for those GPUs of this machine that it may use.

    Where ``execution.device`` is ``cuda``, a preset is for one GPU. Several share its work: with
    the square root of their number times the games, and a micro-batch of a step for each; see
    decision 43. With a scheduler's address, the workers are not known yet, and nothing changes.

    Args:
        load: makes the configuration, with ``over_preset`` as
            :func:`chess_snn.campaign.configuration.loading.load_config` has it.

    Raises:
        ConfigError: a GPU is asked for that does not exist, games without search have no teacher,
            or as ``load``.
    """
    config = load()
    config.check_labels()
    execution, training = config.execution, config.training
    if execution.device != "cuda" or config.cluster.kind != "local":
        return config
    num_gpus = len(choose_devices(execution.device, execution.gpus, gpus_for(config)))
    if num_gpus == 1:
        return config
    games = round(config.self_play.games_per_iteration * math.sqrt(num_gpus))
    share = max(2, -(-training.batch_size // num_gpus))
    return load(over_preset=[
        ("self_play.games_per_iteration", games),
        ("training.micro_batch", min(training.micro_batch, share)),
    ])


def plan_here(config: CampaignConfig) -> WorkerPlan:
    """The workers of this machine.

    Raises:
        ConfigError: a GPU is asked for that does not exist, or more workers than memory.
    """
    num_games = config.self_play.games_per_iteration
    return plan_workers(config, this_machine(gpus_for(config)), num_games)


def gpus_for(config: CampaignConfig) -> list[Device]:
    """The GPUs of this machine, which is not asked where the settings want none."""
    return visible_gpus() if config.execution.device != "cpu" else []


def plan_workers(config: CampaignConfig, machine: Machine, num_games: int) -> WorkerPlan:
    """The workers of ``machine``, which is looked at no further.

    If the settings leave their number open, there are no more than ``num_games`` of an iteration.
    Raises as :func:`plan_here`.
    """
    execution = config.execution
    devices = choose_devices(execution.device, execution.gpus, machine.gpus)
    num_workers, notes = _num_workers(config, machine, devices, num_games)
    memory_bytes = _memory_each(config, machine, devices[0], num_workers)
    tokens = tuple(device.token for device in devices if device.is_gpu)
    threads = max(1, len(machine.cores) // num_workers)
    slots = tuple(
        WorkerSlot(
            number, machine.host, devices[number % len(devices)],
            _cores_of(number, threads, machine) if execution.bind_cores else (), threads,
            memory_bytes, tokens,
        )
        for number in range(num_workers)
    )
    return WorkerPlan(slots, tuple(notes))


def worker_bytes(config: CampaignConfig, device: Device) -> int:
    """Host memory that a worker on ``device`` takes at least, while it plays."""
    spec, self_play = get_game(config.campaign.game).spec, config.self_play
    num_games = min(self_play.concurrent_games, self_play.games_per_shard)
    simulations = 0
    if config.search.kind != "policy":
        simulations = max(config.search.simulations_first, config.search.simulations_last)
    trees = tree_bytes(spec, simulations) * num_games // _USUAL_SHARE_OF_TREES
    return _LIBRARY_BYTES + trees + (_GPU_CONTEXT_BYTES if device.is_gpu else 0)


def _num_workers(
    config: CampaignConfig, machine: Machine, devices: Sequence[Device], num_games: int
) -> tuple[int, list[str]]:
    """Return how many workers ``devices`` have, and what is to be said of that."""
    execution, count = config.execution, len(devices)
    if not execution.workers:
        return _automatic(config, machine, devices, num_games)
    wanted = execution.workers
    if wanted < count:
        idle = count - wanted
        have = "has" if idle == 1 else "have"
        workers = counted(wanted, "worker")
        return wanted, [f"{workers} on {count} devices: {idle} of them {have} no work"]
    number = wanted // count * count
    if number == wanted:
        return wanted, []
    return number, [
        f"{wanted} workers on {count} devices: lowered to {number}, {number // count} each"
    ]


def _automatic(
    config: CampaignConfig, machine: Machine, devices: Sequence[Device], num_games: int
) -> tuple[int, list[str]]:
    """Return as many as the devices can use, games and memory permitting; and notes."""
    needed = worker_bytes(config, devices[0])
    fitting = max(1, _usable_bytes(machine) // needed)
    most = min(num_games, fitting)
    if devices[0].is_gpu:
        count, units = len(devices), "GPUs"
        wanted = count * _workers_a_gpu(devices, len(machine.cores))
        number = min(wanted, most // count * count if most > count else most)
    else:
        count, units = len(machine.cores), "cores"
        number = min(count, most)
    if number >= count:
        return number, []
    reason = (
        f"memory has room for {counted(fitting, 'worker')} of about {needed / _GIB:.1f} GiB each"
        if fitting <= num_games else
        f"an iteration has {counted(num_games, 'game')} (self_play.games_per_iteration)"
    )
    return number, [f"{count} {units}, {count - number} of them without a worker: {reason}"]


def _workers_a_gpu(gpus: Sequence[Device], num_cores: int) -> int:
    """Two where each has a core and enough of the GPU's memory, else one."""
    most = num_cores // len(gpus)
    smallest = min(gpu.memory_bytes for gpu in gpus)
    if smallest:  # simulated ones have none
        most = min(most, smallest // _LEAST_GPU_BYTES_EACH)
    return max(1, min(_WORKERS_A_GPU, most))


def _memory_each(config: CampaignConfig, machine: Machine, device: Device, count: int) -> int:
    """Bytes that each of ``count`` workers may take; checked against what they will need."""
    usable = _usable_bytes(machine)
    bound = config.execution.worker_memory_mib * _MIB
    needed = bound or worker_bytes(config, device)
    if count > 1 and count * needed > usable:
        raise ConfigError(
            f"{count} workers take about {needed / _GIB:.1f} GiB each, and of this machine's "
            f"{machine.memory_bytes / _GIB:.1f} GiB {usable / _GIB:.1f} are theirs: room for "
            f"{max(1, usable // needed)}; lower execution.workers (--workers), "
            "self_play.concurrent_games or, if it is set, execution.worker_memory_mib"
        )
    return bound or usable // count


def _usable_bytes(machine: Machine) -> int:
    return int(machine.memory_bytes * (1 - _KEPT_SHARE))


def _cores_of(number: int, num_threads: int, machine: Machine) -> tuple[int, ...]:
    """A run of cores to itself, or where there are more workers than cores, one with others."""
    first = number * num_threads % len(machine.cores)
    return machine.cores[first : first + num_threads]
