"""The training tasks: one generation, and the first one where games are given."""

import socket
import time
from functools import partial
from pathlib import Path
from typing import Any

from distributed import default_client
from prefect import get_run_logger, task

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.machine.training_launch import train_first_as_configured
from chess_snn.campaign.stages.warm_start import SUPERVISED
from chess_snn.campaign.store.receipts import TrainingFacts
from chess_snn.cores import num_cores
from chess_snn.types import Json
from tasks import remote
from tasks.cancelling import cancelled_by_stop
from tasks.cluster.attempts import Done
from tasks.compute import TRAINER, done_on_device, mended, watching_crew
from tasks.errands import workers_see
from tasks.failures import Call
from tasks.summary_lines import first_training_line, training_line
from tasks.train_together import SharedTraining, train_together


@task(name="train", task_run_name="train-{iteration}")
@cancelled_by_stop
def train(directory: str, iteration: int, num_threads: int) -> TrainingFacts:
    """Train on the replay window of ``iteration`` and commit the next generation."""
    done: Done[TrainingFacts] = _train(
        CampaignFolder.open(Path(directory)), iteration + 1,
        share=(remote.train_share, directory, iteration, num_threads),
        alone=(remote.train_generation, directory, iteration, num_threads),
    )
    get_run_logger().info("%s", training_line(done))
    return done.result


@task(name="train_supervised", task_run_name="train_supervised")
def train_supervised(directory: str, num_threads: int) -> Json:
    """Train generation 0 on given games and commit it."""
    done = train_first(directory, num_threads)
    get_run_logger().info("%s", first_training_line(done))
    return done.result


def train_first(directory: str, num_threads: int) -> Done[Json]:
    """The same outside a task.

    Where workers do not see the campaign folder they do not see the games either, which may be
    many: then it is trained here, on the campaign's own machine.
    """
    if workers_see(directory):
        return _train(
            CampaignFolder.open(Path(directory)), 0,
            share=(remote.train_first_share, directory, num_threads),
            alone=(remote.train_first_generation, directory, num_threads),
        )
    began, machine = time.monotonic(), socket.gethostname()
    facts = mended(partial(
        train_first_as_configured, Path(directory), num_threads=num_threads or num_cores(),
        on_progress=remote.progress_events(
            default_client().log_event, machine, 0, SUPERVISED, "steps"
        ),
    ))
    return Done(facts, machine, "", time.monotonic() - began)


def _train(folder: CampaignFolder, generation: int, share: Call, alone: Call) -> Done[Any]:
    """On the machines that ``cluster.training_machines`` asks for, or on one worker's machine."""
    crew, is_trained = watching_crew(), folder.checkpoint(generation).exists()
    if folder.config.cluster.training_machines > 1 and crew is not None and not is_trained:
        return train_together(SharedTraining(folder.config, generation, share, alone), crew)
    done: Done[Any] = done_on_device(*alone, device=TRAINER)
    return done
