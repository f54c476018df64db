"""Where stages run: on workers that see the campaign folder, or on workers that do not.

The first run a call as it is. For the others it becomes a job. The campaign puts the files that the
stage reads on the scheduler's disk; the worker fetches those that it lacks, runs the stage, and
returns copies of what it left; the campaign commits them. If a process dies on the way, nothing was
committed, and Dask sends the job again. Workers and campaign each have a connection to the
scheduler, and need none to each other.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from distributed import Client, Scheduler, get_worker
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.utils import sync

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.artifacts import table
from chess_snn.campaign.artifacts.artifact import Artifact
from chess_snn.campaign.worker_cache import (
    InputFile,
    Job,
    Outputs,
    commit_outputs,
    job_folder,
    job_of,
    keep,
    read_input,
    read_kept,
    read_outputs,
    trim,
)
from chess_snn.data import is_committed
from chess_snn.errors import CampaignError, ChessSnnError, ClusterError
from tasks import remote
from tasks.remote import Call

_LACKING: Final = "campaign_files_lacking"
_PUT: Final = "campaign_files_put"
_GET: Final = "campaign_files_get"
_LEAST_BYTES: Final = 4 << 30
"""The scheduler keeps so much, or what a worker may keep if that is more."""

_sending = threading.Lock()
"""Held by the task that sends files to the scheduler."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """What a remote job returns."""

    result: Any
    outputs: Outputs


def sent(client: Client, call: Call) -> Call:
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
    made, cache_bytes = arguments_of(*arguments), folder.config.storage.worker_cache_mib << 20
    try:
        if is_committed(folder.path / artifact.at(*artifact.key_of(*made))):
            assert artifact.make is not None
            return (known, artifact.make(folder.path, *made))  # which finds it and returns at once
        job = job_of(folder, artifact, *made)
        _send_files(client, folder, job.files, cache_bytes)
    except ChessSnnError as error:
        return (known, error)
    return (run_job, folder.campaign_id, cache_bytes, job, directory, function, *arguments)


def received(call: Call, result: Any) -> Any:
    """What ``call`` returned; the outputs of a remote job are committed first."""
    if not isinstance(result, JobResult):
        return result
    commit_outputs(CampaignFolder.open(Path(call[1])), result.outputs)
    return result.result


def run_job(
    campaign_id: str, cache_bytes: int, job: Job, directory: str,
    function: Callable[..., Any], *arguments: Any,
) -> JobResult:
    """Run a stage on this worker, whose disk need not be the campaign's.

    Args:
        campaign_id: of the campaign.
        cache_bytes: what the worker may keep for later jobs.
        job: files and values that the stage reads.
        directory: the campaign folder on its own machine.
        function: the stage.
        arguments: without the folder, which comes first, and the job's values, which come last.

    Raises:
        DamagedFolderError: a file that the stage reads is damaged; names the artifact's folder in
            the campaign.
    """
    worker = get_worker()
    cache = Path(worker.local_directory, "campaigns", campaign_id)

    def fetch(file: InputFile) -> bytes:
        get = getattr(worker.scheduler, _GET)
        content: bytes | None = sync(worker.loop, get, digest=file.content.sha256)
        if content is None:  # sent again when the job is
            raise FileNotFoundError(f"the scheduler does not keep {file.path} any more")
        return content

    with job_folder(cache, Path(directory), job.files, fetch) as here:
        result = function(str(here), *arguments, *job.values)
        outputs = read_outputs(here, job.files)
    trim(cache, cache_bytes)
    return JobResult(result, outputs)


def known(outcome: Any) -> Any:
    """Return or raise what was known already; on a worker, so that all calls go the same way."""
    if isinstance(outcome, ChessSnnError):
        raise outcome
    return outcome


class FileStore(SchedulerPlugin):  # type: ignore[misc]  # distributed has no types
    """Files on the scheduler's disk, by their digests; those used longest ago go first."""

    name = "campaign-files"
    idempotent = True

    async def start(self, scheduler: Scheduler) -> None:
        """Take files from campaigns, and give them to workers."""
        self._folder = TemporaryDirectory(prefix="chess-snn-files-")
        scheduler.handlers |= {_LACKING: self.lacking, _PUT: self.put, _GET: self.get}

    async def lacking(self, digests: Sequence[str], limit_bytes: int) -> list[str]:
        """Those of ``digests`` whose files are not here; of others, keep only so many bytes."""
        found = {digest for digest in digests if self._path(digest).exists()}
        for digest in found:
            self._path(digest).touch()
        trim(Path(self._folder.name), limit_bytes, in_use=found)
        return sorted(set(digests).difference(found))

    async def put(self, digest: str, content: bytes) -> None:
        """Take a file."""
        await asyncio.to_thread(keep, self._path(digest), content)

    async def get(self, digest: str) -> bytes | None:
        """A file; None if it is not here, or damaged."""
        return await asyncio.to_thread(read_kept, self._path(digest))

    def _path(self, digest: str) -> Path:
        return Path(self._folder.name, digest)


def _send_files(
    client: Client, folder: CampaignFolder, files: Sequence[InputFile], limit_bytes: int
) -> None:
    """Put those of ``files`` on the scheduler's disk that are not there."""
    by_digest = {file.content.sha256: file for file in files}
    with _sending:  # else many tasks of one iteration would each send its network
        lacking = client.sync(
            getattr(client.scheduler, _LACKING), digests=list(by_digest),
            limit_bytes=max(limit_bytes, _LEAST_BYTES),
        )
        for digest in lacking:
            content = read_input(folder, by_digest[digest])
            client.sync(getattr(client.scheduler, _PUT), digest=digest, content=content)


def give_access(client: Client, folder: CampaignFolder, workers: Sequence[str]) -> None:
    """Let workers work on ``folder``, as ``cluster.shared_storage`` says.

    ``workers`` are the addresses of those that are there; others may come.

    Raises:
        ClusterError: they should see the folder themselves, and some do not.
    """
    if not folder.config.cluster.shared_storage:
        client.register_plugin(FileStore())
    elif folder.config.cluster.kind != "local":
        check_seen(client, folder, workers)


def check_seen(client: Client, folder: CampaignFolder, workers: Sequence[str]) -> None:
    """Return if each of ``workers`` sees ``folder``, under the same path.

    Raises:
        ClusterError: names one that does not.
    """
    answers = client.run(
        _sees, str(folder.path), folder.campaign_id, workers=list(workers), on_error="return"
    )
    for address, answer in sorted(answers.items()):
        if answer is not True:
            raise ClusterError(
                f"worker {address} does not see the campaign in {folder.path}: {answer}; put the "
                "folder where all machines have it under this path, or set cluster.shared_storage "
                "= false"
            )


def _sees(directory: str, campaign_id: str) -> bool | str:
    """Whether this process does; or why not."""
    try:
        found = CampaignFolder.open(Path(directory)).campaign_id
    except CampaignError:
        return "nothing is there"
    return True if found == campaign_id else "another campaign is there"


_MAKES: Final[Mapping[Callable[..., Any], tuple[Artifact, Callable[..., tuple[Any, ...]]]]] = {
    remote.play_shard: (table.SHARD, lambda iteration, shard: (iteration, shard)),
    remote.train_generation: (table.CHECKPOINT, lambda iteration, *_: (iteration + 1,)),
    remote.play_match_part: (table.MATCH_PART, lambda _, match, part: (match, part)),
    remote.play_conversion: (table.CONVERSION_REPORT, lambda generation: (generation,)),
    remote.play_ladder_test: (table.LADDER_TEST_REPORT, lambda generation: (generation,)),
}
"""The artifact that each function makes, and the artifact's arguments from the function's, without
the directory."""
