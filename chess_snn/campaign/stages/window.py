"""The shards of a campaign's iterations, and the replay window that the newest of them fill."""

from functools import lru_cache
from pathlib import Path

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.notes import dropped_names, is_removed
from chess_snn.campaign.store.plans import read_plans, shard_paths
from chess_snn.campaign.store.receipts import read_receipts
from chess_snn.data import is_committed, read_manifest
from chess_snn.errors import CampaignError
from chess_snn.wording import counted

_KEPT_COUNTS = 4096
"""Iterations whose positions a process remembers."""


def window_shards(folder: CampaignFolder, iteration: int) -> list[Path]:
    """The newest committed shards that fill the replay window of ``iteration``, oldest first.

    Raises as :func:`window_iterations`.
    """
    earlier = window_iterations(folder, iteration)
    own = [shard for number in earlier for shard in iteration_shards(folder, number)]
    if earlier.start > 0 or folder.origin is None:
        return own
    wanted = window_capacity(folder, iteration) - _count_positions(tuple(own))
    return _newest(inherited_shards(folder), wanted) + own


def window_iterations(folder: CampaignFolder, iteration: int) -> range:
    """The iterations whose shards fill the replay window of ``iteration``, rising.

    Raises:
        DamagedFolderError: a shard is missing, or its manifest is damaged.
    """
    wanted, first = window_capacity(folder, iteration), iteration + 1
    # Removal on purpose takes the oldest first: everything before a removed shard is gone too.
    while first > 0 and wanted > 0 and not is_removed(folder, folder.shard(first - 1, 0)):
        first -= 1
        wanted -= num_positions(folder, first)
    return range(first, iteration + 1)


def inherited_shards(folder: CampaignFolder) -> list[Path]:
    """Shards of another campaign that this one began with, oldest first, but for removed ones."""
    if folder.origin is None:
        return []
    dropped = dropped_names(folder)
    shards = [folder.path / "games" / name for name in folder.origin.games]
    return [
        shard for shard in shards
        if shard.exists() or not (folder.name_of(shard) in dropped or is_removed(folder, shard))
    ]


def _newest(shards: list[Path], num_wanted: int) -> list[Path]:
    """The newest of ``shards`` that have so many positions; all where they have fewer."""
    chosen: list[Path] = []
    for shard in reversed(shards):
        if num_wanted <= 0:
            break
        chosen.insert(0, shard)
        num_wanted -= _count_positions((shard,))
    return chosen


def removed_games_notice(folder: CampaignFolder) -> str | None:
    """Say that `gc` removed games of the next replay window; None if it removed none of them.

    Without them the campaign is not the one that it would have been.

    Raises:
        CorruptDataError: a receipt, or the note of a removal, is damaged.
    """
    receipts = read_receipts(folder)
    played = sum(receipt.statistics.positions for receipt in receipts)
    room = folder.config.training.window_capacity(played)
    for receipt in reversed(receipts):
        if room <= 0:
            break
        room -= receipt.statistics.positions
        if any(is_removed(folder, folder.path / "games" / facts.name) for facts in receipt.shards):
            return (
                "`chess-snn gc` removed games that the next replay window would hold. The campaign "
                "goes on without them: it trains on fewer games and restarts from fewer positions, "
                "so its games and networks differ from those of a campaign that kept them"
            )
    return None


def window_capacity(folder: CampaignFolder, iteration: int) -> int:
    """Positions that the replay window of ``iteration`` holds at most."""
    return folder.config.training.window_capacity(positions_played(folder, iteration))


def positions_played(folder: CampaignFolder, iteration: int) -> int:
    """Return the positions of all iterations up to this one."""
    earlier = read_manifest(folder.checkpoint(iteration)).meta["positions_played"]
    return int(earlier) + num_positions(folder, iteration)


def iteration_shards(folder: CampaignFolder, iteration: int) -> list[Path]:
    """All but those that were damaged, could not be made again, and are not there."""
    dropped = dropped_names(folder)
    return [
        shard for shard in shard_paths(folder, iteration)
        if folder.name_of(shard) not in dropped or shard.exists()
    ]


def num_positions(folder: CampaignFolder, iteration: int) -> int:
    """Positions that ``iteration`` played."""
    return _count_positions(tuple(iteration_shards(folder, iteration)))


@lru_cache(maxsize=_KEPT_COUNTS)
def _count_positions(shards: tuple[Path, ...]) -> int:
    """Kept, for a window of many small shards is selected anew by every iteration."""
    return sum(int(read_manifest(shard).meta["num_positions"]) for shard in shards)


def iteration_to_train(folder: CampaignFolder, wanted: int | None = None) -> int:
    """The first iteration that has played and not trained; or ``wanted``, if that has played.

    Raises:
        CampaignError: there is none, or its games are not all there.
    """
    if wanted is None:
        begun = (plan.iteration for plan in read_plans(folder))
        wanted = next((i for i in begun if is_untrained(folder, i)), None)
    if wanted is None:
        raise CampaignError(
            f"{folder.path} has trained every iteration that it began; go on with it: "
            f"chess-snn campaign resume {folder.path}"
        )
    if not folder.plan(wanted).exists():
        raise CampaignError(
            f"{folder.path} has not begun iteration {wanted}; begin it: "
            f"chess-snn campaign resume {folder.path}"
        )
    shards = shard_paths(folder, wanted)
    num_played = sum(map(is_committed, shards))
    if num_played < len(shards):
        raise CampaignError(
            f"{folder.path} has {num_played} of {counted(len(shards), 'shard')} of iteration "
            f"{wanted}, and trains on all of them; play the others: "
            f"chess-snn campaign resume {folder.path}"
        )
    return wanted


def is_untrained(folder: CampaignFolder, iteration: int) -> bool:
    """Return whether no network has been trained on the games of ``iteration`` yet."""
    target = folder.checkpoint(iteration + 1)
    return not is_committed(target) and not is_removed(folder, target)
