"""The stages of an iteration, as functions of the campaign folder alone.

Each reads what earlier stages committed, does its work, commits the outcome and returns facts about
it. Run again, it finds the outcome and returns the same facts: whoever calls may be killed and may
repeat. Nothing here knows which process or machine it runs in.
"""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import cast

import torch

from chess_snn.campaign.folder import CampaignFolder
from chess_snn.campaign.receipts import ShardFacts, TrainingFacts
from chess_snn.data import (
    Manifest,
    ReplayWindow,
    is_committed,
    read_json,
    read_manifest,
    verify_folder,
    write_json,
    write_shard,
)
from chess_snn.errors import CorruptDataError
from chess_snn.evaluation import SearchPlayer, make_player, play_match, random_openings
from chess_snn.games import Game, get_game
from chess_snn.nets import (
    Evaluator,
    Precision,
    build_network,
    load_network,
    make_evaluator,
)
from chess_snn.rng import derive_seed
from chess_snn.search import PolicySearch
from chess_snn.self_play import play_games
from chess_snn.training import (
    WEIGHTS,
    IterationPlan,
    Trainer,
    load_trainer,
    save_checkpoint,
)
from chess_snn.types import Json

Progress = Callable[[int, int], None]
"""Called often with (done, in all): games of self-play and matches, steps of training."""


def prepare_first_generation(folder: CampaignFolder) -> None:
    """Commit generation 0, the untrained network."""
    target = folder.checkpoint(0)
    if is_committed(target):
        return
    config, game = folder.config, game_of(folder)
    seed = config.campaign.seed
    network = build_network(game.spec, config.net.network(), derive_seed(seed, "network"))
    trainer = Trainer(game, network, config.training, derive_seed(seed, "training"))
    save_checkpoint(target, trainer, meta={"generation": 0})


def play_shard(
    directory: Path, iteration: int, shard: int, *, num_threads: int = 1,
    on_progress: Progress | None = None,
) -> ShardFacts:
    """Play one shard of ``iteration`` with that generation's network, and commit it."""
    folder = CampaignFolder.open(directory)
    target = folder.shard(iteration, shard)
    if is_committed(target):
        return _shard_facts(target, read_manifest(target))
    config, game = folder.config, game_of(folder)
    num_games = config.self_play.games_in_shard(shard)
    records, statistics = play_games(
        game,
        [PolicySearch(game, _evaluator(folder, iteration, num_threads))],
        config.self_play,
        num_games=num_games,
        seed=derive_seed(config.campaign.seed, "self_play", iteration, shard),
        on_progress=on_progress and (lambda games, _: on_progress(games, num_games)),
    )
    meta = {
        "game": config.campaign.game,
        "iteration": iteration,
        "shard": shard,
        "generation": iteration,
        "statistics": statistics.to_json(),
    }
    return _shard_facts(target, write_shard(target, records, meta))


def train_generation(
    directory: Path, iteration: int, *, num_threads: int = 1, on_progress: Progress | None = None
) -> TrainingFacts:
    """Train generation ``iteration`` on the replay window; commit generation ``iteration + 1``."""
    folder = CampaignFolder.open(directory)
    target = folder.checkpoint(iteration + 1)
    if is_committed(target):
        return _training_facts(read_manifest(target))
    config, game = folder.config, game_of(folder)
    torch.set_num_threads(num_threads)

    try:
        shards = window_shards(folder, iteration)
        window = ReplayWindow.load(game, shards, config.training.window_positions)
    except CorruptDataError as error:
        raise CorruptDataError(
            f"{error} (the shard is made again by `chess-snn campaign resume` once its folder and "
            f"the receipt of its iteration, if it has one, are deleted)"
        ) from error
    trainer = load_trainer(folder.checkpoint(iteration), game)
    trainer.begin_iteration(iteration)
    plan = IterationPlan(
        iteration=iteration,
        num_iterations=config.campaign.iterations,
        num_steps=config.training.num_steps(_new_positions(folder, iteration)),
    )
    # Before training: what it has learnt so far says of games that no step was ever made on.
    before = trainer.holdout_value_loss(window)
    report = trainer.run(window, plan, on_progress=on_progress)
    facts = {
        "generation": iteration + 1,
        "window_shards": [f"{path.parent.name}/{path.name}" for path in shards],
        "window_positions": window.records.num_positions,
        "metrics": {
            "steps": float(report.steps),
            "value_loss": report.value_loss,
            "policy_loss": report.policy_loss,
            "policy_entropy": report.policy_entropy,
            "gradient_norm": report.gradient_norm,
            "learning_rate": report.learning_rate,
            "samples_per_s": report.samples_per_s,
            "holdout_value_loss": before,
            "holdout_value_loss_after": trainer.holdout_value_loss(window),
        },
    }
    return _training_facts(save_checkpoint(target, trainer, meta=facts))


def play_evaluation_match(
    directory: Path, generation: int, opponent: str, *, num_threads: int = 1,
    on_progress: Progress | None = None,
) -> Json:
    """Play ``generation`` against ``opponent`` and keep the match; returns its summary."""
    folder = CampaignFolder.open(directory)
    path = folder.match(generation, opponent)
    if path.exists():
        return _summary(read_json(path))
    config, game = folder.config, game_of(folder)
    settings, seed = config.evaluation, derive_seed(config.campaign.seed, "evaluation")
    search = PolicySearch(game, _evaluator(folder, generation, num_threads))
    result = play_match(
        game,
        SearchPlayer(search, name=f"gen-{generation:06d}"),
        make_player(game, opponent),
        # The same openings for every generation: their scores can be compared.
        random_openings(game, settings.num_openings, settings.opening_plies, seed),
        seed=seed,
        max_plies=settings.max_plies,
        on_progress=on_progress,
    )
    write_json(path, result.to_json())
    return result.summary()


def choose_champion(
    score: float, generation: int, champion: tuple[int, float] | None, margin: float
) -> int:
    """Generation of the champion, given the candidate's and the champion's (generation, score).

    Scores are means over the same opponents and openings, in [0, 1].
    """
    if champion is None or score >= champion[1] + margin:
        return generation
    return champion[0]


def window_shards(folder: CampaignFolder, iteration: int) -> list[Path]:
    """The newest committed shards that fill the replay window of ``iteration``, oldest first."""
    wanted = folder.config.training.window_positions
    chosen: list[Path] = []
    for earlier in range(iteration, -1, -1):
        shards = _iteration_shards(folder, earlier)
        chosen = shards + chosen
        wanted -= sum(_num_positions(shard) for shard in shards)
        if wanted <= 0:
            break
    return chosen


def _iteration_shards(folder: CampaignFolder, iteration: int) -> list[Path]:
    num_shards = folder.config.self_play.num_shards
    return [folder.shard(iteration, shard) for shard in range(num_shards)]


def _new_positions(folder: CampaignFolder, iteration: int) -> int:
    return sum(_num_positions(shard) for shard in _iteration_shards(folder, iteration))


def _num_positions(shard: Path) -> int:
    return int(read_manifest(shard).meta["num_positions"])


def _shard_facts(path: Path, manifest: Manifest) -> ShardFacts:
    return ShardFacts(
        name=f"{path.parent.name}/{path.name}",
        bytes=manifest.num_bytes,
        statistics=manifest.meta["statistics"],
    )


def _training_facts(manifest: Manifest) -> TrainingFacts:
    meta = manifest.meta
    return TrainingFacts(
        generation=meta["generation"],
        weights_digest=meta["weights_digest"],
        window_shards=meta["window_shards"],
        window_positions=meta["window_positions"],
        metrics=meta["metrics"],
    )


def _summary(match: Json) -> Json:
    return {name: value for name, value in match.items() if name != "per_game"}


def _evaluator(folder: CampaignFolder, generation: int, num_threads: int) -> Evaluator:
    checkpoint = folder.checkpoint(generation)
    digest = str(read_manifest(checkpoint).meta["weights_digest"])
    return _cached_evaluator(checkpoint, digest, folder.config.net.precision, num_threads)


@lru_cache(maxsize=2)
def _cached_evaluator(
    checkpoint: Path, digest: str, precision: Precision, num_threads: int
) -> Evaluator:
    """The network of a checkpoint, kept between the tasks of a warm worker.

    ``digest`` is part of the key so that other weights at the same place are never mistaken.
    """
    del digest
    verify_folder(checkpoint)
    network = load_network(checkpoint / WEIGHTS)
    return cast(
        Evaluator, make_evaluator(network, precision=precision, num_threads=num_threads)
    )


def game_of(folder: CampaignFolder) -> Game:
    """The game the campaign learns."""
    return get_game(folder.config.campaign.game)
