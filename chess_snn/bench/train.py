"""Training steps: spiking network and ordinary twin, fp32 and bf16, on random games."""

import os
import tempfile
from pathlib import Path

import torch

from chess_snn.bench.report import BenchReport
from chess_snn.data import ReplayWindow, write_shard
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, build_network, make_evaluator, net_config
from chess_snn.search import PolicySearch
from chess_snn.self_play import SelfPlaySettings, play_games
from chess_snn.training import IterationPlan, Trainer, TrainingSettings
from chess_snn.training.settings import Precision

_BATCH_SIZE = 256
_STEPS = {"tiny": 40, "small": 8}
_STEPS_QUICK = 2
_WARM_STEPS = 3


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
    plan = IterationPlan(iteration=0, num_iterations=1, num_steps=_WARM_STEPS + steps)
    trainer.run(window, plan, stop_at=_WARM_STEPS)
    return trainer.run(window, plan).samples_per_s


def _window() -> ReplayWindow:
    """A window over games of an untrained network, which plays nearly at random."""
    game, settings = get_game("chess"), SelfPlaySettings(max_plies=60)
    network = build_network(game.spec, net_config("tiny"), seed=0)
    with make_evaluator(network, num_threads=os.cpu_count() or 1) as evaluator:
        search = PolicySearch(game, evaluator)
        records, _ = play_games(game, [search], settings, num_games=64, seed=0)
    with tempfile.TemporaryDirectory() as scratch:
        shard = Path(scratch) / "shard"
        write_shard(shard, records, {"game": "chess"})
        return ReplayWindow.load(game, [shard], capacity=records.num_positions)
