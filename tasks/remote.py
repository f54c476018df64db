"""Work of Dask workers: the campaign's stages, with their progress sent as Dask events.

Workers import this module and the library; they need neither Prefect nor MLflow. They compute with
the threads of their slots; training takes all cores of its machine. A result comes back with the
worker and the device; an error becomes one line that names the work and the fix.
"""

import errno
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import torch
from distributed import KilledWorker, get_worker

from chess_snn.campaign import CampaignFolder, stages
from chess_snn.campaign.machine import training_launch
from chess_snn.campaign.machine.slots import own_slot
from chess_snn.campaign.machine.training_launch import RankTraining
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.campaign.store.match_facts import ConversionFacts, LadderTestFacts
from chess_snn.campaign.store.receipt_parts import ShardFacts, TrainingFacts
from chess_snn.campaign.strength import ladder_tests, matches, reports
from chess_snn.campaign.strength.match_schedule import ScheduledMatch, is_final, is_gating_match
from chess_snn.campaign.viewing import events
from chess_snn.cores import num_cores, unbound
from chess_snn.errors import ChessSnnError, MemoryExhaustedError, WorkersLostError
from chess_snn.tasks.cluster.identity import own_device
from chess_snn.types import Json, Progress

_Result = TypeVar("_Result")

PROGRESS_TOPIC: Final = "progress"
"""Dask topic of the events that :class:`chess_snn.tasks.progress.ProgressBoard` reads."""

_EVENT_PERIOD_S = 0.5
_REPLACED_AFTER_S: Final = 1.0
"""Time after which the campaign knows of the error."""

BEGUN_TOPIC: Final = "begun"
"""Dask topic of the keys of calls that a worker has begun."""

Call = Sequence[Any]
"""``(function, *arguments)``; the first argument of a stage is the campaign folder."""

_ALLOCATION_FAILED: Final = ("can't allocate memory", "not enough memory", "bad_alloc")
"""Messages of torch on a CPU, where its error is any RuntimeError."""

_HINT: Final = (
    "free some, or go on with fewer workers (execution.workers in campaign.toml) by "
    "`chess-snn campaign resume`"
)


@dataclass(frozen=True, slots=True)
class Done(Generic[_Result]):
    """The result of a call, and where it ran."""

    result: _Result
    worker: str
    """The worker's name."""
    device: str
    """Name by :func:`.cluster.identity.own_device`; empty if the worker has no place."""
    seconds: float
    """Time that the worker spent on it."""


def attempt(function: Callable[..., Any], *arguments: Any) -> Done[Any]:
    """Call ``function(*arguments)`` on this worker; an error of it carries the device.

    After an error of the GPU itself a process can use it no more: the worker is replaced.
    """
    began, worker = time.monotonic(), get_worker()
    worker.log_event(BEGUN_TOPIC, worker.get_current_task())
    try:
        result = function(*arguments)
    except Exception as error:
        error.failed_on = own_device()  # type: ignore[attr-defined]  # goes along when pickled
        if isinstance(error, torch.AcceleratorError):
            worker.loop.add_callback(
                worker.loop.call_later, _REPLACED_AFTER_S, worker.close_gracefully, restart=True
            )
        raise
    return Done(result, str(worker.name), own_device(), time.monotonic() - began)


def device_of(error: BaseException) -> str:
    """The device on which :func:`attempt` met ``error``; empty where that is not known."""
    return str(getattr(error, "failed_on", ""))


def plain_error(error: Exception, call: Call) -> ChessSnnError | None:
    """An error that explains ``error`` of ``call`` to people; None where it is not known here."""
    if isinstance(error, KilledWorker):
        return WorkersLostError(
            f"{error.allowed_failures + 1} workers died one after another that had {_name(call)} "
            "to do; the lines above say how. Everything committed is safe; where memory ran out, "
            f"{_HINT}"
        )
    is_on_device = isinstance(error, torch.OutOfMemoryError)
    if is_on_device or isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(sign in str(error) for sign in _ALLOCATION_FAILED)
    ):
        reason = str(error).partition("\n")[0] or type(error).__name__
        return MemoryExhaustedError(
            f"the {'device' if is_on_device else 'worker'}'s memory ran out in {_name(call)} "
            f"({reason}); {_HINT}"
        )
    return None


def _name(call: Call) -> str:
    """``play_shard(3, 0)``: the function and the numbers it was given."""
    function, *arguments = call
    numbers = ", ".join(str(argument) for argument in arguments if isinstance(argument, int))
    return f"{function.__name__}({numbers})"


def play_shard(directory: str, iteration: int, shard: int) -> ShardFacts:
    """See :func:`chess_snn.campaign.stages.play_shard`."""
    return stages.play_shard(
        _seen(directory), iteration, shard, num_threads=_own_threads(),
        on_progress=_progress_events(iteration, events.SELF_PLAY, f"shard {shard}"),
    )


def train_generation(directory: str, iteration: int) -> TrainingFacts:
    """Train generation ``iteration + 1`` on all cores or GPUs of this machine."""
    return _train(
        training_launch.generation_training(_seen(directory), iteration),
        _progress_events(iteration, events.TRAINING, "steps"),
    )


def train_first_generation(directory: str) -> Json:
    """Train generation 0 from a dataset, else as :func:`train_generation`."""
    return _train(
        training_launch.first_training(_seen(directory)),
        _progress_events(0, events.SUPERVISED_TRAINING, "steps"),
    )


def play_match_part(
    directory: str, iteration: int, match: ScheduledMatch, part: int
) -> None:
    """See :func:`chess_snn.campaign.strength.matches.play_match_part`."""
    stage = events.GATING_MATCH if is_gating_match(match.name) else events.EVALUATION
    if is_final(match.event):
        stage = events.FINAL_MATCHES
    matches.play_match_part(
        _seen(directory), match, part, num_threads=_own_threads(),
        on_progress=_progress_events(iteration, stage, f"{match.name} {part}"),
    )


def play_conversion(directory: str, generation: int) -> ConversionFacts:
    """See :func:`chess_snn.campaign.strength.reports.play_conversion`."""
    return reports.play_conversion(
        _seen(directory), generation, num_threads=_own_threads(),
        on_progress=_progress_events(generation - 1, events.EVALUATION, "conversion"),
    )


def play_ladder_test(directory: str, generation: int) -> LadderTestFacts:
    """See :func:`chess_snn.campaign.strength.ladder_tests.play_ladder_test`."""
    return ladder_tests.play_ladder_test(
        _seen(directory), generation, num_threads=_own_threads(),
        on_progress=_progress_events(generation - 1, events.EVALUATION, "ladder test"),
    )


def _train(training: RankTraining[_Result], on_progress: Progress) -> _Result:
    with unbound():
        return training_launch.train_here(training, num_cores(), on_progress)


def folder_fault(directory: str, campaign_id: str) -> str:
    """Say why this machine cannot use the campaign folder in ``directory``; empty if it can."""
    try:
        found = CampaignFolder.open(Path(directory)).campaign_id
    except ChessSnnError:
        found = ""
    if found == campaign_id:
        return ""
    there = "another campaign is there" if found else "nothing is there"
    return (
        f"{socket.gethostname()} does not see the campaign in {directory}: {there}; share the "
        "folder with it under the same path, by NFS or sshfs (docs/cluster.md)"
    )


def _seen(directory: str) -> Path:
    """The campaign folder, which this machine saw when its worker came.

    Raises:
        FileNotFoundError: it does not any more; another one may.
    """
    path = Path(directory)
    if not (path / CONFIG_FILE).exists():
        raise FileNotFoundError(
            errno.ENOENT, f"{socket.gethostname()} does not see the campaign", directory
        )
    return path


def _own_threads() -> int:
    """Those of this worker's slot."""
    slot = own_slot()
    return slot.num_threads if slot is not None else num_cores()


def _progress_events(iteration: int, stage: str, part: str) -> Progress:
    """A callback that sends (done, total) of ``part``, at most twice a second and at the end.

    Its ``sender`` is the worker's name; Dask puts an address of its own under ``worker``.
    """
    worker, last_sent = get_worker(), time.monotonic()

    def send(done: int, total: int) -> None:
        nonlocal last_sent
        now = time.monotonic()
        if now - last_sent < _EVENT_PERIOD_S and done < total:
            return
        last_sent = now
        worker.log_event(PROGRESS_TOPIC, {
            "iteration": iteration, "stage": stage, "part": part, "done": done, "total": total,
            "sender": worker.name,
        })

    return send
