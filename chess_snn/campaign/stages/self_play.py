"""The stage of self-play: one shard of an iteration's games."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from chess_snn.campaign.stages.networks import (
    device_of,
    evaluator_of,
    game_of,
    self_play_searches,
)
from chess_snn.campaign.stages.window import iteration_shards
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.notes import is_removed
from chess_snn.campaign.store.plans import (
    SHARDS_OF_ITERATION,
    ShardGames,
    games_of_shard,
    read_plan,
)
from chess_snn.campaign.store.receipts import ShardFacts
from chess_snn.data import (
    GAMES_BEFORE,
    Manifest,
    concatenate,
    read_manifest,
    read_shard,
    restart_states,
    write_shard,
)
from chess_snn.failpoints import failpoint
from chess_snn.games import get_game
from chess_snn.rng import derive_seed
from chess_snn.self_play import calibrate_threshold, play_games
from chess_snn.types import Progress, UInt64Array

_MOST_RESTARTS = 100_000
"""Positions that the restarts of one iteration are drawn from."""


@dataclass(frozen=True, slots=True)
class ShardValues:
    """What a shard is played from, beside the configuration and the network."""

    games: ShardGames
    progress: float
    """Of the campaign, in [0, 1]."""
    earlier: tuple[str, ...]
    """Paths in the campaign of the shards to restart games from, and to know when to resign."""


def shard_values(folder: CampaignFolder, iteration: int, shard: int) -> ShardValues:
    """The values by which ``shard`` of ``iteration`` is played.

    Raises:
        CorruptDataError: the iteration's plan is missing or damaged.
    """
    settings = folder.config.self_play
    restarts = settings.restart_share_first or settings.restart_share_last
    earlier = _shards_before(folder, iteration) if restarts or settings.resignation else []
    return ShardValues(
        games_of_shard(folder, iteration, shard), read_plan(folder, iteration).progress_first,
        tuple(map(folder.name_of, earlier)),
    )


def play_shard(
    directory: Path, iteration: int, shard: int, values: ShardValues | None = None, *,
    num_threads: int = 1, on_progress: Progress | None = None,
) -> ShardFacts:
    """Play one shard of ``iteration`` with that generation's network, and commit it.

    ``directory`` has the network, and the earlier shards of ``values``, which are by default read
    from the campaign in it. ``on_progress`` is called with (games played, games in all).
    """
    folder = CampaignFolder.open(directory)
    target = folder.shard(iteration, shard)
    if target.exists():  # whole, or its manifest damaged: then this raises
        return _shard_facts(target, read_manifest(target))
    values = values or shard_values(folder, iteration, shard)
    config, game, games = folder.config, game_of(folder), values.games
    settings, simulations = config.self_play, config.search.simulations(values.progress)
    evaluator = evaluator_of(folder, iteration, num_threads=num_threads)
    searches = self_play_searches(
        config, evaluator, device_of(config), num_threads, simulations,
        min(games.num_games, settings.concurrent_games),
    )
    records, statistics = play_games(
        game,
        searches,
        settings,
        num_games=games.num_games,
        seed=games.seed,
        first_game=games.first_game,
        progress=values.progress,
        restarts=_restarts(folder, iteration, values.earlier),
        resignation_threshold=_resignation_threshold(folder, values.earlier),
        on_progress=on_progress and (lambda done, _: on_progress(done, games.num_games)),
    )
    meta = {
        "game": config.campaign.game,
        "iteration": iteration,
        "shard": shard,
        "generation": iteration,
        "simulations": simulations,
        "statistics": statistics.to_json(),
        **({} if games.num_shards is None else {
            SHARDS_OF_ITERATION: games.num_shards, GAMES_BEFORE: games.first_game,
        }),
        # Positions of a call of the network, where memory ran out: games do not depend on it.
        **({} if evaluator.reduced_rows is None else {"reduced_rows": evaluator.reduced_rows}),
    }
    failpoint("shard.played")
    return _shard_facts(target, write_shard(target, records, meta))


def _shards_before(folder: CampaignFolder, iteration: int) -> list[Path]:
    """Those of the iteration before; none where a campaign that had ended has removed them."""
    if iteration == 0 or is_removed(folder, folder.shard(iteration - 1, 0)):
        return []
    return iteration_shards(folder, iteration - 1)


def _restarts(
    folder: CampaignFolder, iteration: int, earlier: tuple[str, ...]
) -> UInt64Array | None:
    """Positions of the ``earlier`` shards; None where there are none."""
    settings = folder.config.self_play
    if not earlier or not (settings.restart_share_first or settings.restart_share_last):
        return None
    return _read_restarts(
        tuple(folder.path / name for name in earlier), folder.config.campaign.game,
        settings.restart_value_limit,
        derive_seed(folder.config.campaign.seed, "restarts", iteration),
    )


@lru_cache(maxsize=1)
def _read_restarts(
    shards: tuple[Path, ...], game: str, value_limit: float, seed: int
) -> UInt64Array:
    """The same for all shards that a warm worker plays of one iteration."""
    return restart_states(get_game(game).spec, shards, value_limit, _MOST_RESTARTS, seed)


def _resignation_threshold(
    folder: CampaignFolder, earlier: tuple[str, ...]
) -> float | None:
    """What the games of the ``earlier`` shards allow; None plays every game to its end."""
    settings = folder.config.self_play
    if not earlier or not settings.resignation:
        return None
    return _read_threshold(
        tuple(folder.path / name for name in earlier), folder.config.campaign.game,
        settings.resignation_error_limit,
    )


@lru_cache(maxsize=1)
def _read_threshold(shards: tuple[Path, ...], game: str, error_limit: float) -> float | None:
    """The same for all shards that a warm worker plays of one iteration."""
    records = concatenate([read_shard(shard)[0] for shard in shards])
    return calibrate_threshold(get_game(game), records, error_limit)


def _shard_facts(path: Path, manifest: Manifest) -> ShardFacts:
    return ShardFacts(
        name=f"{path.parent.name}/{path.name}",
        bytes=manifest.num_bytes,
        statistics=manifest.meta["statistics"],
    )
