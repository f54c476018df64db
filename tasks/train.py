"""The training task: one generation."""

from prefect import task

from chess_snn.campaign.receipts import TrainingFacts
from tasks import remote
from tasks.compute import TRAINER, run_on_device


@task(name="train", task_run_name="train-{iteration}")
def train(directory: str, iteration: int, num_threads: int) -> TrainingFacts:
    """Train on the replay window of ``iteration`` and commit the next generation."""
    return run_on_device(
        remote.train_generation, directory, iteration, num_threads, device=TRAINER
    )
