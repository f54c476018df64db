"""Which games of an iteration each of its shards has.

The iteration's plan fixes how many shards there are. Game k of an iteration draws its random
numbers by k alone, so any number of shards gives the same games in the same order.
"""

from dataclasses import dataclass
from pathlib import Path

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.plans import read_plan
from chess_snn.rng import derive_seed


@dataclass(frozen=True, slots=True)
class ShardGames:
    """The games of one shard."""

    num_games: int
    seed: int
    """Of :func:`chess_snn.self_play.play_games`."""
    first_game: int
    """Number of the first game among those with this seed, from 0."""
    num_shards: int | None
    """Shards that share the seed; None in an iteration that began before plans said how many there
    are. There each shard has a seed of its own."""


def num_shards(folder: CampaignFolder, iteration: int) -> int:
    """Shards of ``iteration``.

    Raises:
        CorruptDataError: its plan is missing or damaged.
    """
    planned = read_plan(folder, iteration).num_shards
    return folder.config.self_play.least_shards if planned is None else planned


def shard_paths(folder: CampaignFolder, iteration: int) -> list[Path]:
    """Where the shards of ``iteration`` lie, whether they are there or not.

    Raises:
        CorruptDataError: its plan is missing or damaged.
    """
    return [folder.shard(iteration, shard) for shard in range(num_shards(folder, iteration))]


def games_of_shard(folder: CampaignFolder, iteration: int, shard: int) -> ShardGames:
    """The games that ``shard`` of ``iteration`` is to have.

    Raises:
        CorruptDataError: the iteration's plan is missing or damaged.
    """
    settings, seed = folder.config.self_play, folder.config.campaign.seed
    planned, games = read_plan(folder, iteration).num_shards, settings.games_per_iteration
    if planned is None:
        first = shard * settings.games_per_shard
        return ShardGames(
            min(settings.games_per_shard, games - first),
            derive_seed(seed, "self_play", iteration, shard), 0, None,
        )
    first, end = shard * games // planned, (shard + 1) * games // planned
    return ShardGames(end - first, derive_seed(seed, "self_play", iteration), first, planned)
