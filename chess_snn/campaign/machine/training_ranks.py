"""How many processes (ranks) train a network on a machine: one for each of its GPUs by default."""

from collections.abc import Sequence
from dataclasses import dataclass

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.machine.places import own_place
from chess_snn.campaign.machine.workers import gpus_for
from chess_snn.devices import choose_devices
from chess_snn.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RankChoice:
    """How many ranks train on one machine."""

    number: int
    """1 trains in one process, which starts no others."""
    why: str
    """One line for people."""


def training_gpus(config: CampaignConfig) -> tuple[str, ...]:
    """What ``CUDA_VISIBLE_DEVICES`` calls the GPUs that training may use on this machine.

    Those of the campaign where this process is a worker, else those of ``execution.gpus``.

    Raises:
        ConfigError: a GPU is asked for that does not exist.
    """
    place = own_place()
    if place is not None:
        return place.machine_gpus
    execution = config.execution
    devices = choose_devices(execution.device, execution.gpus, gpus_for(config))
    return tuple(device.token for device in devices if device.is_gpu)


def choose_ranks(config: CampaignConfig, num_gpus: int, num_machines: int = 1) -> RankChoice:
    """How many ranks train on a machine with ``num_gpus`` GPUs for training.

    As ``execution.training_ranks`` says. Where that is 0: one for each GPU, but all machines
    together have no more than a step has micro-batches; one where there is no GPU, since threads
    share the micro-batches there.

    Args:
        config: of the campaign, or of a network that learns from given games.
        num_gpus: of this machine.
        num_machines: that train together, each with as many GPUs.

    Raises:
        ConfigError: ``execution.training_backend`` is NCCL, and there is no GPU.
    """
    execution, training = config.execution, config.training
    if execution.training_backend == "nccl" and not num_gpus:
        raise ConfigError(
            'execution.training_backend = "nccl" needs GPUs, and training has none on this '
            'machine; set it to "gloo" or "auto"'
        )
    if execution.training_ranks:
        number = execution.training_ranks
        return RankChoice(number, f"training in {_processes(number)}, as set")
    if not num_gpus:
        return RankChoice(1, "training in 1 process on the CPU")
    most = max(1, training.num_micro_batches // num_machines)
    if num_gpus <= most:
        return RankChoice(num_gpus, f"training in {_processes(num_gpus)}, one for each GPU")
    each = max(2, training.batch_size // (num_gpus * num_machines))
    return RankChoice(
        most,
        f"training in {_processes(most)} on a machine of {num_gpus} GPUs, because a step has "
        f"{training.num_micro_batches} micro-batches (training.batch_size = {training.batch_size}, "
        f"training.micro_batch = {training.micro_batch}); with training.micro_batch = {each} or "
        "less, set at the start, all GPUs train",
    )


def deal_ranks(config: CampaignConfig, gpus: Sequence[int]) -> list[int]:
    """Ranks of each machine that trains together with others.

    As :func:`choose_ranks`, but each machine may have another number of GPUs: where there are more
    than micro-batches, the machines with the most ranks have fewer.

    Args:
        config: of the campaign.
        gpus: of each machine; no more machines than a step has micro-batches.
    """
    if each := config.execution.training_ranks:
        return [each] * len(gpus)
    ranks = [max(1, number) for number in gpus]
    while sum(ranks) > config.training.num_micro_batches:
        ranks[ranks.index(max(ranks))] -= 1
    return ranks


def _processes(number: int) -> str:
    return "1 process" if number == 1 else f"{number} processes"
