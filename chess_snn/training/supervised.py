"""Learning from a dataset, with checkpoints on the way: training that may be killed at any time.

::

    <folder>/step-000001100/    the checkpoint before the newest; earlier ones are removed
    <folder>/step-000001200/    the newest one

Which games, in which order, is a :class:`chess_snn.training.schedule.TrainingSchedule`. A
checkpoint keeps the place in it, and all figures so far. However often the training is killed and
begun again, it gives the same weights; so it does from the one before, where the newest is damaged
and taken away. Where several ranks train, each reads the checkpoint, and rank 0 alone writes. Games
on which no step is made, the held-out ones, show what the network has learnt.

Dimensions: B positions, L columns for legal actions.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import torch

from chess_snn.data import ReplayWindow, read_manifest
from chess_snn.data.files import remove
from chess_snn.data.window import Subset
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.games.base import Game, ValueKind
from chess_snn.nets import read_value
from chess_snn.training.batch import as_tensor, assemble
from chess_snn.training.checkpoint import load_trainer, load_weights, save_checkpoint
from chess_snn.training.checkpoint_files import step_checkpoint, step_checkpoints
from chess_snn.training.losses import blended_value, log_policy, value_loss
from chess_snn.training.ranks import ALONE, Ranks
from chess_snn.training.report import StepListener, TrainingReport
from chess_snn.training.schedule import TrainingSchedule
from chess_snn.training.trainer import Trainer
from chess_snn.types import Json, Progress

MOST_POSITIONS: Final = 16_384
"""The first so many held-out positions are enough for three digits."""
_BATCH: Final = 1024
Points = list[dict[str, float]]
"""Figures over time: ``step`` and ``epoch`` (fractional), means over the steps since the point
before, ``spike_rate`` and ``change_rate`` where they have a penalty, and ``holdout_…`` at the
beginning and at the end of a chunk."""

_FIRST_STEPS: Final = 16
"""Steps whose pace is measured, to know how many make a checkpoint's time."""
_KEPT: Final = 2
"""Checkpoints at a time: where the newest is damaged, there is one to go back to."""
_TRAINED_FIGURES: Final = (
    "total_loss", "value_loss", "policy_loss", "plies_left_loss", "policy_entropy",
    "gradient_norm", "learning_rate", "samples_per_s", "spike_rate", "change_rate",
)


@dataclass(frozen=True, slots=True)
class HoldoutReport:
    """Means over held-out positions, in fp32, by running statistics."""

    positions: int
    value_loss: float
    """Cross-entropy with ``Samples.results_stm``, nats: how the games ended, without discount or
    root value, and in a game with returns the lambda-returns."""
    policy_loss: float
    """Cross-entropy with the policy target, nats."""
    policy_accuracy: float
    """Share of positions where the likeliest action has the most weight in the target: of games
    without search, where it is the one that was played."""
    value_target_loss: float
    """Cross-entropy with the target that the value learns from, nats; falls where ``value_loss``
    rises because games are decided ever earlier and the target is discounted."""
    brier_score: float | None
    """Mean squared distance of the expected score, in [0, 1], from the score of the game (Brier
    1950); None in a game with returns."""
    decided_accuracy: float | None
    """Share of the positions of won and lost games where the value has the sign of the result;
    None without such games."""


@torch.no_grad()
@torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
def measure_holdout(
    trainer: Trainer, window: ReplayWindow, subset: Subset = "holdout",
    root_value_share: float | None = None,
) -> HoldoutReport | None:
    """Measure the trainer's network on held-out games of ``window``; None where it has none.

    Ranks take every so many batches each, and come to the same numbers.

    Args:
        trainer: of the network.
        window: games that ``trainer`` makes no steps on, or holds out.
        subset: of the window.
        root_value_share: of the target that ``value_target_loss`` is measured with; None: the
            trainer's.

    Raises:
        UsageError: ranks have different windows or networks.
    """
    trainer.agree(window)
    network, ranks = trainer.playing_network.eval(), trainer.ranks
    spec, share = trainer.game.spec, root_value_share
    if share is None:
        share = trainer.settings.root_value_share
    sums = torch.zeros(7, dtype=torch.float64, device=trainer.device)
    count = 0
    for number, samples in enumerate(window.iterate(_BATCH, subset)):
        if count >= MOST_POSITIONS:
            break
        count += len(samples)
        if number % ranks.size != ranks.rank:
            continue
        batch = assemble(trainer.game, samples).to(trainer.device)
        targets = batch.targets
        output = network.legal_output(
            batch.planes(network.num_planes), targets.legal_actions_BL, targets.num_legal_B
        )
        log_policy_BL = log_policy(output.legal_logits_BL, targets)
        likeliest_B1 = log_policy_BL.argmax(dim=1, keepdim=True)
        is_right_B = targets.policy_BL.gather(1, likeliest_B1)[:, 0] == targets.policy_BL.amax(1)
        results_B = as_tensor(samples.results_stm).to(trainer.device)
        _, values_B = read_value(spec, output.value_logits_BV)
        is_decided_B = results_B.abs() == 1
        num = len(batch)
        sums += torch.stack([
            num * value_loss(spec, output.value_logits_BV, results_B),
            num * value_loss(spec, output.value_logits_BV, blended_value(targets, share)),
            -(targets.policy_BL * log_policy_BL).sum(),
            is_right_B.sum(),
            ((values_B - results_B) / 2).square().sum(),
            (is_decided_B & (values_B.sign() == results_B)).sum(),
            is_decided_B.sum(),
        ]).double()
    ranks.add_up(sums)
    if not count:
        return None
    value, value_target, policy, right, squares, decided_right, decided = sums.tolist()
    has_results = spec.value_kind is ValueKind.WDL
    return HoldoutReport(
        positions=count,
        value_loss=value / count,
        policy_loss=policy / count,
        policy_accuracy=right / count,
        value_target_loss=value_target / count,
        brier_score=squares / count if has_results else None,
        decided_accuracy=decided_right / decided if has_results and decided else None,
    )


def train_supervised(
    game: Game, schedule: TrainingSchedule, begin: Callable[[], Trainer], folder: Path, *,
    device: torch.device | str = "cpu", checkpoint_s: float = 300.0,
    on_progress: Progress | None = None, on_step: StepListener | None = None,
    meta: Json | None = None, ranks: Ranks = ALONE,
) -> tuple[Trainer, Points]:
    """Go through ``schedule``, from the newest checkpoint in ``folder`` where there is one.

    Args:
        game: of the shards.
        schedule: what to learn from; the same each time.
        begin: makes the trainer of ``ranks``, if there is no checkpoint.
        folder: of checkpoints, whose owner removes it in the end.
        device: where a trainer from a checkpoint goes on.
        checkpoint_s: seconds of training between two checkpoints.
        on_progress: called after every step with (steps done, steps in all).
        on_step: called with the losses of every step.
        meta: what the manifest of every checkpoint keeps beside its own.
        ranks: who trains together.

    Returns:
        The trainer at the end of the schedule, and the figures of all of it.

    Raises:
        CorruptDataError: a shard or the newest checkpoint is damaged.
        RankLostError: a rank died or froze; the last checkpoint stays.
        TrainingDivergedError: a loss or gradient is not finite; the last checkpoint stays.
    """
    checkpoints = step_checkpoints(folder)
    if checkpoints:
        meta_before = _meta(checkpoints[-1])
        trainer = load_trainer(checkpoints[-1], game, device, ranks)
        points, first = meta_before["points"], meta_before["portion"]
    else:
        trainer, points, first = begin(), [], 0
    run = _Run(schedule, trainer, points, folder, checkpoint_s, on_progress, on_step, meta or {})
    for index in range(first, len(schedule.chunks)):
        run.learn(index)
    return run.trainer, run.points


def check_newest(folder: Path) -> None:
    """See that the newest checkpoint in ``folder``, if there is one, is what was committed.

    Raises:
        DamagedFolderError: it is not.
    """
    for newest in step_checkpoints(folder)[-1:]:
        load_weights(newest)


class _Run:
    """A trainer on its way through a schedule."""

    def __init__(
        self, schedule: TrainingSchedule, trainer: Trainer, points: Points, folder: Path,
        checkpoint_s: float, on_progress: Progress | None, on_step: StepListener | None,
        meta: Json,
    ) -> None:
        self.trainer, self.points = trainer, points
        self._schedule, self._folder = schedule, folder
        self._checkpoint_s, self._on_progress = checkpoint_s, on_progress
        self._on_step, self._meta = on_step, meta
        self._steps_a_checkpoint = _FIRST_STEPS

    def learn(self, index: int) -> None:
        """Go through what is left of one chunk; a checkpoint at its end is that of the next."""
        trainer, chunk = self.trainer, self._schedule.chunks[index]
        window = ReplayWindow.load(
            trainer.game, chunk.shards, capacity=chunk.num_positions, discount=1.0
        )
        if not self.points:
            self.points.append(self._place(index) | _measured(trainer, window))
        while trainer.step_in_iteration < chunk.num_steps:
            report = trainer.run(
                window, self._schedule.plan(index), on_progress=self._tell, on_step=self._on_step,
                stop_at=trainer.step_in_iteration + self._steps_a_checkpoint,
            )
            self._steps_a_checkpoint = max(
                1, round(self._checkpoint_s * report.steps / report.seconds)
            )
            self.points.append(self._place(index) | _trained(report))
            if trainer.step_in_iteration < chunk.num_steps:
                self._save(index)
        self.points[-1] |= _measured(trainer, window)
        trainer.begin_iteration(index + 1)
        self._save(index + 1)

    def _place(self, index: int) -> dict[str, float]:
        """The trainer's place in a chunk that it has begun."""
        chunk = self._schedule.chunks[index]
        before = sum(
            earlier.num_steps for earlier in self._schedule.chunks[:index]
            if earlier.epoch == chunk.epoch
        )
        of_epoch = sum(
            other.num_steps for other in self._schedule.chunks if other.epoch == chunk.epoch
        )
        done = before + self.trainer.step_in_iteration
        return {"step": self.trainer.steps_done, "epoch": chunk.epoch + done / of_epoch}

    def _tell(self, done: int, total: int) -> None:
        """Report the chunk's steps as steps of the schedule."""
        del done, total
        if self._on_progress is not None:
            self._on_progress(self.trainer.steps_done, self._schedule.num_steps)

    def _save(self, chunk: int) -> None:
        if not self.trainer.ranks.is_first:
            return
        target = step_checkpoint(self._folder, self.trainer.steps_done)
        save_checkpoint(target, self.trainer, meta=self._meta | {
            "portion": chunk,
            "steps": self.trainer.steps_done,
            "total_steps": self._schedule.num_steps,
            "points": self.points,
        })
        for older in step_checkpoints(self._folder)[:-_KEPT]:
            # One that cannot be removed does no harm: the newest is what counts.
            with suppress(UsageError, OSError):
                remove(older)


def _meta(checkpoint: Path) -> Json:
    meta = read_manifest(checkpoint).meta
    if not {"portion", "steps", "total_steps", "points"} <= meta.keys():
        raise CorruptDataError(
            f"{checkpoint} is not a checkpoint of supervised training; delete it to begin again"
        )
    return meta


def _trained(report: TrainingReport) -> dict[str, float]:
    figures = {name: getattr(report, name) for name in _TRAINED_FIGURES}
    return {name: figure for name, figure in figures.items() if figure is not None}


def _measured(trainer: Trainer, window: ReplayWindow) -> dict[str, float]:
    report = measure_holdout(trainer, window)
    if report is None:
        return {}
    return {f"holdout_{k}": v for k, v in asdict(report).items() if v is not None}
