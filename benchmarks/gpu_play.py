"""Training and self-play on a GPU: captured steps, and groups of games that keep it busy."""

import time
from functools import partial
from typing import Final

from benchmarks.gpu_bench import GpuBench, add_kernels, busy_share
from benchmarks.random_data import random_positions, random_window
from benchmarks.search import FreeEvaluator
from benchmarks.self_play import all_at_once
from benchmarks.train import samples_per_s
from chess_snn.data import ReplayWindow
from chess_snn.games import get_game
from chess_snn.nets import Evaluator, NetConfig, build_network, make_evaluator, net_config
from chess_snn.nets.gpu.cuda_evaluator import NUM_LANES
from chess_snn.nets.gpu.static_batch import ROW_SIZES
from chess_snn.search import Search, SearchSettings, make_search
from chess_snn.self_play import play_games
from chess_snn.training import TrainingSettings
from chess_snn.training.settings import Precision

PLIES_A_GAME: Final = 195
"""Games/s are stated for games of this length."""
GROUPS: Final[dict[int, tuple[int, ...]]] = {0: (4, 8), 16: (8,), 32: (2, 4, 8, 16), 64: (8,)}
"""Groups of games, by simulations."""
_BUSY_TARGET: Final = ("small", 32, 8)
"""Size, simulations and groups with which the device should be busy nine tenths of the time."""
_HOST_GROUPS: Final = 2
"""Groups whose host time is measured side by side, so that they share the memory."""
_GAME: Final = get_game("chess")


def training(bench: GpuBench) -> None:
    """Add samples/s: captured, launched one by one, in fp32, and the ReLU baseline's."""
    window = random_window(64 if bench.quick else 256, 40)
    for size in ["tiny"] if bench.quick else ["tiny", "small", "base"]:
        config = net_config(size)
        captured = _samples_per_s(bench, window, config)
        bench.report.add(f"{size}: training", captured, "samples/s",
                         at_least=180_000 if size == "small" else None)
        if bench.on_gpu:
            eager = _samples_per_s(bench, window, config, captured=False)
            bench.report.add(f"{size}: captured over eager", captured / eager, "times")
        if size == ("tiny" if bench.quick else "small"):
            rate = _samples_per_s(bench, window, config, "fp32")
            bench.report.add(f"{size}: training in fp32 over bf16", rate / captured, "times")
        baseline = _samples_per_s(bench, window, config.baseline())
        bench.report.add(
            f"{size}: training, slowdown against the ReLU baseline, a tick",
            baseline / captured / config.ticks, "times", at_most=1.5,
        )
    if bench.on_gpu:
        works = bench.traced("training-small", lambda: _samples_per_s(
            bench, window, net_config("small"), steps=10
        ))
        bench.report.add("small: device busy in training", busy_share(works), "share")
        add_kernels(bench.report, "small: training, device time in neurons", works)


def _samples_per_s(
    bench: GpuBench, window: ReplayWindow, config: NetConfig, precision: Precision = "bf16",
    captured: bool = True, steps: int | None = None,
) -> float:
    """Samples/s of a trainer that has warmed up, without splitting the batch."""
    size = 32 if bench.quick else 2048
    settings = TrainingSettings(batch_size=size, micro_batch=size, precision=precision)
    steps = steps or (2 if bench.quick else 60)
    return samples_per_s(window, config, settings, steps, bench.device, captured, warm_steps=6)


def self_play(bench: GpuBench) -> None:
    """Add positions/s, games/s and the device's busy share, by simulations and groups."""
    size = "tiny" if bench.quick else "small"
    network = build_network(_GAME.spec, net_config(size), seed=0)
    with make_evaluator(network, device=bench.device) as evaluator:
        _warm_all_lanes(evaluator, 64 if bench.quick else ROW_SIZES[-1])
        swept: dict[int, tuple[int, ...]] = {0: (2,), 4: (2,)} if bench.quick else GROUPS
        for simulations, numbers in swept.items():
            for groups in numbers:
                _play(bench, evaluator, size, simulations, groups)


def _play(
    bench: GpuBench, evaluator: Evaluator, size: str, simulations: int, groups: int
) -> None:
    num_games = 16 if bench.quick else 16384
    plies = 4 if bench.quick else 320 // simulations if simulations else 80
    each = -(-num_games // groups)
    name = f"{size}, {f'{simulations} simulations' if simulations else 'policy only'}"
    host_s = _host_seconds(simulations, each, plies)
    bench.report.add(f"{name}, groups of {each}: host", host_s * 1e6, "µs/evaluation")

    searches = [_search(evaluator, simulations, each) for _ in range(groups)]
    play = partial(play_games, _GAME, searches, num_games=num_games, seed=1)
    play(settings=all_at_once(1, num_games))
    name = f"{name}, {groups} groups"
    _, played = play(settings=all_at_once(plies, num_games))
    per_s = played.positions / played.seconds
    bench.report.add(name, per_s * (1 + simulations), "evaluations/s")
    bench.report.add(f"{name}, games of {PLIES_A_GAME} plies", per_s / PLIES_A_GAME, "games/s",
                     at_least=None if simulations else 4000)
    bench.report.add(f"{name}: a batch was at the device", played.network_share, "share")
    if bench.on_gpu:
        # A run of its own: the profiler costs time.
        works = bench.traced(f"self-play-{simulations}-{groups}", partial(
            play, settings=all_at_once(plies // 2, num_games)
        ))
        is_target = (size, simulations, groups) == _BUSY_TARGET
        bench.report.add(f"{name}: device busy", busy_share(works), "share",
                         at_least=0.9 if is_target else None)


def _host_seconds(simulations: int, each: int, plies: int) -> float:
    """Processor seconds of the host for each evaluation, with groups of ``each`` games."""
    num_games = _HOST_GROUPS * each
    searches = [_search(FreeEvaluator(), simulations, each) for _ in range(_HOST_GROUPS)]
    play_games(_GAME, searches, all_at_once(1, num_games), num_games=num_games, seed=1)
    begun = time.process_time()
    _, played = play_games(
        _GAME, searches, all_at_once(plies, num_games), num_games=num_games, seed=1
    )
    return (time.process_time() - begun) / (played.positions * (1 + simulations))


def _search(evaluator: Evaluator, simulations: int, num_games: int) -> Search:
    """The search of a campaign; without simulations, of the policy alone."""
    return make_search(
        _GAME, evaluator, SearchSettings(), simulations=simulations, num_games=num_games
    )


def _warm_all_lanes(evaluator: Evaluator, num_rows: int) -> None:
    """Let each lane capture every size of batches of at most ``num_rows`` positions."""
    for size in ROW_SIZES:
        positions = random_positions(size)
        for _ in range(NUM_LANES):
            positions.ask(evaluator)
        if size >= num_rows:
            return
