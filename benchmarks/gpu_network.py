"""Inference on a GPU: neurons alone, the captured network, fused layers, and other libraries."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch

from benchmarks.gpu_bench import GpuBench, add_kernels
from benchmarks.random_data import random_positions
from benchmarks.spiking_peers import infer, installed_peers, notes_on_missing_peers
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, Precision, build_network, freeze, net_config
from chess_snn.nets.analysis.operations import POLICY_READOUT, count_operations
from chess_snn.nets.gpu.static_batch import COLUMN_SIZES, StaticBatch
from chess_snn.nets.inference import usual_layers
from chess_snn.nets.inference_neurons import InferenceNeurons, choose_neurons

TARGETS: Final = {"small": 800_000.0, "base": 200_000.0}
"""Least evaluations/s at the largest batch."""
_INT8_TARGET: Final = 1_800_000.0
"""The same of `small` in int8."""
_COLUMNS: Final = COLUMN_SIZES[0]
_PEER_PRECISIONS: Final[tuple[Precision, ...]] = ("bf16", "fp32")
_GAME: Final = get_game("chess")


def neurons(bench: GpuBench) -> None:
    """Add the fused passes of neurons beside the bandwidth and the reference."""
    rows, channels = (64, 32) if bench.quick else (4096, 128)
    config = NetConfig(ticks=4)
    current, bias = bench.images(4, rows, channels), bench.randn(channels)
    shortcut = bench.images(4, rows, channels)
    size = current.numel() * current.element_size()
    _, bytes_per_s = bench.peaks
    ours, reference = choose_neurons(config, bench.device), InferenceNeurons(config)
    bench.report.note(f"neurons: {ours.kind}")

    def fire(kind: InferenceNeurons) -> object:
        return kind.fire(current, bias)

    def add_and_fire(kind: InferenceNeurons) -> object:
        return kind.add_and_fire(shortcut, current, bias)

    passes: dict[str, tuple[Callable[[InferenceNeurons], object], int]] = {
        "fire": (fire, 2 * size), "add and fire": (add_and_fire, 4 * size),
    }
    for name, (call, num_bytes) in passes.items():
        rate = bench.rate(partial(call, ours))
        bench.report.add(
            f"{name}: of the bandwidth", num_bytes * rate / bytes_per_s, "share", at_least=0.7
        )
        bench.report.add(
            f"{name}: reference over fused", rate / bench.rate(partial(call, reference)), "times"
        )


def inference(bench: GpuBench) -> None:
    """Add evaluations/s by size and batch, the baseline's, and where the time goes."""
    sizes = ["tiny"] if bench.quick else ["tiny", "small", "base", "large"]
    batches = [32, 64] if bench.quick else [256, 1024, 4096]
    peak_flops, _ = bench.peaks
    for size in sizes:
        config, largest = net_config(size), max(batches)
        for batch in batches:
            rate = _evaluations_per_s(bench, config, batch)
            bench.report.add(
                f"{size}, T = {config.ticks}, batch {batch}", rate, "evaluations/s",
                at_least=TARGETS.get(size) if batch == largest else None,
            )
        operations = count_operations(_GAME.spec, config)
        macs = sum(each.macs for each in operations.passes if each.name != POLICY_READOUT)
        bench.report.add(f"{size}: of the peak", rate * 2 * macs / peak_flops, "share")
        baseline = _evaluations_per_s(bench, config.baseline(), largest)
        bench.report.add(
            f"{size}: slowdown against the ReLU baseline, a tick", baseline / rate / config.ticks,
            "times", at_most=1.25,
        )
        if bench.on_gpu:
            start = _static_batch(bench, config, largest).start
            works = bench.traced(f"inference-{size}", start, times=5)
            add_kernels(bench.report, f"{size}: device time in neurons", works)


def peers(bench: GpuBench) -> None:
    """Add SpikingJelly and snnTorch with the same network on the same device."""
    for note in notes_on_missing_peers():
        bench.report.note(note)
    batch_size = 16 if bench.quick else 1024
    config = net_config("small")
    ours = _evaluations_per_s(bench, config, batch_size)
    network = build_network(_GAME.spec, config, seed=0).eval()
    planes = random_positions(batch_size).tensor(network).to(
        bench.device, memory_format=torch.channels_last
    )
    for name, make in installed_peers().items():
        peer = make(network).to(bench.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        for precision in _PEER_PRECISIONS:
            rate = batch_size * bench.rate(partial(infer, peer, planes, precision))
            bench.report.add(f"small, {name}, {precision}", rate, "evaluations/s")
            bench.report.add(f"small, bf16: over {name}'s {precision}", ours / rate, "times")


def fused(bench: GpuBench) -> None:
    """Add networks in int8, whose convolutions fire in the same kernel, over those in bf16."""
    if not bench.on_gpu:
        bench.report.note("fused: no GPU for kernels that convolve and fire")
        return
    for size in ["tiny"] if bench.quick else ["tiny", "small", "base", "large"]:
        config, rows = net_config(size), 64 if bench.quick else 4096
        separate = _evaluations_per_s(bench, config, rows)
        bench.report.add(f"{size}, bf16, two kernels, batch {rows}", separate, "evaluations/s")
        usual = usual_layers(_GAME.spec, config, "int8", bench.device)
        for layers in sorted({"fused", usual}):
            rate = _evaluations_per_s(bench, config, rows, "int8", layers=layers)
            name = f"{size}, int8, {layers}"
            bench.report.add(
                f"{name}, batch {rows}", rate, "evaluations/s",
                at_least=_INT8_TARGET if size == "small" and layers == "trunk" else None,
            )
            bench.report.add(f"{name}: over two kernels in bf16", rate / separate, "times")


def _evaluations_per_s(
    bench: GpuBench, config: NetConfig, batch_size: int, precision: Precision = "bf16",
    **frozen: Any,
) -> float:
    """Evaluations/s of the captured graph alone, with copies to and from the device."""
    batch = _static_batch(bench, config, batch_size, precision, **frozen)
    return batch_size * bench.rate(batch.start)


def _static_batch(
    bench: GpuBench, config: NetConfig, batch_size: int, precision: Precision = "bf16",
    **frozen: Any,
) -> StaticBatch:
    """A captured batch filled with positions; ``frozen`` are options of :func:`freeze`."""
    network = build_network(_GAME.spec, config, seed=0)
    positions = random_positions(batch_size)
    batch = StaticBatch(
        freeze(network, precision, device=bench.device, **frozen), batch_size, _COLUMNS
    )
    batch.fill(positions.planes, positions.legal_actions[:, :_COLUMNS],
               positions.num_legal.clip(max=_COLUMNS))
    if bench.on_gpu:
        stream = torch.cuda.Stream(bench.device)  # type: ignore[no-untyped-call]
        batch.capture(stream, torch.cuda.graph_pool_handle())
    return batch
