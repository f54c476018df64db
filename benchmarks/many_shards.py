"""A campaign of very many tiny shards, in minutes instead of days.

The campaign's own code writes configuration, plans, receipts and manifests, with correct content
for every shard and checkpoint. The data are those of a few real shards, copied, and of one real
checkpoint, whose files are hard-linked under all names.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.random_data import play_random_games
from chess_snn.campaign import CampaignFolder, Receipt, load_config, write_receipt
from chess_snn.campaign.store.plans import SHARDS_OF_ITERATION, begin_iteration
from chess_snn.campaign.store.receipt_parts import ShardFacts, StageSeconds, TrainingFacts
from chess_snn.data import MANIFEST_NAME, Manifest, archive, write_shard
from chess_snn.games import Game, get_game
from chess_snn.nets import build_network, net_config
from chess_snn.self_play.statistics import SelfPlayStatistics, statistics_of
from chess_snn.training import Trainer, save_checkpoint
from chess_snn.types import Json, Progress

SHARDS_EACH: Final = 100
"""Shards of an iteration."""
WINDOW_POSITIONS: Final = 20_000

_TEMPLATES: Final = 20
"""Real shards, each of one game."""
_PLIES: Final = 8
_ITERATION_S: Final = 60.0
_TRAINING_METRICS: Final = {
    "steps": 10.0, "samples": 2560.0, "value_loss": 0.9, "policy_loss": 3.0,
    "plies_left_loss": 0.3, "policy_entropy": 2.9, "gradient_norm": 0.2, "learning_rate": 0.01,
    "samples_per_s": 1700.0, "holdout_value_loss": 1.0, "holdout_value_loss_after": 0.95,
}


@dataclass(frozen=True, slots=True)
class _Template:
    """A committed folder or Zip file that is made under other names too."""

    path: Path
    manifest: Manifest

    def copy(self, target: Path, meta: Json) -> Manifest:
        """Commit the Zip file ``target`` with the content of this one, and ``meta`` over its own.

        Nothing is synced: it need not survive a crash.
        """
        manifest = replace(self.manifest, meta=dict(self.manifest.meta) | meta)
        zipped = bytes(archive.split(self.path.read_bytes())[0]) + archive.NO_COMMENT
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.with_comment(zipped, manifest.to_text().encode()))
        return manifest

    def link(self, target: Path, meta: Json) -> Manifest:
        """Commit the folder ``target`` as :meth:`copy` does a file, with links to these files."""
        for name in self.manifest.files:
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.hardlink_to(self.path / name)
        manifest = replace(self.manifest, meta=dict(self.manifest.meta) | meta)
        (target / MANIFEST_NAME).write_text(manifest.to_text(), encoding="utf-8")
        return manifest


def make_campaign(path: Path, num_shards: int, on_progress: Progress) -> CampaignFolder:
    """An unfinished campaign with ``num_shards`` shards.

    Args:
        path: folder, missing or empty.
        num_shards: a multiple of :data:`SHARDS_EACH`.
        on_progress: called with (shards made, all shards).
    """
    num_iterations = num_shards // SHARDS_EACH
    folder = CampaignFolder.create(path / "campaign", load_config(settings=[
        f"campaign.iterations={num_iterations + 10}", "self_play.games_per_shard=1",
        f"self_play.games_per_iteration={SHARDS_EACH}",
        f"training.window_positions={WINDOW_POSITIONS}", "training.window_growth=0.0",
        f"evaluation.every={num_iterations + 10}",
    ]))
    game = get_game(folder.config.campaign.game)
    shards = [_shard_template(path / "templates" / f"shard-{k}", game, k)
              for k in range(_TEMPLATES)]
    checkpoint = _checkpoint_template(path / "templates" / "checkpoint", folder)
    checkpoint.link(folder.checkpoint(0), {"positions_played": 0, "generation": 0})
    positions, window = 0, list[str]()
    for iteration in range(num_iterations):
        facts = []
        for shard in range(SHARDS_EACH):
            template = shards[(iteration + shard) % len(shards)]
            facts.append(_link_shard(folder, template, iteration, shard))
        on_progress((iteration + 1) * SHARDS_EACH, num_shards)
        positions += sum(entry.statistics.positions for entry in facts)
        window = [*window, *(entry.name for entry in facts)][-WINDOW_POSITIONS // _PLIES :]
        _finish_iteration(folder, checkpoint, iteration, facts, positions, window)
    begin_iteration(folder, num_iterations, num_iterations * _ITERATION_S)
    for shard in range(SHARDS_EACH):
        _link_shard(folder, shards[shard % len(shards)], num_iterations, shard)
    return folder


def _shard_template(path: Path, game: Game, number: int) -> _Template:
    records = play_random_games(game, 1, _PLIES, seed=number)
    statistics = statistics_of(
        game.spec, records, entropy_sum=20.0, uniform_entropy_sum=25.0, seconds=1.0,
        network_seconds=0.5,
    )
    meta = {"game": game.spec.name, "simulations": 1, "statistics": statistics.to_json()}
    return _Template(path, write_shard(path, records, meta))


def _checkpoint_template(path: Path, folder: CampaignFolder) -> _Template:
    game = get_game(folder.config.campaign.game)
    shape = net_config("tiny", blocks=1, channels=8, value_channels=2, value_hidden=8)
    trainer = Trainer(game, build_network(game.spec, shape, seed=0), folder.config.training, 0)
    return _Template(path, save_checkpoint(path, trainer, {"entropy_ratio": 0.99}))


def _link_shard(
    folder: CampaignFolder, template: _Template, iteration: int, shard: int
) -> ShardFacts:
    target = folder.shard(iteration, shard)
    manifest = template.copy(target, {
        "iteration": iteration, "shard": shard, "generation": iteration,
        SHARDS_OF_ITERATION: SHARDS_EACH,
    })
    statistics = SelfPlayStatistics.from_json(manifest.meta["statistics"])
    return ShardFacts(f"{target.parent.name}/{target.name}", manifest.num_bytes, statistics, 0.0)


def _finish_iteration(
    folder: CampaignFolder, checkpoint: _Template, iteration: int, shards: Sequence[ShardFacts],
    positions: int, window: Sequence[str],
) -> None:
    """Commit plan, generation and receipt of an iteration whose shards exist."""
    generation = iteration + 1
    plan = begin_iteration(folder, iteration, iteration * _ITERATION_S)
    assert plan is not None
    training = TrainingFacts(
        generation, str(checkpoint.manifest.meta["weights_digest"]), list(window),
        len(window) * _PLIES, dict(_TRAINING_METRICS),
    )
    checkpoint.link(folder.checkpoint(generation), {
        "generation": generation, "positions_played": positions,
        "window_shards": training.window_shards, "window_positions": training.window_positions,
        "metrics": training.metrics, "made": datetime.now(UTC).isoformat(),
    })
    write_receipt(folder, Receipt(
        iteration, plan, list(shards), training, matches=[], conversion=None, score=None,
        champion=generation, seconds=StageSeconds(40.0, 20.0, 0.0, 0.0, _ITERATION_S),
        elapsed_s=generation * _ITERATION_S,
    ))
