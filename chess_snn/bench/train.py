"""Training steps: spiking network and ordinary twin, fp32 and bf16, on random games.

All that a campaign trains with is on: search targets, mirror, surprise, plies left. SpikingJelly
and snnTorch train the same network on one core, in the same run: the same samples, losses and
optimiser, by the same trainer.
"""

import copy
import tempfile
from pathlib import Path
from typing import Final

from chess_snn.bench.report import BenchReport
from chess_snn.bench.spiking_peers import LAYOUTS, installed_peers, notes_on_missing_peers
from chess_snn.bench.store import play_random_games, with_search_targets
from chess_snn.bench.timing import QUICK, Pace, Work, rates_in_turn, torch_threads
from chess_snn.cores import num_cores
from chess_snn.data import ReplayWindow, write_shard
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, Network, build_network, net_config
from chess_snn.training import IterationPlan, Trainer, TrainingSettings
from chess_snn.training.settings import Precision

_BATCH_SIZE = 256
_STEPS = {"tiny": 40, "small": 8}
_STEPS_QUICK = 2
_WARM_STEPS = 3
_NUM_GAMES = 64
_PLY_CAP = 60

_AIM_A_TICK = 1.5
"""Slowdown of spiking a tick that is asked for where a GPU computes it."""
_PEERED = "small"
_PEER_PACE = Pace(rounds=3, turn_s=0.0)
_PEER_BATCH_SIZE_QUICK = 16
_OUR_PRECISIONS: Final[tuple[Precision, ...]] = ("bf16", "fp32")
_PEER_PRECISIONS: Final[dict[str, tuple[Precision, ...]]] = {
    "SpikingJelly": ("bf16", "fp32"), "snnTorch": ("bf16",),
}
_FASTEST: Final[Precision] = "bf16"
_BARS: Final = {("SpikingJelly", "fp32"): 1.5}
"""Least ratio of our fastest samples/s to a peer's in this precision, its default, on one core."""


def run(quick: bool = False) -> BenchReport:
    """Samples/s of each; about 3 minutes on two cores, or some seconds."""
    report = BenchReport("train")
    window = _window()
    with torch_threads(num_cores()):
        _add_ours(report, window, quick)
    batch_size = _PEER_BATCH_SIZE_QUICK if quick else _BATCH_SIZE
    _add_peers(report, window, batch_size, QUICK if quick else _PEER_PACE)
    report.notes.append(
        f"Batch {_BATCH_SIZE}, {num_cores()} threads; where it says one core, batch {batch_size} "
        f"on both sides. A GPU is asked for at most {_AIM_A_TICK:g} times the twin's time a tick; "
        "on a CPU it is information."
    )
    return report


def _add_ours(report: BenchReport, window: ReplayWindow, quick: bool) -> None:
    """Steps as a campaign makes them."""
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


def _add_peers(report: BenchReport, window: ReplayWindow, batch_size: int, pace: Pace) -> None:
    """Steps of `small` on one core, forward, backward and optimiser: ours and theirs in turn."""
    network = build_network(get_game("chess").spec, net_config(_PEERED), seed=0)
    ours: dict[Precision, Work] = {
        precision: _step(_peer_trainer(copy.deepcopy(network), precision, batch_size), window)
        for precision in _OUR_PRECISIONS
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
    report.notes += notes_on_missing_peers()


def _peer_trainer(network: Network, precision: Precision, batch_size: int) -> Trainer:
    """One of the comparison, peer's or ours: the batch in one part.

    A peer's neurons remember where they are from call to call.
    """
    settings = TrainingSettings(
        batch_size=batch_size, micro_batch=batch_size, precision=precision
    )
    return Trainer(get_game("chess"), network, settings, seed=0)


def _step(trainer: Trainer, window: ReplayWindow) -> Work:
    """One more training step each time, on the same samples for every trainer."""
    one_step = IterationPlan(num_steps=1, progress_first=0.0, progress_last=1.0)

    def run() -> None:
        trainer.begin_iteration(0)
        trainer.run(window, one_step)

    return Work(run, trainer.settings.batch_size)


def _samples_per_s(
    window: ReplayWindow, config: NetConfig, precision: Precision, steps: int
) -> float:
    network = build_network(get_game("chess").spec, config, seed=0)
    settings = TrainingSettings(batch_size=_BATCH_SIZE, precision=precision)
    trainer = Trainer(get_game("chess"), network, settings, seed=0)
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
