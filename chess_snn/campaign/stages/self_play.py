"""The stage of self-play: one shard of an iteration's games.

The pieces above put to work in a campaign folder. Read ``play_shard``: what is there already is not
played again. The iteration's plan, committed before, has the number of shards, and the campaign's
progress, which decides the simulations. File 14 of 16 of the spine in docs/architecture.md.
"""

import time
from functools import lru_cache
from pathlib import Path

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.stages.networks import device_of, evaluator_of, game_of, self_play_searches
from chess_snn.campaign.stages.window import iteration_shards
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.notes import is_removed
from chess_snn.campaign.store.plans import (
    SHARDS_OF_ITERATION,
    games_of_shard,
    read_plan,
)
from chess_snn.campaign.store.receipt_parts import ShardFacts
from chess_snn.data import (
    GAMES_BEFORE,
    GameRecords,
    Manifest,
    read_manifest,
    restart_states,
    write_shard,
)
from chess_snn.evaluation.engines.teacher import DEFAULT_LINES, EngineTeacher
from chess_snn.failpoints import failpoint
from chess_snn.games import get_game
from chess_snn.rng import derive_seed
from chess_snn.self_play import SelfPlayStatistics, play_games
from chess_snn.self_play.labels import label_records
from chess_snn.types import Progress, UInt64Array

_BEGAN_S = "began_s"
_RESTART_VALUE_LIMIT = 0.8
"""Games restart only from positions whose absolute root value is at most this."""
_MOST_RESTARTS = 100_000
"""Positions that the restarts of one iteration are drawn from."""


def play_shard(
    directory: Path, iteration: int, shard: int, *, num_threads: int = 1,
    on_progress: Progress | None = None,
) -> ShardFacts:
    """Play one shard of ``iteration`` with that generation's network, and commit it.

    ``on_progress`` is called with (games played, games in all); where a teacher labels them, which
    takes longer, with games labelled.

    Raises:
        CorruptDataError: the iteration's plan is missing or damaged.
        EngineError: the teacher is not here, or died again and again at one position.
    """
    folder = CampaignFolder.open(directory)
    target = folder.shard(iteration, shard)
    if target.exists():  # whole, or its manifest damaged: then this raises
        return _shard_facts(target, read_manifest(target))
    config, game = folder.config, game_of(folder)
    games = games_of_shard(folder, iteration, shard)
    progress = read_plan(folder, iteration).progress_first
    settings, simulations = config.self_play, config.search.simulations(progress)
    evaluator = evaluator_of(folder, iteration, num_threads=num_threads)
    searches = self_play_searches(
        config, evaluator, device_of(config), num_threads, simulations,
        min(games.num_games, settings.concurrent_games),
    )
    restarts = _restarts_of(folder, iteration)
    began_s = time.time()
    records, statistics = play_games(
        game,
        searches,
        settings,
        num_games=games.num_games,
        seed=games.seed,
        first_game=games.first_game,
        progress=progress,
        restarts=restarts,
        on_progress=None if settings.teacher else on_progress and (
            lambda done, _: on_progress(done, games.num_games)
        ),
    )
    meta = {
        "game": config.campaign.game,
        "iteration": iteration,
        "shard": shard,
        "generation": iteration,
        "simulations": simulations,
        "statistics": statistics.to_json(),
        _BEGAN_S: began_s,
        SHARDS_OF_ITERATION: games.num_shards,
        GAMES_BEFORE: games.first_game,
    }
    labelled = label_played(config, records, num_threads, on_progress)
    failpoint("shard.played")
    return _shard_facts(target, write_shard(target, labelled, meta))


def label_played(
    config: CampaignConfig, records: GameRecords, num_threads: int,
    on_progress: Progress | None = None,
) -> GameRecords:
    """``records`` as the campaign's teacher labels them; they themselves where it has none.

    Raises:
        EngineError: as :func:`play_shard`.
    """
    game, name = get_game(config.campaign.game), config.self_play.teacher
    if not name:
        return records
    # As many engines as threads; they end with this function.
    teachers = [EngineTeacher(game, name, DEFAULT_LINES).label for _ in range(num_threads)]
    return label_records(game, records, slice(0, records.num_games), teachers, on_progress)


def _shards_before(folder: CampaignFolder, iteration: int) -> list[Path]:
    """Those of the iteration before; none where a campaign that had ended has removed them."""
    if iteration == 0 or is_removed(folder, folder.shard(iteration - 1, 0)):
        return []
    return iteration_shards(folder, iteration - 1)


def _restarts_of(folder: CampaignFolder, iteration: int) -> UInt64Array | None:
    """Earlier positions to restart from; None in the first iteration, or without restarts."""
    config, settings = folder.config, folder.config.self_play
    if not (settings.restart_share_first or settings.restart_share_last):
        return None
    shards = tuple(_shards_before(folder, iteration))
    if not shards:
        return None
    seed = derive_seed(config.campaign.seed, "restarts", iteration)
    return _read_restarts(shards, config.campaign.game, seed)


@lru_cache(maxsize=1)
def _read_restarts(shards: tuple[Path, ...], game: str, seed: int) -> UInt64Array:
    """The same for all shards that a warm worker plays of one iteration."""
    return restart_states(
        get_game(game).spec, shards, _RESTART_VALUE_LIMIT, _MOST_RESTARTS, seed
    )


def _shard_facts(path: Path, manifest: Manifest) -> ShardFacts:
    return ShardFacts(
        name=f"{path.parent.name}/{path.name}",
        bytes=manifest.num_bytes,
        statistics=SelfPlayStatistics.from_json(manifest.meta["statistics"]),
        began_s=manifest.meta[_BEGAN_S],
    )
