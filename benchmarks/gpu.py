"""Everything that is measured on a GPU, in one command of at most ten minutes.

    python benchmarks/gpu.py --out results         # a table, results/gpu.json, traces, pictures
    python benchmarks/gpu.py --learn-minutes 9     # train that long, then play the ladder's feet
    python benchmarks/gpu.py --device cpu --quick  # the same code without a GPU, in a minute

It needs torch, numpy, numba, python-chess, zarr and safetensors, from torch 2.8 on; neither Prefect
nor MLflow. Run it from the root of the repository. SpikingJelly and snnTorch are compared with
where they are installed.
"""

import argparse
import platform
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from chess_snn.bench.positions import random_positions
from chess_snn.bench.report import BenchReport, figure_text
from chess_snn.bench.trace import (
    busy_share,
    longest_kernels,
    read_trace,
    shares_by_kind,
    timeline_svg,
)
from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.stages import play_shard, prepare_first_generation, train_generation
from chess_snn.campaign.store.dealing import num_shards
from chess_snn.campaign.store.plans import CampaignClock, begin_iteration
from chess_snn.campaign.strength.matches import (
    NetworkPlayer,
    ScheduledMatch,
    finish_match,
    play_match_part,
)
from chess_snn.data import ReplayWindow, write_shard
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, build_network, freeze, make_evaluator, net_config
from chess_snn.nets.cuda_evaluator import StaticBatch
from chess_snn.nets.inference_neurons import ReferenceNeurons, choose_neurons
from chess_snn.nets.neuron import lif, lif_on_gpu
from chess_snn.nets.operations import POLICY_READOUT, count_operations
from chess_snn.search import SearchSettings, make_search
from chess_snn.self_play import SelfPlaySettings, play_games
from chess_snn.training import IterationPlan, Trainer, TrainingSettings
from chess_snn.training.settings import Precision

NEURON_KERNELS = frozenset(
    {"fire", "add_and_fire", "mean_rate", "fire_and_keep_charge", "backward"}
)
TARGETS = {"small": 400_000.0, "base": 100_000.0}
"""Least evaluations/s at the largest batch."""
PLIES_A_GAME = 195
"""Of the games that the system before this one played: games/s are stated at this length."""
PARTS = ("neurons", "inference", "peers", "training", "self_play")
"""Methods of :class:`Bench`, in the order they are run."""
GAME = get_game("chess")


class LiveReport(BenchReport):
    """Figures and notes are printed as they come, too."""

    def add(
        self, name: str, value: float, unit: str, *,
        at_least: float | None = None, at_most: float | None = None,
    ) -> None:
        """See :meth:`BenchReport.add`."""
        super().add(name, value, unit, at_least=at_least, at_most=at_most)
        last = self.measurements[-1]
        mark = "" if last.passes in (None, True) else " MISSED"
        print(f"  {name:<62} {figure_text(value):>12} {unit:<16} {last.bar}{mark}", flush=True)

    def note(self, text: str) -> None:
        """A sentence that belongs to the figures."""
        self.notes.append(text)
        print(f"  {text}", flush=True)


def main() -> None:
    """Parse the command line and measure."""
    arguments = parse_arguments()
    torch.set_grad_enabled(True)
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    device = torch.device(arguments.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor()
    report = LiveReport("gpu")
    report.machine += f", torch {torch.__version__}, {name}"
    print(report.machine)
    start = time.perf_counter()
    if arguments.learn_minutes:
        learn(report, device, arguments.learn_minutes, out)
    else:
        bench = Bench(report, device, arguments.quick, out)
        bench.machine()
        for part in arguments.only or PARTS:
            print(f"{part} ({time.perf_counter() - start:.0f} s)", flush=True)
            getattr(bench, part)()
    report.note(f"{time.perf_counter() - start:.0f} s in all")
    (out / "gpu.json").write_text(report.to_json() + "\n", encoding="utf-8")
    print(f"figures in {out / 'gpu.json'}")


def parse_arguments() -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    default = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=default, help="cuda, cuda:1 or cpu [%(default)s]")
    parser.add_argument("--out", default="gpu-results", help="folder for results [%(default)s]")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run?")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="some of the parts")
    parser.add_argument("--learn-minutes", type=float, default=0.0, metavar="M",
                        help="instead: train M minutes from nothing, then play matches")
    arguments = parser.parse_args()
    try:
        torch.empty(1, device=arguments.device)
    except (RuntimeError, AssertionError) as error:
        parser.error(
            f"--device {arguments.device}: {str(error).splitlines()[0]} "
            f"(torch sees {torch.cuda.device_count()} GPUs); without one: --device cpu --quick"
        )
    return arguments


class Bench:
    """The parts, in the order they are run."""

    def __init__(self, report: LiveReport, device: torch.device, quick: bool, out: Path) -> None:
        self.report, self.device, self.quick, self.out = report, device, quick, out
        self.on_gpu = device.type == "cuda"
        self.peak_flops = self.bytes_per_s = float("nan")

    def machine(self) -> None:
        """Peak of matrix products in bf16, and bandwidth of memory."""
        side, size = (256, 1 << 22) if self.quick else (8192, 1 << 31)
        left, right = (
            torch.randn(side, side, device=self.device).bfloat16() for _ in range(2)
        )
        self.peak_flops = 2 * side**3 / self.seconds(lambda: left @ right)
        source = torch.randn(size // 4, device=self.device)
        target = torch.empty_like(source)
        self.bytes_per_s = 2 * size / self.seconds(lambda: target.copy_(source))
        self.report.add("matrix product, bf16", self.peak_flops / 1e12, "TFLOP/s")
        self.report.add("copy within the device", self.bytes_per_s / 1e9, "GB/s")

    def neurons(self) -> None:
        """The fused passes against the bandwidth, and against the reference."""
        rows, channels = (64, 32) if self.quick else (4096, 128)
        config = NetConfig(ticks=4)
        current = self.images(4, rows, channels)
        shortcut, bias = self.images(4, rows, channels), self.randn(channels)
        size = current.numel() * current.element_size()
        fused, reference = choose_neurons(config, self.device), ReferenceNeurons(config)
        self.report.note(f"neurons: {fused.kind}")
        passes: dict[str, tuple[Callable[..., object], int]] = {
            "fire": (lambda neurons: neurons.fire(current, bias), 2 * size),
            "add and fire": (lambda neurons: neurons.add_and_fire(shortcut, current, bias),
                             4 * size),
        }
        for name, (run, num_bytes) in passes.items():
            seconds = self.seconds(partial(run, fused))
            self.report.add(f"{name}: of the bandwidth", num_bytes / seconds / self.bytes_per_s,
                            "share", at_least=0.7)
            self.report.add(f"{name}: reference over fused",
                            self.seconds(partial(run, reference)) / seconds, "times")
        ours = lif_on_gpu() if self.on_gpu else lif
        for name, neuron in {"fused": ours, "reference": lif}.items():
            current.requires_grad_(True)
            spikes = neuron(current, 0.5, 0.5, 2.0)
            grad = torch.randn_like(spikes)
            seconds = self.seconds(
                lambda spikes=spikes, grad=grad: torch.autograd.grad(
                    spikes, current, grad, retain_graph=True
                )
            )
            self.report.add(f"backward, {name}: of the bandwidth",
                            4 * size / seconds / self.bytes_per_s, "share")

    def inference(self) -> None:
        """Evaluations/s by size, T and batch, what the twin does, and where the time goes."""
        sizes = ["tiny"] if self.quick else ["tiny", "small", "base", "large"]
        for size in sizes:
            batches = [32, 64] if self.quick else [256, 1024, 4096]
            config = net_config(size)
            rates = {batch: self.evaluation_rate(config, batch) for batch in batches}
            for batch, rate in rates.items():
                self.report.add(
                    f"{size}, T = {config.ticks}, batch {batch}", rate, "evaluations/s",
                    at_least=TARGETS.get(size) if batch == max(batches) else None,
                )
            best = max(rates.values())
            operations = count_operations(GAME.spec, config)
            macs = operations.macs - operations.macs_of(POLICY_READOUT)
            self.report.add(f"{size}: of the peak", best * 2 * macs / self.peak_flops, "share")
            moved = operations.bytes_moved(2, max(batches))
            self.report.add(f"{size}: of the bandwidth, unfused", best * moved / self.bytes_per_s,
                            "share")
            twin = self.evaluation_rate(config.twin(), max(batches))
            self.report.add(f"{size}: slowdown against the twin, a tick",
                            twin / rates[max(batches)] / config.ticks, "times",
                            at_most=1.25)
            if size in ("tiny", "small"):
                for ticks in (1, 2, 8):
                    rate = self.evaluation_rate(net_config(size, ticks=ticks), max(batches))
                    self.report.add(f"{size}, T = {ticks}, batch {max(batches)}", rate,
                                    "evaluations/s")
            if self.on_gpu:
                self.share_of_neurons(size, config, max(batches))
        self.through_the_evaluator(sizes[min(1, len(sizes) - 1)])

    def evaluation_rate(self, config: NetConfig, batch_size: int) -> float:
        """Evaluations/s of the captured graph alone, copies to and fro included."""
        batch = self.static_batch(config, batch_size)
        return batch_size / self.seconds(batch.start)

    def static_batch(self, config: NetConfig, batch_size: int) -> StaticBatch:
        """A captured batch filled with positions."""
        network = freeze(build_network(GAME.spec, config, seed=0), "bf16", device=self.device)
        columns = 64
        positions = random_positions(batch_size)
        batch = StaticBatch(network, batch_size, columns)
        batch.fill(positions.planes, positions.legal_actions[:, :columns],
                   positions.num_legal.clip(max=columns))
        if self.on_gpu:
            batch.capture(torch.cuda.Stream(self.device), torch.cuda.graph_pool_handle())
        return batch

    def share_of_neurons(self, size: str, config: NetConfig, batch_size: int) -> None:
        """Shares of device time in one evaluation, by the profiler."""
        batch = self.static_batch(config, batch_size)
        with self.traced(f"inference-{size}") as path:
            for _ in range(5):
                batch.start()
        works = read_trace(path)
        for kind, share in shares_by_kind(works, NEURON_KERNELS).items():
            self.report.add(f"{size}: device time in {kind}", share, "share",
                            at_most=0.15 if kind == "neurons" else None)
        for name, share, calls in longest_kernels(works, 8):
            self.report.note(f"{share:6.1%} {calls:5d} calls  {name[:90]}")
        self.picture(f"inference-{size}", works, length_us=2000.0)

    def through_the_evaluator(self, size: str) -> None:
        """Evaluations/s as callers see them: two threads, arrays in and arrays out."""
        batch_size = 64 if self.quick else 4096
        positions = random_positions(batch_size)
        network = build_network(GAME.spec, net_config(size), seed=0)
        with make_evaluator(network, device=self.device) as evaluator:
            positions.ask(evaluator)
            calls = 2 if self.quick else 40

            def ask() -> None:
                for _ in range(calls):
                    positions.ask(evaluator)

            for num_threads in (1, 2):
                threads = [threading.Thread(target=ask) for _ in range(num_threads)]
                start = time.perf_counter()
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                rate = num_threads * calls * batch_size / (time.perf_counter() - start)
                self.report.add(f"{size}: through the evaluator, {num_threads} callers", rate,
                                "evaluations/s")

    def peers(self) -> None:
        """SpikingJelly and snnTorch with the same network on the same device."""
        from chess_snn.bench.spiking_peers import (  # noqa: PLC0415
            infer,
            installed_peers,
            notes_on_missing_peers,
        )

        for note in notes_on_missing_peers():
            self.report.note(note)
        batch_size = 16 if self.quick else 1024
        config = net_config("small")
        ours = self.evaluation_rate(config, batch_size)
        network = build_network(GAME.spec, config, seed=0).eval()
        planes = self.randn(batch_size, GAME.spec.num_planes, 8, 8, dtype=torch.float32).gt(1)
        planes = planes.float().contiguous(memory_format=torch.channels_last)
        for name, make in installed_peers().items():
            peer = make(network).to(self.device, memory_format=torch.channels_last)
            for precision in ("bf16", "fp32"):
                rate = batch_size / self.seconds(partial(infer, peer, planes, precision))
                self.report.add(f"small, {name}, {precision}", rate, "evaluations/s")
                self.report.add(f"small, bf16: over {name}'s {precision}", ours / rate, "times")

    def training(self) -> None:
        """Samples/s of training steps: captured, launched one by one, fp16, fp32, the twin's."""
        window = random_window(64 if self.quick else 1024)
        for size in ["tiny"] if self.quick else ["tiny", "small", "base"]:
            config = net_config(size)
            captured = self.samples_per_s(window, config)
            self.report.add(f"{size}: training", captured, "samples/s",
                            at_least=150_000 if size == "small" else None)
            if self.on_gpu:
                eager = self.samples_per_s(window, config, captured=False)
                self.report.add(f"{size}: captured over eager", captured / eager, "times")
            if size == ("tiny" if self.quick else "small"):
                for precision in ("fp16", "fp32"):
                    rate = self.samples_per_s(window, config, precision=precision)
                    self.report.add(f"{size}: training in {precision} over bf16",
                                    rate / captured, "times")
            twin = self.samples_per_s(window, config.twin())
            self.report.add(f"{size}: training, slowdown against the twin, a tick",
                            twin / captured / config.ticks, "times", at_most=1.5)
        if self.on_gpu:
            with self.traced("training-small") as path:
                self.samples_per_s(window, net_config("small"), steps=10)
            works = read_trace(path)
            self.report.add("small: device busy in training", busy_share(works), "share")
            for kind, share in shares_by_kind(works, NEURON_KERNELS).items():
                self.report.add(f"small: training, device time in {kind}", share, "share")
            for name, share, calls in longest_kernels(works, 12):
                self.report.note(f"{share:6.1%} {calls:5d} calls  {name[:90]}")

    def samples_per_s(
        self, window: ReplayWindow, config: NetConfig, captured: bool = True,
        steps: int | None = None, precision: Precision = "bf16",
    ) -> float:
        """Of a trainer that has warmed up."""
        size = 32 if self.quick else 2048
        settings = TrainingSettings(batch_size=size, micro_batch=size, precision=precision)
        steps = steps or (2 if self.quick else 60)
        trainer = Trainer(
            GAME, build_network(GAME.spec, config, seed=0), settings, seed=0, device=self.device,
            captured=captured,
        )
        plan = IterationPlan(6 + steps, progress_first=0.0, progress_last=1.0)
        trainer.run(window, plan, stop_at=6)
        self.synchronize()
        return trainer.run(window, plan).samples_per_s

    def self_play(self) -> None:
        """Positions/s, games/s and the device's busy share, policy-only and with search."""
        size = "tiny" if self.quick else "small"
        network = build_network(GAME.spec, net_config(size), seed=0)
        with make_evaluator(network, device=self.device) as evaluator:
            for simulations in (0, 4) if self.quick else (0, 16, 32, 64):
                settings = SearchSettings() if simulations else SearchSettings(kind="policy")
                num_games, plies = (16, 4) if self.quick else (8192, self.plies(simulations))
                searches = [
                    make_search(GAME, evaluator, settings, simulations=simulations,
                                num_games=num_games // 2)
                    for _ in range(2)
                ]
                play = partial(
                    play_games, GAME, searches, num_games=num_games, seed=1
                )
                play(settings=self.games(num_games, 2))
                name = "policy only" if not simulations else f"{simulations} simulations"
                _, statistics_ = play(settings=self.games(num_games, plies))
                per_s = statistics_.positions / statistics_.seconds
                self.report.add(f"{size}, {name}", per_s, "positions/s")
                self.report.add(f"{size}, {name}, games of {PLIES_A_GAME} plies",
                                per_s / PLIES_A_GAME, "games/s",
                                at_least=None if simulations else 1500)
                self.report.add(f"{size}, {name}: a batch was at the device",
                                statistics_.network_share, "share")
                if self.on_gpu:
                    # Apart from the run that was timed: the profiler costs time.
                    with self.traced(f"self-play-{simulations}") as path:
                        play(settings=self.games(num_games, max(2, plies // 2)))
                    works = read_trace(path)
                    self.report.add(f"{size}, {name}: device busy", busy_share(works), "share",
                                    at_least=0.9 if simulations == 32 else None)
                    if simulations == 32:
                        self.picture("self-play-32", works, length_us=20_000.0)

    def plies(self, simulations: int) -> int:
        """Of the games measured: enough for some seconds."""
        return 80 if not simulations else max(2, 160 // simulations)

    def games(self, num_games: int, plies: int) -> SelfPlaySettings:
        """All games at once, from ordinary starts."""
        return SelfPlaySettings(
            concurrent_games=num_games, max_plies_first=plies, practice_share_first=0.0
        )

    @contextmanager
    def traced(self, name: str) -> Iterator[Path]:
        """The path of a trace of what happens in the block; without a GPU nothing is traced."""
        path = self.out / f"{name}.trace.json"
        if not self.on_gpu:
            yield path
            return
        activities = [torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profile:
            yield path
            self.synchronize()
        profile.export_chrome_trace(str(path))

    def picture(self, name: str, works: list, length_us: float) -> None:
        """Draw the middle of a trace."""
        middle = (works[-1].start_us - works[0].start_us) / 2 if works else 0.0
        text = timeline_svg(works, NEURON_KERNELS, middle, length_us)
        (self.out / f"{name}.svg").write_text(text, encoding="utf-8")

    def seconds(self, run: Callable[[], object]) -> float:
        """Of one call: the median of some rounds, each long enough for its clock."""
        for _ in range(2):
            run()
        self.synchronize()
        start = time.perf_counter()
        run()
        self.synchronize()
        calls = max(1, min(200, int(0.05 / max(1e-6, time.perf_counter() - start))))
        rounds = []
        for _ in range(1 if self.quick else 5):
            start = time.perf_counter()
            for _ in range(calls):
                run()
            self.synchronize()
            rounds.append((time.perf_counter() - start) / calls)
        return statistics.median(rounds)

    def synchronize(self) -> None:
        """Wait for the device."""
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def randn(self, *shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        """Random numbers on the device; zeros would be computed faster."""
        return torch.randn(shape, device=self.device).to(dtype)

    def images(self, ticks: int, rows: int, channels: int) -> torch.Tensor:
        """Random currents [T, B, C, 8, 8] in channels-last memory."""
        folded = self.randn(ticks * rows, channels, 8, 8)
        folded = folded.contiguous(memory_format=torch.channels_last)
        return folded.unflatten(0, (ticks, rows))


def random_window(num_games: int) -> ReplayWindow:
    """A window over games of an untrained network with a short search."""
    network = build_network(GAME.spec, net_config("tiny"), seed=0)
    with make_evaluator(network) as evaluator, tempfile.TemporaryDirectory() as scratch:
        search = make_search(GAME, evaluator, SearchSettings(), simulations=2,
                             num_games=num_games)
        settings = SelfPlaySettings(concurrent_games=num_games, max_plies_first=40)
        records, _ = play_games(GAME, [search], settings, num_games=num_games, seed=0)
        shard = Path(scratch) / "shard"
        write_shard(shard, records, {"game": "chess"})
        return ReplayWindow.load(GAME, [shard], capacity=records.num_positions)


def learn(report: LiveReport, device: torch.device, minutes: float, out: Path) -> None:
    """Train from nothing for ``minutes`` by the preset's recipe, then measure the result."""
    preset = "gpu" if device.type == "cuda" else "cpu"
    worker = device.index or 0  # worker n has GPU n
    config = load_config(preset, settings=[
        f"campaign.hours={minutes / 60}", f'execution.device="{device.type}"',
        "evaluation.final_openings=100",
    ])
    folder = CampaignFolder.create(out / "campaign", config)
    prepare_first_generation(folder)
    clock, iteration = CampaignClock(0.0), 0
    while plan := begin_iteration(folder, iteration, clock.elapsed_s):
        shards = [play_shard(folder.path, iteration, shard, worker=worker)
                  for shard in range(num_shards(folder, iteration))]
        facts = train_generation(folder.path, iteration, worker=worker)
        iteration += 1
        report.note(
            f"{clock.elapsed_s:5.0f} s, {plan.progress_last:4.0%}: generation {iteration}, "
            f"{sum(shard.statistics['positions'] for shard in shards):,} positions, "
            f"policy loss {facts.metrics['policy_loss']:.3f}, "
            f"value loss {facts.metrics['holdout_value_loss']:.3f}"
        )
    for opponent, simulations in (("random", 0), ("random", 64), ("greedy", 64)):
        match = ScheduledMatch(
            "final", f"{opponent}-{simulations}", NetworkPlayer(iteration, simulations), opponent,
            config.evaluation.final_openings,
        )
        for part in range(len(match.parts)):
            play_match_part(folder.path, match, part, worker=worker)
        score = finish_match(folder.path, match)["score"]
        report.add(f"{match.player.name} against {opponent}, 200 games", score, "score")


if __name__ == "__main__":
    main()
