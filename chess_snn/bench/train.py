"""Training steps: spiking network and ordinary twin, fp32 and bf16, on random games.

All that a campaign trains with is on: search targets, mirror, surprise, plies left.
"""

import os
import tempfile
from pathlib import Path

import torch

from chess_snn.bench.report import BenchReport
from chess_snn.bench.store import play_random_games, with_search_targets
from chess_snn.data import ReplayWindow, write_shard
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, build_network, net_config
from chess_snn.training import IterationPlan, Trainer, TrainingSettings
from chess_snn.training.settings import Precision

_BATCH_SIZE = 256
_STEPS = {"tiny": 40, "small": 8}
_STEPS_QUICK = 2
_WARM_STEPS = 3
_NUM_GAMES = 64
_PLY_CAP = 60


def run(quick: bool = False) -> BenchReport:
    """Samples/s of each; about 2 minutes on two cores, or a few seconds."""
    report = BenchReport("train")
    torch.set_num_threads(os.cpu_count() or 1)
    window = _window()
    for size, full_steps in _STEPS.items():
        steps = _STEPS_QUICK if quick else full_steps
        spiking = net_config(size)
        speeds = {}
        for precision in ("fp32", "bf16"):
            speeds[precision] = _samples_per_s(window, spiking, precision, steps)
            report.add(f"{size}: spiking, {precision}", speeds[precision], "samples/s")
        twin = _samples_per_s(window, spiking.twin(), "bf16", steps)
        report.add(f"{size}: ordinary twin, bf16", twin, "samples/s")
        report.add(f"{size}: spiking over twin, per tick",
                   twin / speeds["bf16"] / spiking.ticks, "times")
        report.add(f"{size}: bf16 over fp32", speeds["bf16"] / speeds["fp32"], "times")
    report.notes.append(f"Batch {_BATCH_SIZE}, {torch.get_num_threads()} threads.")
    return report


def _samples_per_s(
    window: ReplayWindow, config: NetConfig, precision: Precision, steps: int
) -> float:
    game = get_game("chess")
    settings = TrainingSettings(batch_size=_BATCH_SIZE, precision=precision)
    trainer = Trainer(game, build_network(game.spec, config, seed=0), settings, seed=0)
    plan = IterationPlan(_WARM_STEPS + steps, progress_first=0.0, progress_last=1.0)
    trainer.run(window, plan, stop_at=_WARM_STEPS)
    return trainer.run(window, plan).samples_per_s


def _window() -> ReplayWindow:
    """A window over random games with targets as a search writes them."""
    game = get_game("chess")
    records = with_search_targets(game, play_random_games(game, _NUM_GAMES, _PLY_CAP))
    with tempfile.TemporaryDirectory() as scratch:
        shard = Path(scratch) / "shard"
        write_shard(shard, records, {"game": "chess"})
        return ReplayWindow.load(game, [shard], capacity=records.num_positions)
