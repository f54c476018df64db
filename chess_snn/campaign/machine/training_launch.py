"""Train a campaign's generation, or a network alone, in this process or by several ranks.

What is to be trained is a :class:`RankTraining`; :func:`run_training` trains it, in one process or
by ranks on this machine. :func:`choose_ranks` says how many fit it: one for each of its GPUs by
default. Ranks of several machines are started by ``torchrun`` (docs/cluster.md).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

from chess_snn import training
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.machine.slots import own_slot
from chess_snn.campaign.machine.workers import gpus_for
from chess_snn.campaign.stages import (
    check_training_inputs,
    train_generation,
    trained_before,
)
from chess_snn.campaign.stages.first_generation import first_facts, train_first_generation
from chess_snn.campaign.stages.networks import device_of
from chess_snn.campaign.stages.training_alone import (
    LEARN,
    PROGRAM,
    begin_network,
    learn_network,
    points_of,
    unfinished_folder,
)
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.receipt_parts import TrainingFacts
from chess_snn.cores import num_cores
from chess_snn.data import sweep_temporaries
from chess_snn.devices import VISIBLE_GPUS, choose_devices
from chess_snn.errors import ConfigError, RankLostError
from chess_snn.known import TIMEOUT_S
from chess_snn.processes import end_with_parent
from chess_snn.training import RankInfo, joined_ranks
from chess_snn.training.rank_launch import run_ranks
from chess_snn.types import Json, LogFn, Progress
from chess_snn.wording import counted

Result = TypeVar("Result")

@dataclass(frozen=True, slots=True)
class RankTraining(Generic[Result]):
    """A network to train on several ranks."""

    config: CampaignConfig
    target: Path
    """The checkpoint that is committed."""
    arguments: tuple[str, ...]
    """Arguments of the training program."""
    alone: Callable[..., Any]
    """Trains it in this process."""
    check: Callable[[], None]
    """Raises if an input is damaged. It is called before ranks start, because an error of a rank
    reaches this process as text."""
    result: Callable[[], Result]
    """Reads what was committed."""


def generation_training(directory: Path, iteration: int) -> RankTraining[TrainingFacts]:
    """Generation ``iteration + 1`` of a campaign, from the games of ``iteration`` and before."""
    folder = CampaignFolder.open(directory)
    return RankTraining(
        folder.config, folder.checkpoint(iteration + 1),
        (str(folder.path), "--iteration", str(iteration)),
        alone=partial(train_generation, directory, iteration),
        check=partial(check_training_inputs, folder, iteration),
        result=partial(trained_before, folder, iteration),
    )


def first_training(directory: Path) -> RankTraining[Json]:
    """Generation 0 of a campaign, from a dataset."""
    folder = CampaignFolder.open(directory)
    return RankTraining(
        folder.config, folder.checkpoint(0), (str(folder.path), LEARN),
        alone=partial(train_first_generation, directory),
        check=partial(training.check_newest, folder.supervised),
        result=partial(first_facts, folder),
    )


def train_network(
    config: CampaignConfig, out: Path, number: int = 1, *, num_threads: int = 0,
    timeout_s: float = TIMEOUT_S, on_progress: Progress | None = None,
    on_line: LogFn | None = None,
) -> training.Points:
    """Train a network on the games of ``config.supervised``, or go on with that.

    This process trains by ``number`` ranks on this machine; one that torchrun started is a rank
    itself, and calls the listeners only as the first.

    The games are fixed (:func:`chess_snn.campaign.stages.dataset.fix_dataset`); of the rest of
    ``config``, ``net``, ``training``, the seed and the device are looked at. If the checkpoint
    ``out`` is there already, nothing is trained. Other arguments are those of :func:`run_training`.

    Returns:
        The figures of the training by step.

    Raises:
        UsageError: ``out`` or what is unfinished there is something else, or the games are gone.
        CorruptDataError: a shard or a checkpoint is damaged.
    """
    info = RankInfo.from_environment()
    if not begin_network(config, out, is_first=info.rank == 0):
        return points_of(out)
    if info.size > 1:
        end_with_parent(os.getppid(), signal.SIGKILL)  # torchrun would leave it running
    backend = config.execution.training_backend
    with joined_ranks(info, device_of(config, info.local_rank), timeout_s, backend) as ranks:
        job = RankTraining(
            config, out, (str(out.absolute()), LEARN),
            alone=partial(learn_network, out, ranks=ranks),
            check=partial(training.check_newest, unfinished_folder(out)), result=lambda: None,
        )
        run_training(
            job, number, num_threads=num_threads, timeout_s=timeout_s,
            on_progress=on_progress if ranks.is_first else None,
            on_line=on_line if ranks.is_first else None,
        )
        ranks.agree({"network": str(out.absolute())})  # once rank 0 has committed it
    return points_of(out)


def train_here(
    job: RankTraining[Result], num_threads: int, on_progress: Progress | None
) -> Result:
    """Train on this machine alone, with as many ranks as :func:`choose_ranks` says.

    The ranks share ``num_threads`` of a CPU. ``on_progress`` is called with (steps done, steps in
    all).

    Raises:
        RankLostError: a rank died or froze; nothing is half-written, and it may be tried again.
    """
    number = choose_ranks(job.config, len(training_gpus(job.config))).number
    return run_training(
        job, number, num_threads=max(1, num_threads // number), on_progress=on_progress
    )


def run_training(
    job: RankTraining[Result], number: int, *, num_threads: int = 0,
    timeout_s: float = TIMEOUT_S, on_progress: Progress | None = None, on_line: LogFn | None = None,
) -> Result:
    """Train in this process, or in ranks on this machine.

    Args:
        job: what is to be trained.
        number: of ranks; 1 trains in this process.
        num_threads: of each on a CPU; 0 shares the cores of this machine.
        timeout_s: how long a rank may keep the others waiting.
        on_progress: called with (steps done, steps in all).
        on_line: called instead, about once a second, with a line of progress and losses.

    Raises:
        RankLostError: a rank died, froze or did not come; nothing is half-written.
        DamagedFolderError: an input of training is damaged.
        ChessSnnError: any that training raises.
    """
    if number == 1:
        on_step = None
        if on_line is not None:
            lines = training.StepLines(on_line, job.config.training.batch_size)
            on_progress, on_step = lines.on_progress, lines.on_step
        job.alone(
            num_threads=num_threads or num_cores(), on_progress=on_progress, on_step=on_step
        )
    elif not job.target.exists():  # or damaged: then `result` raises
        job.check()
        # A worker sees its own GPU alone, and its ranks all that training may use.
        gpus = training_gpus(job.config)
        options = {
            "--threads": str(num_threads), "--timeout-s": str(timeout_s),
            "--backend": job.config.execution.training_backend,
        }
        try:
            run_ranks(
                number, PROGRAM, [*job.arguments, *chain(*options.items())],
                on_line=on_line, on_progress=on_progress,
                environment={VISIBLE_GPUS: ",".join(gpus)} if gpus else {},
            )
        except RankLostError:
            sweep_temporaries(job.target.parent)
            raise
    return job.result()


@dataclass(frozen=True, slots=True)
class RankChoice:
    """How many ranks train on one machine."""

    number: int
    """1 trains in one process, which starts no others."""
    why: str
    """One line for people."""


def training_gpus(config: CampaignConfig) -> tuple[str, ...]:
    """Names in ``CUDA_VISIBLE_DEVICES`` of the GPUs that training may use on this machine.

    Those of the campaign where this process is a worker, else those of ``execution.gpus``.

    Raises:
        ConfigError: a GPU is asked for that does not exist.
    """
    slot = own_slot()
    if slot is not None:
        return slot.machine_gpus
    execution = config.execution
    devices = choose_devices(execution.device, execution.gpus, gpus_for(config))
    return tuple(device.token for device in devices if device.is_gpu)


def choose_ranks(config: CampaignConfig, num_gpus: int) -> RankChoice:
    """How many ranks train on a machine with ``num_gpus`` GPUs for training.

    As ``execution.training_ranks`` says. Where that is 0: one for each GPU, but no more than a step
    has micro-batches; one where there is no GPU, since threads share the micro-batches there.

    Raises:
        ConfigError: ``execution.training_backend`` is NCCL, and there is no GPU.
    """
    execution, settings = config.execution, config.training
    if execution.training_backend == "nccl" and not num_gpus:
        raise ConfigError(
            'execution.training_backend = "nccl" needs GPUs, and training has none on this '
            'machine; set it to "gloo" or "auto"'
        )
    if execution.training_ranks:
        number = execution.training_ranks
        return RankChoice(number, f"training in {counted(number, 'process')}, as set")
    if not num_gpus:
        return RankChoice(1, "training in 1 process on the CPU")
    most = settings.num_micro_batches
    if num_gpus <= most:
        return RankChoice(num_gpus, f"training in {counted(num_gpus, 'process')}, one for each GPU")
    each = max(2, settings.batch_size // num_gpus)
    return RankChoice(
        most,
        f"training in {counted(most, 'process')} on a machine of {num_gpus} GPUs, because a step "
        f"has {counted(settings.num_micro_batches, 'micro-batch')} "
        f"(training.batch_size = {settings.batch_size}, "
        f"training.micro_batch = {settings.micro_batch}); with training.micro_batch = {each} or "
        "less, set at the start, all GPUs train",
    )
