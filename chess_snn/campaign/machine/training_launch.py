"""Training in processes of its own, several at a time: a campaign's generation, or a network alone.

What ranks are to train is a :class:`RankTraining`, whatever it is; :func:`run_in_ranks` trains it
by the ranks of one machine or, called on each, of several.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeVar

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.machine.training_ranks import choose_ranks, training_gpus
from chess_snn.campaign.stages import (
    check_training_inputs,
    train_generation,
    trained_before,
    training_program,
)
from chess_snn.campaign.stages.training import TrainingValues
from chess_snn.campaign.stages.training_alone import (
    TrainedNetwork,
    begin_network,
    trained_network,
    unfinished_folder,
)
from chess_snn.campaign.stages.training_program import LEARN, PROGRESS_LINE
from chess_snn.campaign.stages.warm_start import first_facts, train_first_generation
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.receipts import TrainingFacts
from chess_snn.data import sweep_temporaries, write_json
from chess_snn.devices import VISIBLE_GPUS
from chess_snn.errors import RankLostError
from chess_snn.training import check_newest
from chess_snn.training.rank_launch import RankLayout, run_ranks
from chess_snn.training.ranks import TIMEOUT_S
from chess_snn.types import Json, LogFn, Progress

Result = TypeVar("Result")

_RUN_ID_LENGTH: Final = 16


@dataclass(frozen=True, slots=True)
class RankTraining(Generic[Result]):
    """What ranks are to train."""

    config: CampaignConfig
    target: Path
    """The checkpoint that rank 0 commits."""
    run_id: str
    """The same on all machines, and no other training's."""
    arguments: tuple[str, ...]
    """Of the training program."""
    check: Callable[[], None]
    """Raises where something that ranks read is damaged. It is called before they start, because
    an error of a rank reaches this process as text."""
    result: Callable[[], Result]
    """What was committed."""


def generation_training(
    directory: Path, iteration: int, values: TrainingValues | None = None
) -> RankTraining[TrainingFacts]:
    """Generation ``iteration + 1`` of a campaign, from the games of ``iteration`` and before.

    ``values`` are by default read from the campaign in ``directory``.
    """
    folder = CampaignFolder.open(directory)
    arguments = [str(folder.path), "--iteration", str(iteration)]
    if values is not None:
        file = folder.path / "training.json"
        write_json(file, asdict(values))
        arguments += ["--values", str(file)]
    return RankTraining(
        folder.config, folder.checkpoint(iteration + 1), f"{folder.campaign_id}-{iteration}",
        tuple(arguments),
        check=partial(check_training_inputs, folder, iteration, values),
        result=partial(trained_before, folder, iteration),
    )


def first_training(directory: Path) -> RankTraining[Json]:
    """Generation 0 of a campaign, from given games."""
    folder = CampaignFolder.open(directory)
    return RankTraining(
        folder.config, folder.checkpoint(0), f"{folder.campaign_id}-first",
        (str(folder.path), LEARN),
        check=partial(check_newest, folder.supervised),
        result=partial(first_facts, folder),
    )


def network_training(config: CampaignConfig, out: Path) -> RankTraining[TrainedNetwork]:
    """A network without a campaign; see :func:`training_alone.train_network`."""
    text = json.dumps([out.name, config.supervised.digest, config.campaign.seed])
    return RankTraining(
        config, out, hashlib.sha256(text.encode()).hexdigest()[:_RUN_ID_LENGTH],
        (str(out.absolute()), LEARN),
        check=partial(check_newest, unfinished_folder(out)),
        result=partial(trained_network, out),
    )


def train_as_configured(
    directory: Path, iteration: int, values: TrainingValues | None = None, *,
    num_threads: int = 1, on_progress: Progress | None = None,
) -> TrainingFacts:
    """Train generation ``iteration + 1`` in this process, or by as many ranks as is right here.

    See :func:`chess_snn.campaign.stages.train_generation` and :func:`choose_ranks`.

    Raises:
        RankLostError: a rank died or froze; nothing is half-written, and it may be tried again.
    """
    return _train_here(
        generation_training(directory, iteration, values),
        partial(train_generation, directory, iteration, values), num_threads, on_progress,
    )


def train_first_as_configured(
    directory: Path, *, num_threads: int = 1, on_progress: Progress | None = None
) -> Json:
    """The same for generation 0 and :func:`warm_start.train_first_generation`."""
    return _train_here(
        first_training(directory), partial(train_first_generation, directory), num_threads,
        on_progress,
    )


def train_in_ranks(
    directory: Path, iteration: int, layout: RankLayout, *, num_threads: int = 0,
    timeout_s: float = TIMEOUT_S, on_progress: Progress | None = None,
) -> TrainingFacts:
    """Train generation ``iteration + 1`` by ranks; see :func:`run_in_ranks`."""
    return run_in_ranks(
        generation_training(directory, iteration), layout, num_threads=num_threads,
        timeout_s=timeout_s, on_progress=on_progress,
    )


def train_network_in_ranks(
    config: CampaignConfig, out: Path, layout: RankLayout, *, num_threads: int = 0,
    timeout_s: float = TIMEOUT_S, on_line: LogFn | None = None,
) -> TrainedNetwork:
    """Train a network on given games by ranks, or go on with that; see :func:`run_in_ranks`.

    Raises:
        UsageError: as of :func:`training_alone.begin_network`.
    """
    before = begin_network(config, out, is_first=layout.node_rank == 0)
    if before is not None:
        return before
    return run_in_ranks(
        network_training(config, out), layout, num_threads=num_threads, timeout_s=timeout_s,
        on_line=on_line,
    )


def run_in_ranks(
    training: RankTraining[Result], layout: RankLayout, *, num_threads: int = 0,
    timeout_s: float = TIMEOUT_S, on_progress: Progress | None = None,
    on_line: LogFn | None = None,
) -> Result:
    """Train by ranks, of which this machine starts its own.

    Args:
        training: the same on all machines; they see the same folder.
        layout: how many ranks, and where.
        num_threads: of each on a CPU; 0 shares the cores of a machine.
        timeout_s: how long a rank may keep the others waiting.
        on_progress: called with (steps done, steps in all) where rank 0 is.
        on_line: called with each line that rank 0 prints: its progress and losses.

    Raises:
        RankLostError: a rank died, froze or did not come; nothing is half-written.
        DamagedFolderError: something that training reads is damaged.
        ChessSnnError: any that training raises.
    """
    if not training.target.exists():  # whole, or its manifest damaged: then this raises below
        training.check()
        _run(training, layout, num_threads, timeout_s, _hear(on_progress, on_line))
    return training.result()


def train_share(
    training: RankTraining[Result], wait_for_layout: Callable[[], RankLayout], *,
    num_threads: int, is_wanted: Callable[[], bool], on_progress: Progress | None = None,
) -> Result | None:
    """Train with other machines, whose folders may be copies.

    Args:
        training: the same on all machines.
        wait_for_layout: called once all that training reads is found whole; this machine's place.
        num_threads: of the whole machine, which its ranks share.
        is_wanted: where it says no, the ranks are ended.
        on_progress: called with (steps done, steps in all) where rank 0 is.

    Returns:
        None where the target is not in this folder, since rank 0 was elsewhere.

    Raises:
        RankLostError, DamagedFolderError, ChessSnnError: as :func:`run_in_ranks`.
    """
    if not training.target.exists():
        training.check()
        layout = wait_for_layout()
        _run(
            training, layout, max(1, num_threads // layout.per_node), TIMEOUT_S,
            _hear(on_progress), is_wanted,
        )
    return training.result() if training.target.exists() else None


def _train_here(
    training: RankTraining[Result], alone: Callable[..., Result], num_threads: int,
    on_progress: Progress | None,
) -> Result:
    number = choose_ranks(training.config, len(training_gpus(training.config))).number
    if number == 1:
        return alone(num_threads=num_threads, on_progress=on_progress)
    return run_in_ranks(
        training, RankLayout(number), num_threads=max(1, num_threads // number),
        on_progress=on_progress,
    )


def _run(
    training: RankTraining[Result], layout: RankLayout, num_threads: int, timeout_s: float,
    on_line: LogFn, is_wanted: Callable[[], bool] | None = None,
) -> None:
    try:
        run_ranks(
            layout, training.run_id, training_program.__name__,
            [
                *training.arguments, "--threads", str(num_threads), "--timeout-s", str(timeout_s),
                "--backend", training.config.execution.training_backend,
            ],
            on_line=on_line, is_wanted=is_wanted, environment=_visible(training.config),
        )
    except RankLostError:
        sweep_temporaries(training.target.parent)
        raise


def _visible(config: CampaignConfig) -> Mapping[str, str]:
    """Have ranks see all GPUs that training may use, of which a worker itself sees its own."""
    gpus = training_gpus(config)
    return {VISIBLE_GPUS: ",".join(gpus)} if gpus else {}


def _hear(on_progress: Progress | None, on_line: LogFn | None = None) -> LogFn:
    def hear(line: str) -> None:
        if on_line is not None:
            on_line(line)
        if on_progress is not None and (steps := PROGRESS_LINE.fullmatch(line)) is not None:
            on_progress(int(steps[1]), int(steps[2]))

    return hear
