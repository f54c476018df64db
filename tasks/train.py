"""The training tasks: one generation, and the first one where games are given."""

import socket
from functools import partial
from pathlib import Path

from distributed import default_client
from prefect import get_run_logger, task

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.stages.warm_start import SUPERVISED, train_first_generation
from chess_snn.campaign.store.receipts import TrainingFacts
from chess_snn.cores import num_cores
from chess_snn.types import Json
from tasks import remote
from tasks.cancelling import cancelled_by_stop
from tasks.compute import TRAINER, done_on_device, mended, run_on_device, watching_crew
from tasks.errands import workers_see
from tasks.summary_lines import training_line
from tasks.train_together import SharedTraining, train_together


@task(name="train", task_run_name="train-{iteration}")
@cancelled_by_stop
def train(directory: str, iteration: int, num_threads: int) -> TrainingFacts:
    """Train on the replay window of ``iteration`` and commit the next generation."""
    folder, crew = CampaignFolder.open(Path(directory)), watching_crew()
    num_machines = folder.config.cluster.training_machines
    is_trained = folder.checkpoint(iteration + 1).exists()
    if num_machines > 1 and crew is not None and not is_trained:
        ranks_each = folder.config.execution.training_ranks
        done = train_together(
            SharedTraining(directory, iteration, num_threads, num_machines, ranks_each), crew
        )
    else:
        done = done_on_device(
            remote.train_generation, directory, iteration, num_threads, device=TRAINER
        )
    get_run_logger().info("%s", training_line(done))
    return done.result


@task(name="train_supervised", task_run_name="train_supervised")
def train_supervised(directory: str, num_threads: int) -> Json:
    """Train generation 0 on given games and commit it.

    Where workers do not see the campaign folder they do not see the games either, which may be
    many: then it is trained here, on the campaign's own machine.
    """
    if workers_see(directory):
        return run_on_device(
            remote.train_first_generation, directory, num_threads, device=TRAINER
        )
    return mended(partial(
        train_first_generation, Path(directory), num_threads=num_threads or num_cores(),
        on_progress=remote.progress_events(
            default_client().log_event, socket.gethostname(), 0, SUPERVISED, "steps"
        ),
    ))
