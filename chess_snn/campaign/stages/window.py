"""The shards of a campaign's iterations, and the replay window that the newest of them fill."""

from functools import lru_cache
from pathlib import Path

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.quarantine import dropped_names
from chess_snn.campaign.store.removals import is_removed
from chess_snn.data import read_manifest

_KEPT_COUNTS = 4096
"""Iterations whose positions a process remembers."""


def window_shards(folder: CampaignFolder, iteration: int) -> list[Path]:
    """The newest committed shards that fill the replay window of ``iteration``, oldest first.

    Raises:
        DamagedFolderError: one is missing, or its manifest is damaged.
    """
    wanted = window_capacity(folder, iteration)
    chosen: list[Path] = []
    for earlier in range(iteration, -1, -1):
        if is_removed(folder, folder.shard(earlier, 0)):
            break  # on purpose, with all before it
        chosen = iteration_shards(folder, earlier) + chosen
        wanted -= num_positions(folder, earlier)
        if wanted <= 0:
            break
    return chosen


def window_capacity(folder: CampaignFolder, iteration: int) -> int:
    """Positions that the replay window of ``iteration`` holds at most."""
    return folder.config.training.window_capacity(positions_played(folder, iteration))


def positions_played(folder: CampaignFolder, iteration: int) -> int:
    """Of all iterations up to this one."""
    earlier = read_manifest(folder.checkpoint(iteration)).meta["positions_played"]
    return int(earlier) + num_positions(folder, iteration)


def iteration_shards(folder: CampaignFolder, iteration: int) -> list[Path]:
    """All but those that were damaged, could not be made again, and are not there."""
    num_shards = folder.config.self_play.num_shards
    dropped = dropped_names(folder)
    shards = [folder.shard(iteration, shard) for shard in range(num_shards)]
    return [
        shard for shard in shards
        if folder.name_of(shard) not in dropped or shard.exists()
    ]


def num_positions(folder: CampaignFolder, iteration: int) -> int:
    """Positions that ``iteration`` played."""
    return _count_positions(tuple(iteration_shards(folder, iteration)))


@lru_cache(maxsize=_KEPT_COUNTS)
def _count_positions(shards: tuple[Path, ...]) -> int:
    """Kept, for a window of many small shards is selected anew by every iteration."""
    return sum(int(read_manifest(shard).meta["num_positions"]) for shard in shards)
