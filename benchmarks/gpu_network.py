"""Inference on a GPU: the captured network, through its evaluator, fused, and beside others."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import torch

from benchmarks.device_model import (
    CALLER_S,
    FUSED_OVER_UNFUSED,
    batch_s,
    evaluations_per_s,
    position_time,
)
from benchmarks.device_trace import add_kernels
from benchmarks.gpu_bench import GpuBench
from benchmarks.random_data import random_positions
from benchmarks.spiking_peers import infer, installed_peers, notes_on_missing_peers
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, Precision, build_network, freeze, make_evaluator, net_config
from chess_snn.nets.analysis.operations import POLICY_READOUT, count_operations
from chess_snn.nets.gpu.cuda_evaluator import NUM_LANES
from chess_snn.nets.gpu.static_batch import COLUMN_SIZES, StaticBatch
from chess_snn.nets.inference import usual_layers

TARGETS: Final = {"small": 800_000.0, "base": 200_000.0}
"""Least evaluations/s at the largest batch."""
_INT8_TARGET: Final = 1_800_000.0
"""The same of `small` in int8."""
_COLUMNS: Final = COLUMN_SIZES[0]
_PEER_PRECISIONS: Final[tuple[Precision, ...]] = ("bf16", "fp32")
_GAME: Final = get_game("chess")


def inference(bench: GpuBench) -> None:
    """Add evaluations/s by size, T and batch, the baseline's, and where the time goes."""
    sizes = ["tiny"] if bench.quick else ["tiny", "small", "base", "large"]
    batches = [32, 64] if bench.quick else [256, 1024, 4096]
    for size in sizes:
        _one_size(bench, size, batches)
    _through_the_evaluator(bench, sizes[min(1, len(sizes) - 1)])


def _one_size(bench: GpuBench, size: str, batches: list[int]) -> None:
    config, largest = net_config(size), max(batches)
    ours = position_time(bench.model, config)
    peak_flops, peak_bytes = bench.peaks
    variants = {config: batches}
    for ticks in (1, 2, 8) if size in {"tiny", "small"} else ():
        variants.setdefault(net_config(size, ticks=ticks), [largest])
    rates: dict[tuple[int, int], float] = {}
    for variant, sizes in variants.items():
        for batch in sizes:
            rate = rates[variant.ticks, batch] = evaluation_rate(bench, variant, batch)
            is_target = variant == config and batch == largest
            bench.add(
                f"{size}, T = {variant.ticks}, batch {batch}", rate, "evaluations/s",
                at_least=TARGETS.get(size) if is_target else None,
                predicted=batch / batch_s(bench.model, variant, batch),
            )
    best = rates[config.ticks, largest]
    operations = count_operations(_GAME.spec, config)
    macs = operations.macs - operations.macs_of(POLICY_READOUT)
    bench.add(f"{size}: of the peak", best * 2 * macs / peak_flops, "share")
    moved = operations.bytes_moved(2, largest)
    bench.add(f"{size}: of the bandwidth, unfused", best * moved / peak_bytes, "share")
    baseline = evaluation_rate(bench, config.baseline(), largest)
    theirs = position_time(bench.model, config.baseline())
    bench.add(
        f"{size}: slowdown against the ReLU baseline, a tick", baseline / best / config.ticks,
        "times", at_most=1.25, predicted=ours.total / theirs.total / config.ticks,
    )
    if bench.on_gpu:
        start = static_batch(bench, config, largest).start
        add_kernels(
            bench.report, f"{size}: device time in neurons",
            bench.traced(f"inference-{size}", start, times=5), predicted=ours.neurons / ours.total,
        )


def evaluation_rate(
    bench: GpuBench, config: NetConfig, batch_size: int, precision: Precision = "bf16",
    **frozen: Any,
) -> float:
    """Evaluations/s of the captured graph alone, with copies to and from the device."""
    batch = static_batch(bench, config, batch_size, precision, **frozen)
    return batch_size * bench.rate(batch.start)


def static_batch(
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


def _through_the_evaluator(bench: GpuBench, size: str) -> None:
    """Add evaluations/s as callers see them: one and two threads, arrays in and out."""
    positions = random_positions(64 if bench.quick else 4096)
    network = build_network(_GAME.spec, net_config(size), seed=0)
    calls = 2 if bench.quick else 40
    with make_evaluator(network, device=bench.device) as evaluator:
        for _ in range(NUM_LANES):  # each captures its own graph
            positions.ask(evaluator)

        def ask_often() -> None:
            for _ in range(calls):
                positions.ask(evaluator)

        for num_threads in (1, 2):
            start = time.perf_counter()
            with ThreadPoolExecutor(num_threads) as pool:
                futures = [pool.submit(ask_often) for _ in range(num_threads)]
            for future in futures:
                future.result()
            rate = num_threads * calls * len(positions) / (time.perf_counter() - start)
            bench.add(
                f"{size}: through the evaluator, {num_threads} callers", rate, "evaluations/s",
                predicted=evaluations_per_s(
                    CALLER_S, position_time(bench.model, net_config(size)).total, num_threads
                ),
            )


def peers(bench: GpuBench) -> None:
    """Add SpikingJelly and snnTorch with the same network on the same device."""
    for note in notes_on_missing_peers():
        bench.report.note(note)
    batch_size = 16 if bench.quick else 1024
    config = net_config("small")
    ours = evaluation_rate(bench, config, batch_size)
    network = build_network(_GAME.spec, config, seed=0).eval()
    planes = random_positions(batch_size).tensor(network).to(
        bench.device, memory_format=torch.channels_last
    )
    for name, make in installed_peers().items():
        peer = make(network).to(bench.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        for precision in _PEER_PRECISIONS:
            rate = batch_size * bench.rate(partial(infer, peer, planes, precision))
            bench.add(f"small, {name}, {precision}", rate, "evaluations/s")
            bench.add(f"small, bf16: over {name}'s {precision}", ours / rate, "times")


def fused(bench: GpuBench) -> None:
    """Add networks in int8, whose convolutions fire in the same kernel, over those in bf16."""
    if not bench.on_gpu:
        bench.report.note("fused: no GPU for kernels that convolve and fire")
        return
    for size in ["tiny"] if bench.quick else ["tiny", "small", "base", "large"]:
        config, rows = net_config(size), 64 if bench.quick else 4096
        separate = evaluation_rate(bench, config, rows)
        bench.add(f"{size}, bf16, two kernels, batch {rows}", separate, "evaluations/s")
        usual = usual_layers(_GAME.spec, config, "int8", bench.device)
        for layers in sorted({"fused", usual}):
            rate = evaluation_rate(bench, config, rows, "int8", layers=layers)
            name = f"{size}, int8, {layers}"
            bench.add(
                f"{name}, batch {rows}", rate, "evaluations/s",
                at_least=_INT8_TARGET if size == "small" and layers == "trunk" else None,
            )
            bench.add(
                f"{name}: over two kernels in bf16", rate / separate, "times",
                predicted=FUSED_OVER_UNFUSED[layers] if size == "small" else None,
            )
