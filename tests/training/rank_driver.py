"""One rank of a training under test: ``python -m rank_driver FILE``, in a process of its own.

FILE is JSON: ``shard``, ``out`` and ``cases``, which are trained one after the other. What a rank
saw and came to is written to ``<out>/<case>-<rank>.json`` and ``.safetensors``.
"""

import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path

import torch
from safetensors.torch import save_file

from chess_snn.data import ReplayWindow
from chess_snn.errors import ChessSnnError, UsageError
from chess_snn.games import get_game
from chess_snn.nets import build_network, net_config
from chess_snn.processes import end_with_parent
from chess_snn.training import (
    ALONE,
    DatasetShard,
    IterationPlan,
    RankInfo,
    SupervisedSettings,
    Trainer,
    TrainingSettings,
    measure_holdout,
    plan_schedule,
    train_supervised,
)
from chess_snn.training.ranks import LINE, joined_ranks

GAME = get_game("chess")
SETTINGS = {
    "batch_size": 64, "micro_batch": 16, "warmup_steps": 3, "learning_rate": 1e-2,
    "precision": "fp32",
}
TIMEOUT_S = 60.0
LEARNT_POSITIONS = 6000
LEARNT_FIGURES = (
    "total_loss", "policy_loss", "value_loss", "gradient_norm", "holdout_policy_loss",
    "holdout_value_loss", "holdout_policy_accuracy",
)


@dataclass
class Case:
    """Some steps, and what goes wrong in them."""

    name: str
    settings: dict = field(default_factory=dict)
    steps: int = 5
    fault: str = ""
    """``oom``, ``freeze``, ``sleep``, ``kill``, ``settings``, ``window`` or ``stream``."""
    fault_rank: int = 1
    fault_step: int = 2
    is_supervised: bool = False
    """Whether it is a schedule through the shard as a dataset, 2 epochs with checkpoints."""
    is_refused: bool = False
    """Whether an error is expected; it is written to ``<out>/<case>-<rank>.txt``."""


@dataclass
class Outcome:
    """Results of one rank."""

    figures: list
    """Figures of each step, the same on all ranks."""
    rows: list
    """Rows of the window that this rank computed, by step."""
    counts: list
    """Micro-batches of each rank, by step."""
    micro_batches: list
    holdout: list
    """Value loss on held-out games before and after."""
    state: dict
    """State of the network."""


def learn(case, shard, folder, ranks=ALONE):
    """Learn from ``shard`` as a dataset, with checkpoints in ``folder``."""
    settings = TrainingSettings(**(SETTINGS | case.settings))
    supervised = SupervisedSettings(epochs=2)
    given = [DatasetShard(shard, LEARNT_POSITIONS)]  # the newest games of the shard
    schedule = plan_schedule(given, supervised, settings, seed=7)

    def begin():
        return Trainer(
            GAME, case_network(), supervised.applied_to(settings), 7, ranks=ranks
        )

    trainer, points = train_supervised(GAME, schedule, begin, folder, ranks=ranks)
    figures = [[point.get(name) for name in LEARNT_FIGURES] for point in points]
    state = {k: v.clone().contiguous() for k, v in trainer.network.state_dict().items()}
    return Outcome(figures, [], [], [], [], state)


def case_network():
    shape = {"blocks": 1, "channels": 8, "value_channels": 2, "value_hidden": 8}
    return build_network(GAME.spec, net_config("tiny", **shape), 0)


def train(case, shard, ranks=ALONE):
    """Train ``case`` as one of ``ranks``, one call of ``run`` a step."""
    window = ReplayWindow.load(GAME, [shard], 100_000, holdout_every=20, discount=0.99)
    settings, seed = SETTINGS | case.settings, 7
    is_bad = case.fault and ranks.rank == case.fault_rank
    if is_bad and case.fault == "settings":
        settings["weight_decay"] = 0.5
    if is_bad and case.fault == "window":
        window = ReplayWindow.load(GAME, [shard], 3_000, holdout_every=20, discount=0.99)
    if is_bad and case.fault == "stream":
        seed = 8
    trainer = Trainer(GAME, case_network(), TrainingSettings(**settings), seed, ranks=ranks)
    seen = watch_rows(window)
    plan = IterationPlan(case.steps, 0.0, 1.0)
    outcome = Outcome([], [], [], [], [measure_holdout(trainer, window).value_loss], {})
    for step in range(case.steps):
        if is_bad and step == case.fault_step:
            break_down(case.fault, trainer)
        outcome.counts.append(trainer._division.counts)
        seen.clear()
        report = trainer.run(window, plan, stop_at=step + 1)
        outcome.figures.append([
            report.value_loss, report.policy_loss, report.plies_left_loss, report.policy_entropy,
            report.target_entropy, report.value_mean_abs, report.value_error, report.gradient_norm,
            report.spike_rate or 0.0,
        ])
        outcome.rows.append(seen[-1])
        outcome.micro_batches += [list(astuple(use)) for use in report.micro_batches]
    outcome.holdout.append(measure_holdout(trainer, window).value_loss)
    outcome.state = {k: v.clone().contiguous() for k, v in trainer.network.state_dict().items()}
    return outcome


def watch_rows(window):
    """A list that grows by the rows of every batch that is gathered from ``window``."""
    seen, gather = [], window.gather

    def gathered(rows):
        seen.append(rows.tolist())
        return gather(rows)

    window.gather = gathered
    return seen


def break_down(fault, trainer):
    """After the first micro-batch of the next share, once."""
    gradients, backward = trainer._step.gradients, trainer._step.gradients._backward

    def failing(network, batch):
        gradients._backward = backward
        figures = backward(network, batch)
        if fault == "oom":
            raise torch.OutOfMemoryError("injected")
        if fault == "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif fault == "sleep":
            time.sleep(600)
        elif fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == "abort":
            print("terminate called after 42 errors", file=sys.stderr, flush=True)
            os.abort()
        return figures

    gradients._backward = failing


def main(file):
    info = RankInfo.from_environment()
    end_with_parent(os.getppid(), signal.SIGKILL)
    torch.set_num_threads(1)
    task = json.loads(Path(file).read_text())
    with joined_ranks(info, "cpu", task.get("timeout_s", TIMEOUT_S)) as ranks:
        if ranks.is_first:
            ranks.tell(LINE, "begun")
        for values in task["cases"]:
            case = Case(**values)
            stem = Path(task["out"], f"{case.name}-{ranks.rank}")
            try:
                if case.is_supervised:
                    folder = Path(task["out"], f"{case.name}-steps")
                    outcome = learn(case, Path(task["shard"]), folder, ranks)
                else:
                    outcome = train(case, Path(task["shard"]), ranks)
            except UsageError as error:
                if not case.is_refused:
                    raise
                stem.with_suffix(".txt").write_text(str(error))
                continue
            save_file(outcome.state, stem.with_suffix(".safetensors"))
            body = {name: getattr(outcome, name) for name in
                    ("figures", "rows", "counts", "micro_batches", "holdout")}
            stem.with_suffix(".json").write_text(json.dumps(body))
    threads = []
    for name in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # it has ended meanwhile
            threads.append(name.read_text())
    Path(task["out"], f"threads-{ranks.rank}.json").write_text(json.dumps(threads))


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except ChessSnnError as error:
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        sys.exit(2)
