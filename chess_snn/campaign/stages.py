"""The stages of an iteration, as functions of the campaign folder alone.

Each reads what earlier stages committed, does its work, commits the outcome and returns facts about
it. Run again, it finds the outcome and returns the same facts: whoever calls may be killed and may
repeat. Nothing here knows which process or machine it runs in.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import torch

from chess_snn.campaign.folder import CONFIG_FILE, CampaignFolder
from chess_snn.campaign.loading import config_values
from chess_snn.campaign.networks import (
    can_overlap_groups,
    device_of,
    entropy_ratio,
    evaluator_of,
    game_of,
    self_play_searches,
)
from chess_snn.campaign.plans import read_plan
from chess_snn.campaign.preflight import FROZEN_SETTINGS
from chess_snn.campaign.quarantine import dropped_names
from chess_snn.campaign.receipts import ShardFacts, TrainingFacts
from chess_snn.campaign.removals import is_removed
from chess_snn.data import (
    Manifest,
    ReplayWindow,
    check_shard,
    concatenate,
    is_committed,
    read_manifest,
    read_shard,
    restart_states,
    write_shard,
)
from chess_snn.errors import TrainingDivergedError
from chess_snn.failpoints import failpoint
from chess_snn.games import get_game
from chess_snn.nets import Network, build_network, make_evaluator, network_digest
from chess_snn.rng import derive_seed
from chess_snn.self_play import calibrate_threshold, play_games
from chess_snn.training import (
    ALONE,
    IterationPlan,
    Ranks,
    Trainer,
    load_trainer,
    load_weights,
    save_checkpoint,
)
from chess_snn.types import Json, UInt64Array

Progress = Callable[[int, int], None]
"""Called often with (done, in all): games of self-play and matches, steps of training."""

_KEPT_COUNTS = 4096
"""Iterations whose positions a process remembers."""
_MOST_RESTARTS = 100_000
"""Positions that the restarts of one iteration are drawn from."""


def prepare_first_generation(folder: CampaignFolder) -> float:
    """Commit generation 0, the untrained network; how soft its policy is.

    Returns:
        Entropy of its policy over that of a uniform one, in [0, 1], on positions games start from.
        Below 0.9, games must undo prejudices first.
    """
    if not is_committed(folder.checkpoint(0)):
        config = folder.config
        network = build_network(
            game_of(folder).spec, config.net.network(),
            derive_seed(config.campaign.seed, "network"), config.net.policy_gain,
        )
        commit_first_generation(folder, network, {})
    return first_entropy_ratio(folder)


def commit_first_generation(folder: CampaignFolder, network: Network, facts: Json) -> Manifest:
    """Commit ``network`` as generation 0, with ``facts`` beside those of every generation.

    Its optimiser is a new one: whatever made the network, the campaign's schedule begins here.
    """
    config = folder.config
    with make_evaluator(network, precision=config.net.precision) as evaluator:
        ratio = entropy_ratio(folder, evaluator)
    trainer = Trainer(
        game_of(folder), network, config.training, derive_seed(config.campaign.seed, "training")
    )
    return save_checkpoint(folder.checkpoint(0), trainer, meta={
        "generation": 0, "positions_played": 0, "entropy_ratio": ratio,
        FROZEN_SETTINGS: config_values(config), **facts,
    })


def first_entropy_ratio(folder: CampaignFolder) -> float:
    """Entropy of generation 0's policy over that of a uniform one, in [0, 1]."""
    return float(read_manifest(folder.checkpoint(0)).meta["entropy_ratio"])


def play_shard(
    directory: Path, iteration: int, shard: int, *, num_threads: int = 1, worker: int = 0,
    on_progress: Progress | None = None,
) -> ShardFacts:
    """Play one shard of ``iteration`` with that generation's network, and commit it."""
    folder = CampaignFolder.open(directory)
    target = folder.shard(iteration, shard)
    if target.exists():  # whole, or damaged since: then this raises
        return _shard_facts(target, read_manifest(target))
    config, game = folder.config, game_of(folder)
    settings, progress = config.self_play, read_plan(folder, iteration).progress_first
    num_games, simulations = settings.games_in_shard(shard), config.search.simulations(progress)
    evaluator = evaluator_of(folder, iteration, num_threads=num_threads, worker=worker)
    searches = self_play_searches(
        folder, evaluator, simulations, min(num_games, settings.concurrent_games),
        side_by_side=can_overlap_groups(device_of(folder, worker), num_threads),
    )
    records, statistics = play_games(
        game,
        searches,
        settings,
        num_games=num_games,
        seed=derive_seed(config.campaign.seed, "self_play", iteration, shard),
        progress=progress,
        restarts=_restarts(folder, iteration),
        resignation_threshold=_resignation_threshold(folder, iteration),
        on_progress=on_progress and (lambda games, _: on_progress(games, num_games)),
    )
    meta = {
        "game": config.campaign.game,
        "iteration": iteration,
        "shard": shard,
        "generation": iteration,
        "simulations": simulations,
        "statistics": statistics.to_json(),
    }
    failpoint("shard.played")
    return _shard_facts(target, write_shard(target, records, meta))


def train_generation(
    directory: Path, iteration: int, *, num_threads: int = 1, worker: int = 0,
    on_progress: Progress | None = None, ranks: Ranks = ALONE,
) -> TrainingFacts:
    """Train generation ``iteration`` on the replay window; commit generation ``iteration + 1``.

    Where several ``ranks`` train it together, rank 0 commits.

    Raises:
        TrainingDivergedError: losses or gradients are not finite; nothing is committed.
        CorruptDataError: a shard or checkpoint is damaged.
        RankLostError: a rank died or froze.
    """
    folder = CampaignFolder.open(directory)
    target = folder.checkpoint(iteration + 1)
    if target.exists():  # whole, or damaged since: then this raises
        return trained_before(folder, iteration)
    config, game = folder.config, game_of(folder)
    torch.set_num_threads(num_threads)

    shards = window_shards(folder, iteration)
    window = ReplayWindow.load(
        game, shards, _window_capacity(folder, iteration), discount=config.search.discount
    )
    trainer = load_trainer(
        folder.checkpoint(iteration), game, device_of(folder, worker), ranks,
        by_pace=config.execution.training_shares == "measured",
    )
    trainer.begin_iteration(iteration)
    stretch = read_plan(folder, iteration)
    plan = IterationPlan(
        num_steps=config.training.num_steps(_num_positions(folder, iteration)),
        progress_first=stretch.progress_first,
        progress_last=stretch.progress_last,
    )
    # Before training: what it has learnt so far says of games that no step was ever made on.
    before = trainer.holdout_value_loss(window)
    failpoint("training.begins")
    try:
        report = trainer.run(window, plan, on_progress=on_progress)
    except TrainingDivergedError as error:
        raise TrainingDivergedError(
            f"{error}. Generation {iteration} stays the newest and nothing is promoted; a "
            "campaign's settings stay as they are, so begin another: chess-snn campaign start "
            f"--config {folder.path / CONFIG_FILE} --set training.learning_rate=..."
        ) from error
    facts = {
        "generation": iteration + 1,
        "positions_played": _positions_played(folder, iteration),
        "window_shards": [f"{path.parent.name}/{path.name}" for path in shards],
        "window_positions": window.records.num_positions,
        "micro_batches": [asdict(use) for use in report.micro_batches],
        "shares": list(report.shares),
        "metrics": {
            "steps": float(report.steps),
            "skipped_steps": float(report.skipped_steps),
            "samples": float(report.samples),
            "value_loss": report.value_loss,
            "policy_loss": report.policy_loss,
            "plies_left_loss": report.plies_left_loss,
            "policy_entropy": report.policy_entropy,
            "target_entropy": report.target_entropy,
            "value_mean_abs": report.value_mean_abs,
            "gradient_norm": report.gradient_norm,
            "learning_rate": report.learning_rate,
            "samples_per_s": report.samples_per_s,
            "ranks": float(ranks.size),
            "micro_batch": float(report.micro_batches[-1].micro_batch),
            **_measured({
                "holdout_value_loss": before,
                "holdout_value_loss_after": trainer.holdout_value_loss(window),
            }),
            **_spike_rate(trainer, window),
        },
    }
    if not ranks.is_first:
        return _training_facts(facts | {"weights_digest": network_digest(trainer.network)})
    failpoint("training.done")
    manifest = save_checkpoint(target, trainer, meta=facts)
    failpoint("training.committed")
    return _training_facts(manifest.meta)


def trained_before(folder: CampaignFolder, iteration: int) -> TrainingFacts:
    """What :func:`train_generation` returned when it committed generation ``iteration + 1``.

    Raises:
        CorruptDataError: it is not there, or damaged.
    """
    return _training_facts(read_manifest(folder.checkpoint(iteration + 1)).meta)


def _measured(metrics: dict[str, float]) -> dict[str, float]:
    """Those that are numbers: a small window may have no game that is held out."""
    return {name: value for name, value in metrics.items() if not math.isnan(value)}


def _spike_rate(trainer: Trainer, window: ReplayWindow) -> dict[str, float]:
    """Of a network that spikes."""
    is_spiking = trainer.network.config.is_spiking
    return {"spike_rate": trainer.spike_rate(window)} if is_spiking else {}


def check_training_inputs(folder: CampaignFolder, iteration: int) -> None:
    """See that everything :func:`train_generation` reads is what was committed.

    Raises:
        DamagedFolderError: a shard of the window, or generation ``iteration``, is not.
    """
    load_weights(folder.checkpoint(iteration))
    for shard in window_shards(folder, iteration):
        check_shard(shard)


def window_shards(folder: CampaignFolder, iteration: int) -> list[Path]:
    """The newest committed shards that fill the replay window of ``iteration``, oldest first.

    Raises:
        DamagedFolderError: one is missing, or its manifest is damaged.
    """
    wanted = _window_capacity(folder, iteration)
    chosen: list[Path] = []
    for earlier in range(iteration, -1, -1):
        if is_removed(folder, folder.shard(earlier, 0)):
            break  # on purpose, with all before it
        chosen = _iteration_shards(folder, earlier) + chosen
        wanted -= _num_positions(folder, earlier)
        if wanted <= 0:
            break
    return chosen


def _window_capacity(folder: CampaignFolder, iteration: int) -> int:
    return folder.config.training.window_capacity(_positions_played(folder, iteration))


def _positions_played(folder: CampaignFolder, iteration: int) -> int:
    """Of all iterations up to this one."""
    earlier = read_manifest(folder.checkpoint(iteration)).meta["positions_played"]
    return int(earlier) + _num_positions(folder, iteration)


def shards_played_before(folder: CampaignFolder, iteration: int) -> list[Path]:
    """Earlier shards that self-play reads: to restart games from, or to know when to resign."""
    settings = folder.config.self_play
    restarts = settings.restart_share_first or settings.restart_share_last
    if iteration == 0 or not (restarts or settings.resignation):
        return []
    return _iteration_shards(folder, iteration - 1)


def _restarts(folder: CampaignFolder, iteration: int) -> UInt64Array | None:
    """Positions of the iteration before; None in the first."""
    settings = folder.config.self_play
    if iteration == 0 or not (settings.restart_share_first or settings.restart_share_last):
        return None
    return _read_restarts(
        tuple(_iteration_shards(folder, iteration - 1)), settings.restart_value_limit,
        derive_seed(folder.config.campaign.seed, "restarts", iteration),
    )


@lru_cache(maxsize=1)
def _read_restarts(shards: tuple[Path, ...], value_limit: float, seed: int) -> UInt64Array:
    """The same for all shards that a warm worker plays of one iteration."""
    return restart_states(shards, value_limit, _MOST_RESTARTS, seed)


def _resignation_threshold(folder: CampaignFolder, iteration: int) -> float | None:
    """What the games of the iteration before allow; None plays every game to its end."""
    settings = folder.config.self_play
    if iteration == 0 or not settings.resignation:
        return None
    return _read_threshold(
        tuple(_iteration_shards(folder, iteration - 1)), folder.config.campaign.game,
        settings.resignation_error_limit,
    )


@lru_cache(maxsize=1)
def _read_threshold(shards: tuple[Path, ...], game: str, error_limit: float) -> float | None:
    """The same for all shards that a warm worker plays of one iteration."""
    records = concatenate([read_shard(shard)[0] for shard in shards])
    return calibrate_threshold(get_game(game), records, error_limit)


def _iteration_shards(folder: CampaignFolder, iteration: int) -> list[Path]:
    """All but those that were damaged, could not be made again, and are not there."""
    num_shards = folder.config.self_play.num_shards
    dropped = dropped_names(folder)
    shards = [folder.shard(iteration, shard) for shard in range(num_shards)]
    return [
        shard for shard in shards
        if shard.relative_to(folder.path).as_posix() not in dropped or shard.exists()
    ]


def _num_positions(folder: CampaignFolder, iteration: int) -> int:
    """Positions that ``iteration`` played."""
    return _count_positions(tuple(_iteration_shards(folder, iteration)))


@lru_cache(maxsize=_KEPT_COUNTS)
def _count_positions(shards: tuple[Path, ...]) -> int:
    """Kept, for a window of many small shards is selected anew by every iteration."""
    return sum(int(read_manifest(shard).meta["num_positions"]) for shard in shards)


def _shard_facts(path: Path, manifest: Manifest) -> ShardFacts:
    return ShardFacts(
        name=f"{path.parent.name}/{path.name}",
        bytes=manifest.num_bytes,
        statistics=manifest.meta["statistics"],
    )


def _training_facts(meta: Json) -> TrainingFacts:
    return TrainingFacts(
        generation=meta["generation"],
        weights_digest=meta["weights_digest"],
        window_shards=meta["window_shards"],
        window_positions=meta["window_positions"],
        metrics=meta["metrics"],
    )
