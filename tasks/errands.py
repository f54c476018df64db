"""Stages on workers that do not see the campaign folder: what they need and make travels.

An errand is a stage on its way to any worker. That worker fetches what its replica of the campaign
lacks (:mod:`tasks.file_relay`), runs the stage there, and returns what it left; the campaign's
process commits that. Whoever dies on the way, nothing was committed, and Dask sends it again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from distributed import get_worker

from chess_snn.campaign import CampaignFolder, stages
from chess_snn.campaign.copies import needs
from chess_snn.campaign.copies.needs import StageNeeds
from chess_snn.campaign.copies.replica import Fetch, Outcome, Replica, take_in
from chess_snn.campaign.strength.climbing import play_climb
from chess_snn.campaign.strength.conversions import play_conversion
from chess_snn.campaign.strength.matches import ScheduledMatch
from chess_snn.data import is_committed
from chess_snn.errors import DamagedFolderError
from tasks import remote
from tasks.cluster.attempts import Call
from tasks.file_relay import fetch_through


@dataclass(frozen=True, slots=True)
class Errand:
    """A stage to be run anywhere."""

    campaign_id: str
    directory: str
    """The campaign folder, which the worker need not see."""
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    """Without the folder, which comes first."""
    needs: StageNeeds
    files: Mapping[str, bytes]
    """Those single files that it needs, by path."""
    cache_bytes: int
    """What the worker may keep for later ones."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What an errand brings back."""

    result: Any
    outcome: Outcome


def sent(call: Call) -> Call:
    """``call`` as workers are to be asked for it: as an errand where it is one.

    It is what the stage needs now: a call that is made again is sent anew.
    """
    function, *rest = call
    if function not in _NEEDS:
        return call
    directory, *arguments = rest
    folder = CampaignFolder.open(Path(directory))
    if folder.config.cluster.shared_storage:
        return call
    try:
        wanted = _NEEDS[function](folder, *arguments)
    except DamagedFolderError as error:
        return (stumble, error)
    if is_committed(folder.path / wanted.leaves[-1]):
        return (known, _RECALL[function](folder.path, *arguments))
    return (run_errand, Errand(
        campaign_id=folder.campaign_id,
        directory=directory,
        function=function,
        arguments=tuple(arguments),
        needs=wanted,
        files={name: (folder.path / name).read_bytes() for name in wanted.files},
        cache_bytes=folder.config.storage.worker_cache_mib << 20,
    ))


def received(call: Call, result: Any) -> Any:
    """What ``call`` returned; what an errand has brought is committed to the campaign first."""
    if not isinstance(result, Delivery):
        return result
    take_in(CampaignFolder.open(Path(call[1])), result.outcome)
    return result.result


def run_errand(errand: Errand) -> Delivery:
    """Run a stage on this worker, whose disk need not be the campaign's.

    Raises:
        DamagedFolderError: what the campaign sent is damaged; it names the folder there.
    """
    worker = get_worker()
    replica = _replica_of(worker.local_directory, errand.campaign_id, errand.cache_bytes)
    try:
        return _run(errand, replica, fetch_through(worker, errand.campaign_id))
    except DamagedFolderError as error:
        if error.folder is None or not error.folder.is_relative_to(replica.path):
            raise
        name = error.folder.relative_to(replica.path).as_posix()
        replica.discard([name])  # should it be this disk that rots
        raise DamagedFolderError(str(error), Path(errand.directory) / name) from error


def _run(errand: Errand, replica: Replica, fetch: Fetch) -> Delivery:
    try:
        replica.bring(errand.needs.folders, errand.files, fetch)
        replica.discard(errand.needs.leaves)  # of one that failed
        result = errand.function(str(replica.path), *errand.arguments)
        return Delivery(result, replica.collect(_left_here(errand, result)))
    finally:
        replica.discard(errand.needs.leaves)


def _left_here(errand: Errand, result: Any) -> tuple[str, ...]:
    """What of the stage is in this replica: of a share of it that returns None, nothing."""
    is_elsewhere = errand.function is remote.train_share and result is None
    return () if is_elsewhere else errand.needs.leaves


def known(result: Any) -> Any:
    """What was found already; on a worker, so that all calls go the same way."""
    return result


def stumble(error: DamagedFolderError) -> None:
    """Raise what was damaged already when a call was sent; as :func:`known`."""
    raise error


def workers_see(directory: str) -> bool:
    """Whether workers see the campaign folder themselves, as its settings say."""
    return CampaignFolder.open(Path(directory)).config.cluster.shared_storage


@cache
def _replica_of(directory: str, campaign_id: str, limit_bytes: int) -> Replica:
    return Replica(Path(directory) / "campaigns" / campaign_id, limit_bytes)


def _shard_needs(folder: CampaignFolder, iteration: int, shard: int, _: int) -> StageNeeds:
    return needs.shard_needs(folder, iteration, shard)


def _training_needs(folder: CampaignFolder, iteration: int, *_: Any) -> StageNeeds:
    return needs.training_needs(folder, iteration)


def _match_needs(
    folder: CampaignFolder, _: int, match: ScheduledMatch, part: int, __: int
) -> StageNeeds:
    return needs.match_needs(folder, match, part)


def _conversion_needs(folder: CampaignFolder, generation: int, _: int) -> StageNeeds:
    return needs.conversion_needs(folder, generation)


def _climb_needs(folder: CampaignFolder, generation: int, _: int) -> StageNeeds:
    return needs.climb_needs(folder, generation)


_NEEDS: Final[Mapping[Callable[..., Any], Callable[..., StageNeeds]]] = {
    remote.play_shard: _shard_needs,
    remote.train_generation: _training_needs,
    remote.train_share: _training_needs,
    remote.play_match_part: _match_needs,
    remote.play_conversion: _conversion_needs,
    remote.play_climb: _climb_needs,
}
"""Called with the folder, and then as the function is after its directory."""

_RECALL: Final[Mapping[Callable[..., Any], Callable[..., Any]]] = {
    remote.play_shard: lambda path, iteration, shard, _: stages.play_shard(path, iteration, shard),
    remote.train_generation: lambda path, iteration, _: stages.train_generation(path, iteration),
    remote.train_share: lambda path, iteration, *_: stages.train_generation(path, iteration),
    remote.play_match_part: lambda *_: None,
    remote.play_conversion: lambda path, generation, _: play_conversion(path, generation),
    remote.play_climb: lambda path, generation, _: play_climb(path, generation),
}
"""Stages that find their outcome return at once."""
