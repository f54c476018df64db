"""What each stage reads of the campaign folder, and what it leaves there.

A worker that sees the campaign folder needs none of this. For one that does not, exactly this is
brought to it and back (:mod:`chess_snn.campaign.copies.replica`). Everything big is a committed
folder, known by the digest of its manifest; the rest are single files of a few hundred bytes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from chess_snn.campaign import stages
from chess_snn.campaign.stages.window import window_iterations
from chess_snn.campaign.store.folder import CONFIG_FILE, QUARANTINE, CampaignFolder
from chess_snn.campaign.strength.climbing import earlier_climb
from chess_snn.campaign.strength.matches import (
    CLIMB,
    CONVERSION,
    NetworkPlayer,
    ScheduledMatch,
    event_of,
)
from chess_snn.data import MANIFEST_NAME, StoredFile, read_manifest
from chess_snn.data.manifest import describe_file, is_archive
from chess_snn.training import WEIGHTS

_NOTES = (QUARANTINE, "removals")
"""Folders of notes on what is not there any more, which windows go without."""
_KEPT_DIGESTS = 1 << 16
"""Of manifests."""


@dataclass(frozen=True, slots=True)
class NeededFolder:
    """A committed folder, or some of its files."""

    path: str
    """Relative to the campaign folder, with ``/`` between parts."""
    manifest: StoredFile
    """What its manifest is, and so the whole folder; of a Zip file, what the file is."""
    is_file: bool = False
    """Whether it is a Zip file that stands for a folder."""
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
    plans = range(max(0, iteration - 1), iteration + 1)
    return StageNeeds(
        folders=(
            _weights(folder, iteration),
            *_needed(folder, stages.shards_played_before(folder, iteration)),
        ),
        files=_files(folder, *map(folder.plan, plans)),
        leaves=(folder.name_of(folder.shard(iteration, shard)),),
    )


def training_needs(folder: CampaignFolder, iteration: int) -> StageNeeds:
    """Of :func:`chess_snn.campaign.stages.train_generation`: a whole checkpoint, and the window."""
    return StageNeeds(
        folders=_needed(
            folder, [folder.checkpoint(iteration), *stages.window_shards(folder, iteration)]
        ),
        files=_files(folder, *map(folder.plan, window_iterations(folder, iteration))),
        leaves=(folder.name_of(folder.checkpoint(iteration + 1)),),
    )


def match_needs(folder: CampaignFolder, match: ScheduledMatch, part: int) -> StageNeeds:
    """Of :func:`.matches.play_match_part`: the weights of both who play."""
    generations = {
        player.generation for player in (match.player, match.opponent)
        if isinstance(player, NetworkPlayer)
    }
    return StageNeeds(
        folders=tuple(_weights(folder, generation) for generation in sorted(generations)),
        files=_files(folder),
        leaves=(folder.name_of(folder.match_part(match.event, match.name, part)),),
    )


def conversion_needs(folder: CampaignFolder, generation: int) -> StageNeeds:
    """Of :func:`chess_snn.campaign.strength.conversions.play_conversion`."""
    return StageNeeds(
        folders=(_weights(folder, generation),),
        files=_files(folder, folder.plan(generation - 1)),
        leaves=(folder.name_of(folder.match(event_of(generation), CONVERSION)),),
    )


def climb_needs(folder: CampaignFolder, generation: int) -> StageNeeds:
    """Of :func:`.climbing.play_climb`: weights, and where another one stood."""
    earlier = earlier_climb(folder, generation)
    event = event_of(generation)
    return StageNeeds(
        folders=(_weights(folder, generation),),
        files=_files(folder, *([] if earlier is None else [earlier])),
        leaves=(
            folder.name_of(folder.match(event, f"{CLIMB}-x").with_name(f"{CLIMB}-*.json")),
            folder.name_of(folder.match(event, CLIMB)),
        ),
    )


def _weights(folder: CampaignFolder, generation: int) -> NeededFolder:
    """Of a checkpoint what a network is made of: without the optimiser, a third of it."""
    path = folder.checkpoint(generation)
    return NeededFolder(folder.name_of(path), _manifest_file(path), names=(WEIGHTS,))


def _needed(folder: CampaignFolder, paths: Iterable[Path]) -> tuple[NeededFolder, ...]:
    return tuple(
        NeededFolder(folder.name_of(path), _manifest_file(path), is_archive(path)) for path in paths
    )


def _files(folder: CampaignFolder, *paths: Path) -> tuple[str, ...]:
    notes = (path for kind in _NOTES for path in sorted((folder.path / kind).glob("*.json")))
    return (CONFIG_FILE, *(folder.name_of(path) for path in (*paths, *notes)))


def _manifest_file(path: Path) -> StoredFile:
    manifest = path if is_archive(path) else path / MANIFEST_NAME
    if not manifest.exists():
        read_manifest(path)  # says what is the matter
    facts = manifest.stat()
    return _described(manifest, facts.st_ino, facts.st_mtime_ns)


@lru_cache(maxsize=_KEPT_DIGESTS)
def _described(path: Path, inode: int, mtime_ns: int) -> StoredFile:
    """A file as it is; one that was made again is another."""
    del inode, mtime_ns
    return describe_file(path)
