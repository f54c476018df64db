"""What Dask workers run: the campaign's stages, with their progress sent as Dask events.

Workers import this module and the library; they need neither Prefect nor MLflow. As ``num_threads``
0 takes what the worker's place has; training takes all cores of its machine.
"""

import errno
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from distributed import get_worker

from chess_snn.campaign import stages
from chess_snn.campaign.machine import training_launch
from chess_snn.campaign.machine.places import own_place
from chess_snn.campaign.machine.training_launch import RankTraining
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.campaign.store.receipts import ShardFacts, TrainingFacts
from chess_snn.campaign.strength import climbing, matches, reports
from chess_snn.campaign.strength.matches import ScheduledMatch, is_final, is_gate
from chess_snn.campaign.viewing.events import (
    EVALUATION,
    FINAL_MATCHES,
    GATING_MATCH,
    SELF_PLAY,
    SUPERVISED_TRAINING,
    TRAINING,
)
from chess_snn.cores import num_cores, unbound
from chess_snn.training.rank_launch import RankLayout
from chess_snn.types import Json, Progress

PROGRESS_TOPIC: Final = "progress"
"""Dask topic of the events that :class:`tasks.progress.ProgressBoard` reads."""

_EVENT_PERIOD_S = 0.5
_MACHINES_TIMEOUT_S: Final = 1800.0
"""How long machines wait for one that still plays a match; one that is lost is noticed sooner."""


def play_shard(directory: str, iteration: int, shard: int, num_threads: int) -> ShardFacts:
    """See :func:`chess_snn.campaign.stages.play_shard`."""
    return stages.play_shard(
        _seen(directory), iteration, shard, num_threads=num_threads or _own_threads(),
        on_progress=_progress_events(iteration, SELF_PLAY, f"shard {shard}"),
    )


def train_generation(directory: str, iteration: int, num_threads: int) -> TrainingFacts:
    """See :func:`chess_snn.campaign.machine.training_launch.train_as_configured`."""
    with unbound():
        return training_launch.train_as_configured(
            _seen(directory), iteration, num_threads=num_threads or num_cores(),
            on_progress=_progress_events(iteration, TRAINING, "steps"),
        )


def train_share(
    directory: str, iteration: int, num_threads: int, layout: RankLayout
) -> TrainingFacts | None:
    """Train a generation with the ranks of other machines; None if rank 0 is on another one."""
    return _train_share(
        training_launch.generation_training(_seen(directory), iteration), num_threads, layout,
        _progress_events(iteration, TRAINING, "steps"),
    )


def train_first_generation(directory: str, num_threads: int) -> Json:
    """See :func:`chess_snn.campaign.machine.training_launch.train_first_as_configured`."""
    with unbound():
        return training_launch.train_first_as_configured(
            _seen(directory), num_threads=num_threads or num_cores(),
            on_progress=_progress_events(0, SUPERVISED_TRAINING, "steps"),
        )


def train_first_share(directory: str, num_threads: int, layout: RankLayout) -> Json | None:
    """As :func:`train_share`, of generation 0 from given games."""
    return _train_share(
        training_launch.first_training(_seen(directory)), num_threads, layout,
        _progress_events(0, SUPERVISED_TRAINING, "steps"),
    )


def play_match_part(
    directory: str, iteration: int, match: ScheduledMatch, part: int, num_threads: int
) -> None:
    """See :func:`chess_snn.campaign.strength.matches.play_match_part`."""
    stage = GATING_MATCH if is_gate(match.name) else EVALUATION
    if is_final(match.event):
        stage = FINAL_MATCHES
    matches.play_match_part(
        _seen(directory), match, part, num_threads=num_threads or _own_threads(),
        on_progress=_progress_events(iteration, stage, f"{match.name} {part}"),
    )


def play_conversion(directory: str, generation: int, num_threads: int) -> Json:
    """See :func:`chess_snn.campaign.strength.reports.play_conversion`."""
    return reports.play_conversion(
        _seen(directory), generation, num_threads=num_threads or _own_threads(),
        on_progress=_progress_events(generation - 1, EVALUATION, "conversion"),
    )


def play_climb(directory: str, generation: int, num_threads: int) -> Json:
    """See :func:`chess_snn.campaign.strength.climbing.play_climb`."""
    return climbing.play_climb(
        _seen(directory), generation, num_threads=num_threads or _own_threads(),
        on_progress=_progress_events(generation - 1, EVALUATION, "climb"),
    )


def _train_share(
    training: RankTraining[Any], num_threads: int, layout: RankLayout, on_progress: Progress
) -> Any:
    worker = get_worker()
    key = worker.get_current_task()

    def is_wanted() -> bool:
        """Whether the call was cancelled: Dask cannot end one that runs."""
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled"

    if layout.first:
        training = replace(training, result=lambda: None)
    with unbound():
        return training_launch.run_training(
            training, layout, on_progress=on_progress, is_wanted=is_wanted,
            timeout_s=_MACHINES_TIMEOUT_S,
            num_threads=max(1, (num_threads or num_cores()) // layout.number),
        )


def _seen(directory: str) -> Path:
    """The campaign folder, where this machine sees it.

    Raises:
        FileNotFoundError: it does not; another one may.
    """
    path = Path(directory)
    if not (path / CONFIG_FILE).exists():
        raise FileNotFoundError(
            errno.ENOENT, f"{socket.gethostname()} does not see the campaign", directory
        )
    return path


def _own_threads() -> int:
    """Those that this worker's place has."""
    place = own_place()
    return place.num_threads if place is not None else num_cores()


def _progress_events(iteration: int, stage: str, part: str) -> Progress:
    worker = get_worker()
    return progress_events(worker.log_event, worker.name, iteration, stage, part)


def progress_events(
    log_event: Callable[[str, Json], object], worker: str, iteration: int, stage: str, part: str
) -> Progress:
    """A callback that sends (done, total) of ``part``, at most twice a second and at the end.

    Its ``sender`` is the worker's name; Dask puts an address of its own under ``worker``.
    """
    last_sent = time.monotonic()

    def send(done: int, total: int) -> None:
        nonlocal last_sent
        now = time.monotonic()
        if now - last_sent < _EVENT_PERIOD_S and done < total:
            return
        last_sent = now
        log_event(PROGRESS_TOPIC, {
            "iteration": iteration, "stage": stage, "part": part, "done": done, "total": total,
            "sender": worker,
        })

    return send
