"""Stages on workers that do not see the campaign folder: what they need and make travels.

An errand is a stage on its way to any worker. That worker fetches what its replica of the campaign
lacks (:mod:`tasks.file_relay`), runs the stage there, and returns what it left; the campaign's
process commits that. Whoever dies on the way, nothing was committed, and Dask sends it again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from distributed import get_worker

from chess_snn.campaign import CampaignFolder, needs, stages
from chess_snn.campaign.climbing import play_climb
from chess_snn.campaign.matches import ScheduledMatch, play_conversion
from chess_snn.campaign.needs import StageNeeds
from chess_snn.campaign.replica import Outcome, Replica, take_in
from chess_snn.data import is_committed
from tasks import remote
from tasks.file_relay import fetch_through

Call = Sequence[Any]
"""``(function, *arguments)``; of stages of :mod:`tasks.remote` the first is the campaign folder."""


@dataclass(frozen=True, slots=True)
class Errand:
    """A stage to be run anywhere."""

    campaign_id: str
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


def errand_of(call: Call) -> Errand:
    """``call`` as an errand."""
    function, directory, *arguments = call
    folder = CampaignFolder.open(Path(directory))
    wanted = _NEEDS[function](folder, *arguments)
    return Errand(
        campaign_id=folder.campaign_id,
        function=function,
        arguments=tuple(arguments),
        needs=wanted,
        files={name: (folder.path / name).read_bytes() for name in wanted.files},
        cache_bytes=folder.config.storage.worker_cache_mib << 20,
    )


def run_errand(errand: Errand) -> Delivery:
    """Run a stage on this worker, whose disk need not be the campaign's."""
    worker = get_worker()
    replica = _replica_of(worker.local_directory, errand.campaign_id, errand.cache_bytes)
    replica.bring(
        errand.needs.folders, errand.files, fetch_through(worker, errand.campaign_id)
    )
    replica.discard(errand.needs.leaves)  # of one that failed
    try:
        result = errand.function(str(replica.path), *errand.arguments)
        return Delivery(result, replica.collect(errand.needs.leaves))
    finally:
        replica.discard(errand.needs.leaves)


def receive(directory: str, delivery: Delivery) -> Any:
    """Commit what an errand made, and return what the stage returned."""
    take_in(CampaignFolder.open(Path(directory)), delivery.outcome)
    return delivery.result


def is_done(errand: Errand, directory: str) -> bool:
    """Whether the campaign folder has what ``errand`` would make."""
    last = Path(directory) / errand.needs.leaves[-1]
    return is_committed(last) or last.is_file()


def recall(call: Call) -> Any:
    """What ``call`` returned when its outcome, which is there, was committed."""
    function, directory, *arguments = call
    return _RECALL[function](Path(directory), *arguments)


def name_of(call: Call) -> str:
    """What a call does, be it as an errand."""
    function, *arguments = call
    stage = arguments[0].function if function is run_errand else function
    name: str = stage.__name__
    return name


def travels(call: Call) -> bool:
    """Whether a call is a stage, of a campaign whose folder workers do not see."""
    function, *arguments = call
    return function in _NEEDS and not workers_see(arguments[0])


def workers_see(directory: str) -> bool:
    """Whether workers see the campaign folder themselves, as its settings say."""
    return CampaignFolder.open(Path(directory)).config.cluster.shared_storage


@cache
def _replica_of(directory: str, campaign_id: str, limit_bytes: int) -> Replica:
    return Replica(Path(directory) / "campaigns" / campaign_id, limit_bytes)


def _shard_needs(folder: CampaignFolder, iteration: int, shard: int, _: int) -> StageNeeds:
    return needs.shard_needs(folder, iteration, shard)


def _training_needs(folder: CampaignFolder, iteration: int, _: int) -> StageNeeds:
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
    remote.play_match_part: _match_needs,
    remote.play_conversion: _conversion_needs,
    remote.play_climb: _climb_needs,
}
"""Called with the folder, and then as the function is after its directory."""

_RECALL: Final[Mapping[Callable[..., Any], Callable[..., Any]]] = {
    remote.play_shard: lambda path, iteration, shard, _: stages.play_shard(path, iteration, shard),
    remote.train_generation: lambda path, iteration, _: stages.train_generation(path, iteration),
    remote.play_match_part: lambda *_: None,
    remote.play_conversion: lambda path, generation, _: play_conversion(path, generation),
    remote.play_climb: lambda path, generation, _: play_climb(path, generation),
}
"""Stages that find their outcome return at once."""
