"""What Dask workers run: the campaign's stages, with their progress sent as Dask events.

Workers import this module and the library; they need neither Prefect nor MLflow.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from distributed import get_worker

from chess_snn.campaign import stages
from chess_snn.campaign.receipts import ShardFacts, TrainingFacts
from chess_snn.types import Json

PROGRESS_TOPIC: Final = "progress"
"""Dask topic of the events that :class:`tasks.progress.ProgressBoard` reads."""

_EVENT_PERIOD_S = 0.5


def play_shard(directory: str, iteration: int, shard: int, num_threads: int) -> ShardFacts:
    """See :func:`chess_snn.campaign.stages.play_shard`."""
    return stages.play_shard(
        Path(directory), iteration, shard, num_threads=num_threads,
        on_progress=_progress_events("self_play", f"shard {shard}"),
    )


def train_generation(directory: str, iteration: int, num_threads: int) -> TrainingFacts:
    """See :func:`chess_snn.campaign.stages.train_generation`."""
    return stages.train_generation(
        Path(directory), iteration, num_threads=num_threads,
        on_progress=_progress_events("train", "steps"),
    )


def play_evaluation_match(
    directory: str, generation: int, opponent: str, num_threads: int
) -> Json:
    """See :func:`chess_snn.campaign.stages.play_evaluation_match`."""
    return stages.play_evaluation_match(
        Path(directory), generation, opponent, num_threads=num_threads,
        on_progress=_progress_events("evaluate", opponent),
    )


def _progress_events(stage: str, part: str) -> Callable[[int, int], None]:
    """A callback that sends (done, total) of ``part``, at most twice a second and at the end."""
    worker = get_worker()
    last_sent = time.monotonic()

    def send(done: int, total: int) -> None:
        nonlocal last_sent
        now = time.monotonic()
        if now - last_sent < _EVENT_PERIOD_S and done < total:
            return
        last_sent = now
        event = {"stage": stage, "part": part, "done": done, "worker": worker.name}
        worker.log_event(PROGRESS_TOPIC, event)

    return send
