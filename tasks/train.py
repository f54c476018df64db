"""The training tasks: one generation, and the first one where games are given."""

from prefect import task

from chess_snn.campaign.receipts import TrainingFacts
from chess_snn.types import Json
from tasks import remote
from tasks.compute import TRAINER, run_on_device


@task(name="train", task_run_name="train-{iteration}")
def train(directory: str, iteration: int, num_threads: int) -> TrainingFacts:
    """Train on the replay window of ``iteration`` and commit the next generation."""
    return run_on_device(
        remote.train_generation, directory, iteration, num_threads, device=TRAINER
    )


@task(name="train_supervised", task_run_name="train_supervised")
def train_supervised(directory: str, num_threads: int) -> Json:
    """Train generation 0 on given games and commit it."""
    return run_on_device(
        remote.train_first_generation, directory, num_threads, device=TRAINER
    )
