"""The stage of training: an iteration's games, and those before them, make the next generation.

The other half of an iteration, in the same form: look for the outcome, else load, train, and
commit. The replay window holds the newest shards, up to its capacity in positions, which grows with
the positions played. Read ``train_generation``. File 15 of 16 of the spine in docs/architecture.md.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Final

from chess_snn import nets, training
from chess_snn.campaign.configuration.loading import config_values
from chess_snn.campaign.stages.networks import FROZEN_SETTINGS, device_of, game_of
from chess_snn.campaign.stages.window import (
    num_positions,
    positions_played,
    window_capacity,
    window_shards,
)
from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder
from chess_snn.campaign.store.generations import read_generation
from chess_snn.campaign.store.notes import is_removed
from chess_snn.campaign.store.plans import read_plan
from chess_snn.campaign.store.receipt_parts import TrainingFacts, measured
from chess_snn.data import ReplayWindow, check_shard, read_manifest
from chess_snn.errors import TrainingDivergedError
from chess_snn.failpoints import failpoint
from chess_snn.games.base import Game
from chess_snn.later import torch
from chess_snn.sources import provenance
from chess_snn.training import ALONE, IterationPlan, Ranks
from chess_snn.types import Json, Progress

_STEP_LOSSES: Final = "step_losses"
"""Under this name the manifest of a generation keeps its loss curve."""

_REPORTED: Final = (
    "steps", "skipped_steps", "samples", "total_loss", "value_loss", "policy_loss",
    "plies_left_loss", "policy_entropy", "target_entropy", "value_mean_abs", "value_error",
    "gradient_norm", "learning_rate", "samples_per_s",
)
"""Figures of a training report that are metrics of a generation."""
_PROVENANCE: Final = "provenance"
"""Under this name it keeps what it was trained by: program, machine, devices."""

_REFERENCE_FOLDER: Final = Path(__file__).parents[2] / "evaluation" / "data"
_MOST_REFERENCE_POSITIONS: Final = 1_000_000
_NONE_HELD_OUT: Final = 2**30
"""One game in so many."""


def train_generation(
    directory: Path, iteration: int, *, num_threads: int = 1,
    on_progress: Progress | None = None, on_step: training.StepListener | None = None,
    ranks: Ranks = ALONE,
) -> TrainingFacts:
    """Train generation ``iteration`` on the replay window; commit generation ``iteration + 1``.

    Where several ``ranks`` train it together, rank 0 commits.

    Raises:
        TrainingDivergedError: losses or gradients are not finite; nothing is committed.
        CorruptDataError: a plan, shard or checkpoint is missing or damaged.
        RankLostError: a rank died or froze.
    """
    folder = CampaignFolder.open(directory)
    target = folder.checkpoint(iteration + 1)
    if target.exists():  # whole, or its manifest damaged: then this raises
        return trained_before(folder, iteration)
    config, game, origin = folder.config, game_of(folder), folder.origin
    torch.set_num_threads(num_threads)

    progress, shards = read_plan(folder, iteration), window_shards(folder, iteration)
    window = ReplayWindow.load(
        game, shards, window_capacity(folder, iteration), discount=config.search.discount,
        td_lambda=config.training.td_lambda_at(progress.progress_first),
        setting="training.window_positions",
    )
    read_generation(folder, iteration)
    trainer = training.load_trainer(
        folder.checkpoint(iteration), game, device_of(config, ranks.local_rank), ranks,
        # The settings of training may be new in the first iteration of a fork.
        settings=config.training if origin and origin.forked_at == iteration else None,
        shape=config.net.at(progress.progress_first).network() if config.net.growth else None,
    )
    trainer.begin_iteration(iteration)
    plan = IterationPlan(
        num_steps=config.training.num_steps(num_positions(folder, iteration)),
        progress_first=progress.progress_first,
        progress_last=progress.progress_last,
    )
    # Before training: what it has learnt so far says of games that no step was ever made on.
    before = training.measure_holdout(trainer, window)
    failpoint("training.begins")
    try:
        report = trainer.run(window, plan, on_progress=on_progress, on_step=on_step)
    except TrainingDivergedError as error:
        raise TrainingDivergedError(
            f"{error}. Generation {iteration} stays the newest and nothing is promoted; a "
            "campaign's settings stay as they are, so begin another: chess-snn campaign start "
            f"--config {folder.path / CONFIG_FILE} --set training.learning_rate=..."
        ) from error
    facts = {
        "generation": iteration + 1,
        FROZEN_SETTINGS: config_values(config),
        "positions_played": positions_played(folder, iteration),
        "window_shards": [f"{path.parent.name}/{path.name}" for path in shards],
        "window_positions": window.records.num_positions,
        "micro_batches": [asdict(use) for use in report.micro_batches],
        "shares": list(report.shares),
        _STEP_LOSSES: report.step_losses,
        _PROVENANCE: provenance() | {"devices": _devices(trainer)},
        "metrics": {
            **{name: float(getattr(report, name)) for name in _REPORTED},
            "ranks": float(ranks.size),
            "micro_batch": float(report.micro_batches[-1].micro_batch),
            **_holdout(before, training.measure_holdout(trainer, window)),
            **measure_reference(trainer),
            **_spike_rates(trainer, window),
            **measured({
                "training_spike_rate": report.spike_rate,
                "training_change_rate": report.change_rate,
            }),
        },
    }
    if not ranks.is_first:
        digest = nets.network_digest(trainer.playing_network)
        return _training_facts(facts | {"weights_digest": digest})
    failpoint("training.done")
    manifest = training.save_checkpoint(target, trainer, meta=facts)
    failpoint("training.committed")
    return _training_facts(manifest.meta)


def trained_before(folder: CampaignFolder, iteration: int) -> TrainingFacts:
    """Return what :func:`train_generation` did when it committed generation ``iteration + 1``."""
    return _training_facts(read_generation(folder, iteration + 1).meta)


def step_losses(folder: CampaignFolder, generation: int) -> training.StepLosses:
    """The losses by optimiser step of the training that made ``generation``, at most 100 points.

    Empty for generation 0, for one that was removed on purpose, and for one trained by a version
    that did not keep them. See :func:`chess_snn.training.thin`.

    Raises:
        CorruptDataError: the generation's manifest is missing or damaged.
    """
    checkpoint = folder.checkpoint(generation)
    if is_removed(folder, checkpoint):
        return []
    points: training.StepLosses = read_manifest(checkpoint).meta.get(_STEP_LOSSES, [])
    return points


def trained_by(folder: CampaignFolder, generation: int) -> dict[str, str]:
    """Program, machine and devices that trained ``generation``; empty where that was not kept."""
    kept: dict[str, str] = read_manifest(folder.checkpoint(generation)).meta.get(_PROVENANCE, {})
    return kept


def check_training_inputs(folder: CampaignFolder, iteration: int) -> None:
    """See that everything :func:`train_generation` reads is what was committed.

    Raises:
        DamagedFolderError: a shard of the window, or generation ``iteration``, is not.
    """
    read_generation(folder, iteration)
    training.load_weights(folder.checkpoint(iteration))
    for shard in window_shards(folder, iteration):
        check_shard(shard)


def _holdout(
    before: training.HoldoutReport | None, after: training.HoldoutReport | None
) -> dict[str, float]:
    """Measures on held-out games, of which a small window may have none."""
    if before is None or after is None:
        return {}
    return measured({
        "holdout_value_loss": before.value_loss,
        "holdout_value_loss_after": after.value_loss,
        "holdout_value_target_loss_after": after.value_target_loss,
        "holdout_brier_score_after": after.brier_score,
        "holdout_decided_accuracy_after": after.decided_accuracy,
        "holdout_policy_loss_after": after.policy_loss,
        "holdout_policy_accuracy_after": after.policy_accuracy,
    })


def reference_shard(game: Game) -> Path:
    """The shard of the reference positions of ``game``, which may not exist."""
    return _REFERENCE_FOLDER / f"reference-{game.spec.name}"


def measure_reference(trainer: training.Trainer) -> dict[str, float]:
    """Metrics of the trainer's network on reference positions; none in a game that has none.

    Held-out games become harder as a network improves: fewer are drawn, and its opponent, itself,
    makes fewer mistakes. So their figures may get worse while it learns. These positions stay the
    same; docs/architecture.md has the commands that made them, with an engine's moves and values.

    ``reference_policy_accuracy`` is the share of positions in which its likeliest action is the
    engine's best; ``reference_value_loss`` the cross-entropy with the engine's value, nats. That
    with the engine's policy is left out: for a network that is sure of its moves, and often right,
    it is higher than for one that knows nothing.

    Raises:
        CorruptDataError: the shard is damaged.
    """
    shard = reference_shard(trainer.game)
    if not shard.exists():
        return {}
    window = ReplayWindow.load(trainer.game, [shard], _MOST_REFERENCE_POSITIONS, _NONE_HELD_OUT)
    report = training.measure_holdout(trainer, window, "training", root_value_share=1.0)
    if report is None:
        return {}
    return {
        "reference_policy_accuracy": report.policy_accuracy,
        "reference_value_loss": report.value_target_loss,
    }


def _spike_rates(trainer: training.Trainer, window: ReplayWindow) -> dict[str, float]:
    """Spike rates in all, by layer, and by tick where there are several; none for a baseline.

    And the change rate.
    """
    if not trainer.network.config.is_spiking:
        return {}
    counts = trainer.count_spikes(window)
    rates = {"spike_rate": counts.rate, "change_rate": trainer.count_changes(window).rate}
    for name, layer in counts.layers.items():
        rates[f"spike_rate/{name}"] = layer.rate
        if len(layer.by_tick) > 1:
            for tick, rate in enumerate(layer.rates_by_tick, start=1):
                rates[f"spike_rate/{name}/tick_{tick}"] = rate
    return rates


def _devices(trainer: training.Trainer) -> str:
    """``2 x cuda (NVIDIA H200)``; one a rank."""
    device = trainer.device
    name = f" ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else ""
    return f"{trainer.ranks.size} x {device.type}{name}"


def _training_facts(meta: Json) -> TrainingFacts:
    return TrainingFacts(**{field.name: meta[field.name] for field in fields(TrainingFacts)})

