"""Stages on workers that do not see the campaign folder: their inputs and outputs are sent.

A remote job is a stage on its way to a worker. That worker fetches the inputs that its cache lacks
(:mod:`tasks.file_relay`), runs the stage there, and returns the outputs; the campaign's process
commits them. If a process dies on the way, nothing was committed, and Dask sends the job again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from distributed import get_worker

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.artifacts import table
from chess_snn.campaign.artifacts.artifact import Artifact
from chess_snn.campaign.worker_cache import Fetch, Job, Outcome, WorkerCache, job_of, take_in
from chess_snn.data import is_committed
from chess_snn.errors import DamagedFolderError
from tasks import remote
from tasks.cluster.attempts import Call
from tasks.file_relay import fetch_through


@dataclass(frozen=True, slots=True)
class RemoteJob:
    """A stage to be run anywhere."""

    campaign_id: str
    directory: str
    """The campaign folder, which the worker need not see."""
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    """Without the folder, which comes first."""
    job: Job
    files: Mapping[str, bytes]
    """Content of the single files that it reads, by path."""
    cache_bytes: int
    """What the worker may keep for later ones."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """What a remote job returns."""

    result: Any
    outcome: Outcome


def sent(call: Call) -> Call:
    """``call`` as workers are to be asked for it: as a remote job if workers do not see the folder.

    A call that is repeated is sent anew, with the inputs as they are then.
    """
    function, *rest = call
    if function not in _MAKES:
        return call
    directory, *arguments = rest
    folder = CampaignFolder.open(Path(directory))
    if folder.config.cluster.shared_storage:
        return call
    artifact, arguments_of = _MAKES[function]
    made = arguments_of(*arguments)
    try:
        job = job_of(folder, artifact, *made)
    except DamagedFolderError as error:
        return (fail, error)
    if is_committed(folder.path / job.outputs[-1]):
        assert artifact.make is not None
        return (known, artifact.make(folder.path, *made))  # which finds it and returns at once
    return (run_job, RemoteJob(
        campaign_id=folder.campaign_id,
        directory=directory,
        function=function,
        arguments=tuple(arguments),
        job=job,
        files={name: (folder.path / name).read_bytes() for name in job.files},
        cache_bytes=folder.config.storage.worker_cache_mib << 20,
    ))


def received(call: Call, result: Any) -> Any:
    """What ``call`` returned; the outputs of a remote job are committed first."""
    if not isinstance(result, JobResult):
        return result
    take_in(CampaignFolder.open(Path(call[1])), result.outcome)
    return result.result


def run_job(remote_job: RemoteJob) -> JobResult:
    """Run a stage on this worker, whose disk need not be the campaign's.

    Raises:
        DamagedFolderError: what the campaign sent is damaged; it names the folder there.
    """
    worker = get_worker()
    cache = _cache_of(worker.local_directory, remote_job.campaign_id, remote_job.cache_bytes)
    try:
        return _run(remote_job, cache, fetch_through(worker, remote_job.campaign_id))
    except DamagedFolderError as error:
        if error.folder is None or not error.folder.is_relative_to(cache.path):
            raise
        name = error.folder.relative_to(cache.path).as_posix()
        cache.discard([name])  # should it be this disk that rots
        raise DamagedFolderError(str(error), Path(remote_job.directory) / name) from error


def _run(remote_job: RemoteJob, cache: WorkerCache, fetch: Fetch) -> JobResult:
    try:
        cache.load(remote_job.job.folders, remote_job.files, fetch)
        cache.discard(remote_job.job.outputs)  # of one that failed
        result = remote_job.function(str(cache.path), *remote_job.arguments)
        return JobResult(result, cache.collect(_left_here(remote_job, result)))
    finally:
        cache.discard(remote_job.job.outputs)


def _left_here(remote_job: RemoteJob, result: Any) -> tuple[str, ...]:
    """Outputs in this cache: none if this is a share of the training that returns None."""
    is_elsewhere = remote_job.function is remote.train_share and result is None
    return () if is_elsewhere else remote_job.job.outputs


def known(result: Any) -> Any:
    """Return what was found already; on a worker, so that all calls go the same way."""
    return result


def fail(error: DamagedFolderError) -> None:
    """Raise what was already corrupt when a call was sent; on a worker, as :func:`known`."""
    raise error


def workers_see(directory: str) -> bool:
    """Whether workers see the campaign folder themselves, as its settings say."""
    return CampaignFolder.open(Path(directory)).config.cluster.shared_storage


@cache
def _cache_of(directory: str, campaign_id: str, limit_bytes: int) -> WorkerCache:
    return WorkerCache(Path(directory) / "campaigns" / campaign_id, limit_bytes)


_MAKES: Final[Mapping[Callable[..., Any], tuple[Artifact, Callable[..., tuple[Any, ...]]]]] = {
    remote.play_shard: (table.SHARD, lambda iteration, shard, _: (iteration, shard)),
    remote.train_generation: (table.CHECKPOINT, lambda iteration, *_: (iteration + 1,)),
    remote.train_share: (table.CHECKPOINT, lambda iteration, *_: (iteration + 1,)),
    remote.play_match_part: (table.MATCH_PART, lambda _, match, part, __: (match, part)),
    remote.play_conversion: (table.CONVERSION_REPORT, lambda generation, _: (generation,)),
    remote.play_climb: (table.CLIMB_REPORT, lambda generation, _: (generation,)),
}
"""The artifact that each function makes, and the artifact's arguments from the function's, without
the directory."""
