"""What each stage reads of the campaign folder, and what it leaves there.

A worker that sees the campaign folder needs none of this. For one that does not, exactly this is
brought to it and back (:mod:`chess_snn.campaign.replica`). Everything big is a committed folder,
known by the digest of its manifest; the rest are single files of a few hundred octets.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from chess_snn.campaign import stages
from chess_snn.campaign.climbing import earlier_climb
from chess_snn.campaign.folder import CONFIG_FILE, CampaignFolder
from chess_snn.campaign.matches import (
    CLIMB,
    CONVERSION,
    NetworkPlayer,
    ScheduledMatch,
    event_of,
)
from chess_snn.data import MANIFEST_NAME, StoredFile
from chess_snn.data.manifest import describe_file
from chess_snn.training import WEIGHTS

_KEPT_LISTS = 4
"""Of the folders that all shards of an iteration read alike; two iterations are alive."""


@dataclass(frozen=True, slots=True)
class NeededFolder:
    """A committed folder, or some of its files."""

    path: str
    """Relative to the campaign folder, with ``/`` between parts."""
    manifest: StoredFile
    """What its manifest is, and so the whole folder."""
    names: tuple[str, ...] | None = None
    """Files that are read, by path within it; None: all."""


@dataclass(frozen=True, slots=True)
class StageNeeds:
    """What a stage reads and leaves."""

    folders: tuple[NeededFolder, ...]
    files: tuple[str, ...]
    """Single files it reads, relative to the campaign folder."""
    leaves: tuple[str, ...]
    """Committed folders and single files (``.json``) that are there when it is done; a ``*`` stands
    for some that cannot be known before. The last is there when all are."""


def shard_needs(folder: CampaignFolder, iteration: int, shard: int) -> StageNeeds:
    """Of :func:`chess_snn.campaign.stages.play_shard`: a network's weights, and earlier games."""
    return StageNeeds(
        folders=(_weights(folder, iteration), *_games_before(folder, iteration)),
        files=_files(folder, folder.plan(iteration)),
        leaves=(_relative(folder, folder.shard(iteration, shard)),),
    )


def training_needs(folder: CampaignFolder, iteration: int) -> StageNeeds:
    """Of :func:`chess_snn.campaign.stages.train_generation`: a whole checkpoint, and the window."""
    return StageNeeds(
        folders=_needed(
            folder, [folder.checkpoint(iteration), *stages.window_shards(folder, iteration)]
        ),
        files=_files(folder, folder.plan(iteration)),
        leaves=(_relative(folder, folder.checkpoint(iteration + 1)),),
    )


def match_needs(folder: CampaignFolder, match: ScheduledMatch, part: int) -> StageNeeds:
    """Of :func:`chess_snn.campaign.matches.play_match_part`: the weights of both who play."""
    generations = {
        player.generation for player in (match.player, match.opponent)
        if isinstance(player, NetworkPlayer)
    }
    return StageNeeds(
        folders=tuple(_weights(folder, generation) for generation in sorted(generations)),
        files=_files(folder),
        leaves=(_relative(folder, folder.match_part(match.event, match.name, part)),),
    )


def conversion_needs(folder: CampaignFolder, generation: int) -> StageNeeds:
    """Of :func:`chess_snn.campaign.matches.play_conversion`."""
    return StageNeeds(
        folders=(_weights(folder, generation),),
        files=_files(folder, folder.plan(generation - 1)),
        leaves=(_relative(folder, folder.match(event_of(generation), CONVERSION)),),
    )


def climb_needs(folder: CampaignFolder, generation: int) -> StageNeeds:
    """Of :func:`chess_snn.campaign.climbing.play_climb`: weights, and where another one stood."""
    earlier = earlier_climb(folder, generation)
    event = event_of(generation)
    return StageNeeds(
        folders=(_weights(folder, generation),),
        files=_files(folder, *([] if earlier is None else [earlier])),
        leaves=(
            _relative(folder, folder.match(event, f"{CLIMB}-x").with_name(f"{CLIMB}-*.json")),
            _relative(folder, folder.match(event, CLIMB)),
        ),
    )


def _weights(folder: CampaignFolder, generation: int) -> NeededFolder:
    """Of a checkpoint what a network is made of: without the optimiser, a third of it."""
    path = folder.checkpoint(generation)
    return NeededFolder(_relative(folder, path), _manifest_file(path), (WEIGHTS,))


def _games_before(folder: CampaignFolder, iteration: int) -> tuple[NeededFolder, ...]:
    shards = tuple(stages.shards_played_before(folder, iteration))
    return _needed_once(folder.path, shards)


@lru_cache(maxsize=_KEPT_LISTS)
def _needed_once(root: Path, paths: tuple[Path, ...]) -> tuple[NeededFolder, ...]:
    """Folders of an iteration that has ended: they stay as they are."""
    return tuple(
        NeededFolder(path.relative_to(root).as_posix(), _manifest_file(path)) for path in paths
    )


def _needed(folder: CampaignFolder, paths: Iterable[Path]) -> tuple[NeededFolder, ...]:
    return tuple(NeededFolder(_relative(folder, path), _manifest_file(path)) for path in paths)


def _files(folder: CampaignFolder, *paths: Path) -> tuple[str, ...]:
    return (CONFIG_FILE, *(_relative(folder, path) for path in paths))


def _relative(folder: CampaignFolder, path: Path) -> str:
    return path.relative_to(folder.path).as_posix()


def _manifest_file(path: Path) -> StoredFile:
    return describe_file(path / MANIFEST_NAME)
