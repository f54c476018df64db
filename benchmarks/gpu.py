"""Every figure that needs a GPU; without one, ``--device cpu --quick`` runs the same code.

Needs neither Prefect, Dask nor MLflow. SpikingJelly and snnTorch are compared with if installed.
"""

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import torch
import typer

from benchmarks.harness import QUICK, Pace, Work, rates_in_turn
from benchmarks.net import matrix_flops_per_s
from benchmarks.random_data import random_positions, random_window
from benchmarks.report import Quick, Report, benchmark
from benchmarks.self_play import all_at_once
from benchmarks.spiking_peers import infer, installed_peers, notes_on_missing_peers
from benchmarks.train import samples_per_s
from chess_snn.data import ReplayWindow
from chess_snn.errors import UsageError
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, Precision, build_network, freeze, make_evaluator, net_config
from chess_snn.nets.inference_neurons import InferenceNeurons, ReferenceNeurons, choose_neurons
from chess_snn.nets.neuron import lif, lif_on_gpu
from chess_snn.nets.operations import POLICY_READOUT, count_operations
from chess_snn.nets.static_batch import StaticBatch
from chess_snn.search import SearchSettings, make_search
from chess_snn.self_play import play_games
from chess_snn.training import TrainingSettings
from chess_snn.training.settings import Precision as TrainingPrecision

PARTS: Final = ("neurons", "inference", "peers", "training", "self-play")
TARGETS: Final = {"small": 400_000.0, "base": 100_000.0}
"""Least evaluations/s at the largest batch."""
PLIES_A_GAME: Final = 195
"""Games/s are stated for games of this length."""
NEURON_KERNELS: Final = frozenset(
    {"fire", "add_and_fire", "mean_rate", "fire_and_keep_charge", "backward"}
)

_PACE: Final = Pace(rounds=5, turn_s=0.05)
_DEVICE_WORK: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
"""Categories of a torch trace that are work of a GPU."""
_PRECISIONS: Final[tuple[Precision, ...]] = ("bf16", "fp32")
_TRAINED_PRECISIONS: Final[tuple[TrainingPrecision, ...]] = ("fp16", "fp32")
_GAME: Final = get_game("chess")


def run(
    report: Report, quick: Quick = False,
    device: Annotated[str, typer.Option(help="cuda, cuda:1 or cpu.")] = "cuda",
    part: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join(PARTS)}; all by default.")
    ] = None,
    traces: Annotated[
        Path | None, typer.Option(help="Folder for traces that Perfetto can show.")
    ] = None,
) -> None:
    """Every figure that needs a GPU: neurons, inference, training, self-play.

    Takes at most ten minutes.

    python -m benchmarks gpu --part inference --part training --traces traces
    """
    if unknown := [name for name in part or () if name not in PARTS]:
        raise UsageError(f"--part must be one of {', '.join(PARTS)}, got {unknown[0]!r}")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(
            f"--device {device}: {str(error).splitlines()[0]} (torch sees "
            f"{torch.cuda.device_count()} GPUs); without one: --device cpu --quick"
        ) from error
    bench = _Bench(report, torch.device(device), quick, traces)
    name = torch.cuda.get_device_name(bench.device) if bench.on_gpu else "no GPU"
    report.note(f"torch {torch.__version__}, {name}")
    measures = {
        "neurons": bench.neurons, "inference": bench.inference, "peers": bench.peers,
        "training": bench.training, "self-play": bench.self_play,
    }
    bench.machine()
    for name in part or PARTS:
        report.progress(name)
        measures[name]()


command = benchmark("gpu", run)


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """One kernel or copy in a trace."""

    name: str
    start_us: float
    end_us: float


def read_trace(path: Path) -> list[DeviceWork]:
    """The work of GPUs in a trace that torch's profiler exported, by its start."""
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    works = [
        DeviceWork(event["name"], event["ts"], event["ts"] + event["dur"])
        for event in events if event.get("ph") == "X" and event.get("cat") in _DEVICE_WORK
    ]
    return sorted(works, key=lambda work: work.start_us)


def busy_share(works: list[DeviceWork]) -> float:
    """Share of the time from the first start to the last end in which the device worked."""
    if not works:
        return 0.0
    busy, until = 0.0, works[0].start_us
    for work in works:
        busy += max(0.0, work.end_us - max(work.start_us, until))
        until = max(until, work.end_us)
    return busy / (until - works[0].start_us)


def add_kernels(
    report: Report, name: str, works: list[DeviceWork], at_most: float | None = None
) -> None:
    """Add the neurons' share of device time, and a note for each of the longest kernels."""
    spent: defaultdict[str, float] = defaultdict(float)
    for work in works:
        spent[work.name] += work.end_us - work.start_us
    total = sum(spent.values()) or 1.0
    neurons = sum(us for kernel, us in spent.items() if kernel in NEURON_KERNELS)
    report.add(name, neurons / total, "share", at_most=at_most)
    for kernel, us in sorted(spent.items(), key=lambda item: -item[1])[:8]:
        report.note(f"{us / total:6.1%}  {kernel[:90]}")


class _Bench:
    """The parts, and what they share."""

    def __init__(
        self, report: Report, device: torch.device, quick: bool, traces: Path | None
    ) -> None:
        self.report, self.device, self.quick, self.traces = report, device, quick, traces
        self.on_gpu = device.type == "cuda"
        self.peak_flops = self.bytes_per_s = float("nan")

    def machine(self) -> None:
        """Add the peak of matrix products in bf16 and the bandwidth of memory."""
        side, size = (256, 1 << 22) if self.quick else (8192, 1 << 31)
        self.peak_flops = matrix_flops_per_s(torch.bfloat16, side, self.device, self.wait)
        source = torch.randn(size // 4, device=self.device)
        target = torch.empty_like(source)
        self.bytes_per_s = 2 * size * self.rate(lambda: target.copy_(source))
        self.report.add("matrix product, bf16", self.peak_flops / 1e12, "TFLOP/s")
        self.report.add("copy within the device", self.bytes_per_s / 1e9, "GB/s")

    def neurons(self) -> None:
        """Add the fused passes beside the bandwidth and the reference."""
        rows, channels = (64, 32) if self.quick else (4096, 128)
        config = NetConfig(ticks=4)
        current = self.images(4, rows, channels)
        shortcut, bias = self.images(4, rows, channels), self.randn(channels)
        size = current.numel() * current.element_size()
        fused, reference = choose_neurons(config, self.device), ReferenceNeurons(config)
        self.report.note(f"neurons: {fused.kind}")

        def fire(neurons: InferenceNeurons) -> object:
            return neurons.fire(current, bias)

        def add_and_fire(neurons: InferenceNeurons) -> object:
            return neurons.add_and_fire(shortcut, current, bias)

        for name, call, num_bytes in (
            ("fire", fire, 2 * size), ("add and fire", add_and_fire, 4 * size)
        ):
            rate = self.rate(partial(call, fused))
            self.report.add(f"{name}: of the bandwidth", num_bytes * rate / self.bytes_per_s,
                            "share", at_least=0.7)
            self.report.add(f"{name}: reference over fused",
                            rate / self.rate(partial(call, reference)), "times")
        current.requires_grad_(True)
        for name, neuron in {"fused": lif_on_gpu() if self.on_gpu else lif,
                             "reference": lif}.items():
            spikes = neuron(current, 0.5, 0.5, 2.0)
            gradient = partial(
                torch.autograd.grad, spikes, current, torch.randn_like(spikes), retain_graph=True
            )
            self.report.add(f"backward, {name}: of the bandwidth",
                            4 * size * self.rate(gradient) / self.bytes_per_s, "share")

    def inference(self) -> None:
        """Add evaluations/s by size, T and batch, the baseline's, and where the time goes."""
        sizes = ["tiny"] if self.quick else ["tiny", "small", "base", "large"]
        batches = [32, 64] if self.quick else [256, 1024, 4096]
        for size in sizes:
            config = net_config(size)
            rates = {batch: self.evaluation_rate(config, batch) for batch in batches}
            for batch, rate in rates.items():
                self.report.add(
                    f"{size}, T = {config.ticks}, batch {batch}", rate, "evaluations/s",
                    at_least=TARGETS.get(size) if batch == max(batches) else None,
                )
            best = max(rates.values())
            operations = count_operations(_GAME.spec, config)
            macs = operations.macs - operations.macs_of(POLICY_READOUT)
            self.report.add(f"{size}: of the peak", best * 2 * macs / self.peak_flops, "share")
            moved = operations.bytes_moved(2, max(batches))
            self.report.add(f"{size}: of the bandwidth, unfused", best * moved / self.bytes_per_s,
                            "share")
            baseline = self.evaluation_rate(config.baseline(), max(batches))
            self.report.add(f"{size}: slowdown against the ReLU baseline, a tick",
                            baseline / rates[max(batches)] / config.ticks, "times",
                            at_most=1.25)
            for ticks in (1, 2, 8) if size in {"tiny", "small"} else ():
                rate = self.evaluation_rate(net_config(size, ticks=ticks), max(batches))
                self.report.add(f"{size}, T = {ticks}, batch {max(batches)}", rate,
                                "evaluations/s")
            if self.on_gpu:
                start = self.static_batch(config, max(batches)).start
                works = self.traced(f"inference-{size}", start, times=5)
                add_kernels(self.report, f"{size}: device time in neurons", works, at_most=0.15)
        self.through_the_evaluator(sizes[min(1, len(sizes) - 1)])

    def evaluation_rate(self, config: NetConfig, batch_size: int) -> float:
        """Evaluations/s of the captured graph alone, with copies to and from the device."""
        return batch_size * self.rate(self.static_batch(config, batch_size).start)

    def static_batch(self, config: NetConfig, batch_size: int) -> StaticBatch:
        """A captured batch filled with positions."""
        network = freeze(build_network(_GAME.spec, config, seed=0), "bf16", device=self.device)
        columns = 64
        positions = random_positions(batch_size)
        batch = StaticBatch(network, batch_size, columns)
        batch.fill(positions.planes, positions.legal_actions[:, :columns],
                   positions.num_legal.clip(max=columns))
        if self.on_gpu:
            stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
            batch.capture(stream, torch.cuda.graph_pool_handle())
        return batch

    def through_the_evaluator(self, size: str) -> None:
        """Add evaluations/s as callers see them: one and two threads, arrays in and out."""
        positions = random_positions(64 if self.quick else 4096)
        network = build_network(_GAME.spec, net_config(size), seed=0)
        calls = 2 if self.quick else 40
        with make_evaluator(network, device=self.device) as evaluator:

            def ask_often() -> None:
                for _ in range(calls):
                    positions.ask(evaluator)

            def ask(num_threads: int) -> None:
                with ThreadPoolExecutor(num_threads) as pool:
                    futures = [pool.submit(ask_often) for _ in range(num_threads)]
                for future in futures:
                    future.result()

            ask(2)  # captures the graphs of both lanes
            for num_threads in (1, 2):
                start = time.perf_counter()
                ask(num_threads)
                rate = num_threads * calls * len(positions) / (time.perf_counter() - start)
                self.report.add(f"{size}: through the evaluator, {num_threads} callers", rate,
                                "evaluations/s")

    def peers(self) -> None:
        """Add SpikingJelly and snnTorch with the same network on the same device."""
        for note in notes_on_missing_peers():
            self.report.note(note)
        batch_size = 16 if self.quick else 1024
        config = net_config("small")
        ours = self.evaluation_rate(config, batch_size)
        network = build_network(_GAME.spec, config, seed=0).eval()
        planes = random_positions(batch_size).tensor().to(
            self.device, memory_format=torch.channels_last
        )
        for name, make in installed_peers().items():
            peer = make(network).to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
            for precision in _PRECISIONS:
                rate = batch_size * self.rate(partial(infer, peer, planes, precision))
                self.report.add(f"small, {name}, {precision}", rate, "evaluations/s")
                self.report.add(f"small, bf16: over {name}'s {precision}", ours / rate, "times")

    def training(self) -> None:
        """Add samples/s: captured, launched one by one, fp16, fp32, and the ReLU baseline's."""
        window = random_window(64 if self.quick else 1024, 40)
        for size in ["tiny"] if self.quick else ["tiny", "small", "base"]:
            config = net_config(size)
            captured = self.samples_per_s(window, config)
            self.report.add(f"{size}: training", captured, "samples/s",
                            at_least=150_000 if size == "small" else None)
            if self.on_gpu:
                eager = self.samples_per_s(window, config, captured=False)
                self.report.add(f"{size}: captured over eager", captured / eager, "times")
            if size == ("tiny" if self.quick else "small"):
                for precision in _TRAINED_PRECISIONS:
                    rate = self.samples_per_s(window, config, precision)
                    self.report.add(f"{size}: training in {precision} over bf16",
                                    rate / captured, "times")
            baseline = self.samples_per_s(window, config.baseline())
            self.report.add(f"{size}: training, slowdown against the ReLU baseline, a tick",
                            baseline / captured / config.ticks, "times", at_most=1.5)
        if self.on_gpu:
            works = self.traced("training-small", lambda: self.samples_per_s(
                window, net_config("small"), steps=10
            ))
            self.report.add("small: device busy in training", busy_share(works), "share")
            add_kernels(self.report, "small: training, device time in neurons", works)

    def samples_per_s(
        self, window: ReplayWindow, config: NetConfig, precision: TrainingPrecision = "bf16",
        captured: bool = True, steps: int | None = None,
    ) -> float:
        """Samples/s of a trainer that has warmed up, without splitting the batch."""
        size = 32 if self.quick else 2048
        settings = TrainingSettings(batch_size=size, micro_batch=size, precision=precision)
        steps = steps or (2 if self.quick else 60)
        return samples_per_s(
            window, config, settings, steps, self.device, captured, warm_steps=6
        )

    def self_play(self) -> None:
        """Add positions/s, games/s and the device's busy share, without and with search."""
        size = "tiny" if self.quick else "small"
        network = build_network(_GAME.spec, net_config(size), seed=0)
        with make_evaluator(network, device=self.device) as evaluator:
            for simulations in (0, 4) if self.quick else (0, 16, 32, 64):
                settings = SearchSettings(kind="gumbel" if simulations else "policy")
                num_games = 16 if self.quick else 8192
                plies = 4 if self.quick else 80 if not simulations else max(2, 160 // simulations)
                searches = [
                    make_search(_GAME, evaluator, settings, simulations=simulations,
                                num_games=num_games // 2)
                    for _ in range(2)
                ]
                play = partial(play_games, _GAME, searches, num_games=num_games, seed=1)
                play(settings=all_at_once(2, num_games))
                kind = f"{simulations} simulations" if simulations else "policy only"
                name = f"{size}, {kind}"
                _, played = play(settings=all_at_once(plies, num_games))
                per_s = played.positions / played.seconds
                self.report.add(name, per_s, "positions/s")
                self.report.add(f"{name}, games of {PLIES_A_GAME} plies", per_s / PLIES_A_GAME,
                                "games/s", at_least=None if simulations else 1500)
                self.report.add(f"{name}: a batch was at the device", played.network_share,
                                "share")
                if self.on_gpu:
                    # A run of its own: the profiler costs time.
                    works = self.traced(f"self-play-{simulations}", partial(
                        play, settings=all_at_once(max(2, plies // 2), num_games)
                    ))
                    self.report.add(f"{name}: device busy", busy_share(works), "share",
                                    at_least=0.9 if simulations == 32 else None)

    def traced(
        self, name: str, call: Callable[[], object], times: int = 1
    ) -> list[DeviceWork]:
        """The device's work in ``times`` calls; the trace stays if the user named a folder."""
        with tempfile.TemporaryDirectory() as scratch:
            folder = self.traces or Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{name}.trace.json"
            activities = [torch.profiler.ProfilerActivity.CUDA]
            with torch.profiler.profile(activities=activities) as profile:
                for _ in range(times):
                    call()
                self.wait()
            profile.export_chrome_trace(str(path))
            return read_trace(path)

    def rate(self, call: Callable[[], object]) -> float:
        """Calls a second, until the device has finished them."""
        return rates_in_turn({0: Work(call)}, QUICK if self.quick else _PACE, self.wait)[0]

    def wait(self) -> None:
        """Wait for the device."""
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def randn(self, *shape: int) -> torch.Tensor:
        """Random numbers on the device, bfloat16; zeros would be computed faster."""
        return torch.randn(shape, device=self.device).to(torch.bfloat16)

    def images(self, ticks: int, rows: int, channels: int) -> torch.Tensor:
        """Random currents [T, B, C, 8, 8] in channels-last memory."""
        folded = self.randn(ticks * rows, channels, 8, 8)
        folded = folded.contiguous(memory_format=torch.channels_last)
        return folded.view(ticks, rows, channels, 8, 8)
