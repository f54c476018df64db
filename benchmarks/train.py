"""Training steps: integer neurons and ReLU, fp32 and bf16, and torch's layers, on random games.

Everything that a campaign trains with is on: search targets, mirror, surprise, plies left.
SpikingJelly and snnTorch train the same network on one core, in the same run, with the same
samples, losses, optimiser and trainer.
"""

import copy
from contextlib import nullcontext
from typing import Final
from unittest.mock import patch

import torch

from benchmarks.harness import (
    QUICK,
    Pace,
    Quick,
    Report,
    Work,
    benchmark,
    rates_in_turn,
    torch_threads,
)
from benchmarks.random_data import random_window
from benchmarks.spiking_peers import LAYOUTS, installed_peers, notes_on_missing_peers
from chess_snn.cores import num_cores
from chess_snn.data import ReplayWindow
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, Network, build_network, net_config
from chess_snn.nets.model import layers
from chess_snn.training import IterationPlan, Trainer, TrainingSettings
from chess_snn.training.settings import Precision

_BATCH_SIZE = 256
_SIZES = "tiny", "small"
_PACE = Pace(rounds=7, turn_s=1.0)
_BY_TORCH: Final = "bf16 by torch's layers"
_NUM_GAMES = 64
_MAX_PLIES = 60

_PEERED = "small"
_PEER_PACE = Pace(rounds=3, turn_s=0.0)
_PEER_BATCH_SIZE_QUICK = 16
_PRECISIONS: Final[tuple[Precision, ...]] = ("fp32", "bf16")
_PEER_PRECISIONS: Final[dict[str, tuple[Precision, ...]]] = {
    "SpikingJelly": ("bf16", "fp32"), "snnTorch": ("bf16",),
}
_FASTEST: Final[Precision] = "bf16"
_BARS: Final = {("SpikingJelly", "fp32"): 1.5}
"""Least ratio of our fastest samples/s to a peer's in this precision, its default, on one core."""


def run(report: Report, quick: Quick = False) -> None:
    """Training steps in both precisions, by torch's layers too, and beside other libraries.

    Takes about 3 minutes on two cores.
    """
    window = random_window(_NUM_GAMES, _MAX_PLIES)
    with torch_threads(num_cores()):
        _add_ours(report, window, QUICK if quick else _PACE)
    batch_size = _PEER_BATCH_SIZE_QUICK if quick else _BATCH_SIZE
    add_peers(report, window, batch_size, QUICK if quick else _PEER_PACE)
    report.note(
        f"Batch {_BATCH_SIZE}, {num_cores()} threads; where it says one core, batch {batch_size} "
        "on both sides."
    )


command = benchmark("train", run)


def _add_ours(report: Report, window: ReplayWindow, pace: Pace) -> None:
    """Add steps as a campaign makes them, of networks of integer neurons."""
    for size in _SIZES:
        config = net_config(size, activation="ilif", ticks=1, levels=8)
        work = {name: _steps_of(window, config, name) for name in (*_PRECISIONS, _BY_TORCH)}
        work["ReLU"] = _steps_of(window, config.baseline(), "bf16")
        rates = rates_in_turn(work, pace)
        for name, rate in rates.items():
            report.add(f"{size}: {name}", rate, "samples/s")
        report.add(f"{size}: integer neurons over ReLU", rates["bf16"] / rates["ReLU"], "times")
        report.add(f"{size}: bf16 over fp32", rates["bf16"] / rates["fp32"], "times")
        report.add(f"{size}: bf16 over {_BY_TORCH}", rates["bf16"] / rates[_BY_TORCH], "times")


def _steps_of(window: ReplayWindow, config: NetConfig, name: str) -> Work:
    """Training steps in a precision, or in bf16 by torch's layers."""
    by_torch = name == _BY_TORCH
    settings = TrainingSettings(
        batch_size=_BATCH_SIZE, precision="fp32" if name == "fp32" else "bf16"
    )
    network = build_network(get_game("chess").spec, config, seed=0)
    step = _step(Trainer(get_game("chess"), network, settings, seed=0), window)

    def run() -> None:
        torchs = patch.multiple(layers, can_run=_never, can_convolve=_never)
        with torchs if by_torch else nullcontext():
            step.run()

    return Work(run, step.items)


def _never(*_arguments: object) -> bool:
    return False


def add_peers(report: Report, window: ReplayWindow, batch_size: int, pace: Pace) -> None:
    """Add steps of `small` on one core: forward, backward and optimiser, ours and theirs."""
    network = build_network(get_game("chess").spec, net_config(_PEERED), seed=0)
    ours: dict[Precision, Work] = {
        precision: _step(_peer_trainer(copy.deepcopy(network), precision, batch_size), window)
        for precision in reversed(_PRECISIONS)
    }
    theirs: dict[tuple[str, Precision, str], Work] = {}
    for peer, make in installed_peers().items():
        for precision in _PEER_PRECISIONS[peer]:
            for layout, memory_format in LAYOUTS.items():
                trainer = _peer_trainer(make(network), precision, batch_size)
                trainer.network.to(memory_format=memory_format)
                theirs[peer, precision, layout] = _step(trainer, window)
    with torch_threads(1):
        rates = rates_in_turn({**ours, **theirs}, pace)
    for precision in ours:
        report.add(f"{_PEERED}: ours, {precision}, one core", rates[precision], "samples/s")
    for peer, precision, layout in theirs:
        rate = rates[peer, precision, layout]
        report.add(f"{_PEERED}: {peer}, {precision}, {layout}, one core", rate, "samples/s")
    for peer, precision in dict.fromkeys((peer, precision) for peer, precision, _ in theirs):
        fastest = max(rates[peer, precision, layout] for layout in LAYOUTS)
        for our_precision in dict.fromkeys((_FASTEST, precision)):
            bar = _BARS.get((peer, precision)) if our_precision == _FASTEST else None
            report.add(
                f"{_PEERED}: ours in {our_precision} over {peer} in {precision}",
                rates[our_precision] / fastest, "times", at_least=bar,
            )
    for note in notes_on_missing_peers():
        report.note(note)


def _peer_trainer(network: Network, precision: Precision, batch_size: int) -> Trainer:
    """A trainer for the comparison, ours or a peer's, that does not split the batch.

    A peer's neurons keep their state between calls.
    """
    settings = TrainingSettings(
        batch_size=batch_size, micro_batch=batch_size, precision=precision
    )
    return Trainer(get_game("chess"), network, settings, seed=0)


def _step(trainer: Trainer, window: ReplayWindow) -> Work:
    """One more training step at each call, on the same samples for every trainer."""
    one_step = IterationPlan(num_steps=1, progress_first=0.0, progress_last=1.0)

    def run() -> None:
        trainer.begin_iteration(0)
        trainer.run(window, one_step)

    return Work(run, trainer.settings.batch_size)


def samples_per_s(
    window: ReplayWindow, config: NetConfig, settings: TrainingSettings, steps: int,
    device: torch.device | str = "cpu", captured: bool = True, warm_steps: int = 3,
) -> float:
    """Samples/s of ``steps`` training steps, after ``warm_steps`` that are not counted."""
    network = build_network(get_game("chess").spec, config, seed=0)
    trainer = Trainer(
        get_game("chess"), network, settings, seed=0, device=device, captured=captured
    )
    plan = IterationPlan(warm_steps + steps, progress_first=0.0, progress_last=1.0)
    trainer.run(window, plan, stop_at=warm_steps)
    return trainer.run(window, plan).samples_per_s
