"""The network alone, beside the machine's peak and other libraries.

Evaluations use the evaluator of self-play. SpikingJelly and snnTorch run the same network with the
same weights on one core, in the same run.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final, TypeVar

import torch
from torch import Tensor

from benchmarks.harness import (
    FULL,
    QUICK,
    Pace,
    Work,
    rates_in_turn,
    thread_counts,
    torch_threads,
)
from benchmarks.random_data import Positions, random_positions
from benchmarks.report import Quick, Report, benchmark
from benchmarks.spiking_peers import (
    LAYOUTS,
    fastest_inference,
    installed_peers,
    notes_on_missing_peers,
)
from chess_snn.games import get_game
from chess_snn.nets import (
    CpuEvaluator,
    Evaluator,
    NetConfig,
    Network,
    Precision,
    build_network,
    freeze,
    make_evaluator,
    net_config,
)
from chess_snn.nets.analysis.operations import POLICY_READOUT, count_operations
from chess_snn.nets.inference import PRECISIONS
from chess_snn.nets.inference_neurons import InferenceNeurons
from chess_snn.nets.model.config import SIZES

_BATCHES: Final = {"tiny": (1, 16, 64, 256), "small": (1, 16, 64, 256), "base": (16, 64)}
_BATCHES_QUICK: Final = {"tiny": (1, 8), "small": (1, 8)}
_TICKS: Final = (2, 4, 8)
_BASELINE: Final = "ReLU baseline"
_LARGE_BATCH: Final = 4096
_MATRIX, _MATRIX_QUICK = 2048, 256

_PEERED: Final = "small"
_PEER_BATCHES, _PEER_BATCHES_QUICK = (8, 16, 32, 64, 128, 256), (4, 8)
_PEER_PRECISIONS: Final[dict[str, tuple[Precision, ...]]] = {
    "SpikingJelly": ("fp32", "bf16"), "snnTorch": ("fp32",),
}
_OURS: Final[tuple[Precision, ...]] = ("int8", "bf16", "fp32")
_FLOATING: Final[tuple[Precision, ...]] = ("bf16", "fp32")
_FASTEST: Final[Precision] = "int8"
_BARS: Final = {("SpikingJelly", "fp32"): 4.0, ("SpikingJelly", "bf16"): 2.5}
"""Least ratio of our fastest inference to a peer's in a precision, on one core."""
_AIM_A_TICK: Final = 1.25
"""Target of a GPU: slowdown of spiking a tick."""

_Fired = TypeVar("_Fired")
_Rates = Mapping[tuple[str, str], float]
"""By precision and name of the number of threads."""


def run(report: Report, quick: Quick = False) -> None:
    """The network alone, beside its ReLU baseline, the machine's peak and other libraries.

    Takes about 3 minutes on two cores.
    """
    pace = QUICK if quick else FULL
    batches: Mapping[str, tuple[int, ...]] = _BATCHES_QUICK if quick else _BATCHES
    peer_batches = _PEER_BATCHES_QUICK if quick else _PEER_BATCHES
    positions = random_positions(max(*peer_batches, *map(max, batches.values())))
    peaks = _add_peaks(report, _MATRIX_QUICK if quick else _MATRIX)
    _add_costs(report)
    for size, batch_sizes in batches.items():
        rates = _add_rates(report, size, positions, batch_sizes, pace)
        _add_shares(report, size, rates, peaks)
        _add_slowdowns(report, size, positions[: max(batch_sizes)], pace)
    _add_peers(report, positions, max(batches[_PEERED]), peer_batches, pace)
    report.note(
        "Positions of random games. Our rates are those of the evaluator: bitplanes expanded, "
        "logits of legal actions, WDL. Operations: two for each multiply-accumulate of the "
        "convolutions and linear layers, including zeros, without the policy's readout, which is "
        "computed for legal actions only. Bytes: memory traffic if no pass is fused with the "
        f"next, at a batch of {_LARGE_BATCH:,}. Peak: a product of two large matrices in the "
        "same precision, in this run. Neurons: processor time in their calls over that of the "
        "evaluator, measured with the same clock. The target of a GPU is a slowdown of at most "
        f"{_AIM_A_TICK:g} a tick in inference; on a CPU this is information."
    )


command = benchmark("net", run)


def _work(positions: Positions, evaluator: Evaluator) -> Work:
    return Work(partial(positions.ask, evaluator), len(positions))


def _network(config: NetConfig) -> Network:
    return build_network(get_game("chess").spec, config, seed=0)


def _add_peaks(report: Report, matrix_size: int) -> _Rates:
    peaks: dict[tuple[str, str], float] = {}
    for precision in _FLOATING:
        for name, num_threads in thread_counts().items():
            with torch_threads(num_threads):
                peak = matrix_flops_per_s(PRECISIONS[precision], matrix_size)
            peaks[precision, name] = peak
            report.add(f"matrix product, {precision}, {name}", peak / 1e9, "GFLOP/s")
    return peaks


def matrix_flops_per_s(
    dtype: torch.dtype, size: int, device: torch.device | str = "cpu",
    wait: Callable[[], object] = lambda: None,
) -> float:
    """Operations/s of a product of two square matrices: the best of five, two operations each MAC.

    This is the processor's peak: no layer of a network is larger or more regular.
    """
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    result = torch.empty(size, size, dtype=dtype, device=device)
    product = Work(lambda: torch.mm(left, right, out=result), items=2 * size**3)
    return max(rates_in_turn({0: product}, QUICK, wait)[0] for _ in range(5))


def _add_costs(report: Report) -> None:
    """Add the cost of every size, computed from its shape."""
    itemsize = PRECISIONS["bf16"].itemsize
    for size in SIZES:
        config = net_config(size)
        operations = count_operations(get_game("chess").spec, config)
        costs = {
            "operations": (2 * _macs(config), "MFLOP/position"),
            "operations of the ReLU baseline": (2 * _macs(config.baseline()), "MFLOP/position"),
            "bytes in bf16": (operations.bytes_moved(itemsize, _LARGE_BATCH), "MB/position"),
            "of them by neurons": (
                operations.bytes_moved(itemsize, _LARGE_BATCH, neurons_only=True), "MB/position"
            ),
        }
        for name, (count, unit) in costs.items():
            report.add(f"{size}: {name}", count / 1e6, unit)


def _macs(config: NetConfig) -> int:
    """Multiply-accumulates of an evaluation, but for the policy's readout."""
    operations = count_operations(get_game("chess").spec, config)
    return operations.macs - operations.macs_of(POLICY_READOUT)


def _add_rates(
    report: Report, size: str, positions: Positions, batch_sizes: Sequence[int], pace: Pace
) -> _Rates:
    """Add rates by batch, precision and threads; return those of the largest batch."""
    network = _network(net_config(size))
    rates: dict[tuple[str, str], float] = {}
    for precision in _OURS:
        for name, num_threads in thread_counts().items():
            with make_evaluator(network, precision=precision, num_threads=num_threads) as evaluator:
                works = {batch: _work(positions[:batch], evaluator) for batch in batch_sizes}
                by_batch = rates_in_turn(works, pace)
            for batch, rate in by_batch.items():
                report.add(f"{size}: {precision}, {name}, batch {batch}", rate, "evaluations/s")
            rates[precision, name] = by_batch[max(batch_sizes)]
    return rates


def _add_shares(report: Report, size: str, rates: _Rates, peaks: _Rates) -> None:
    """Add rates as shares of the machine's peak."""
    macs = _macs(net_config(size))
    for (precision, name), rate in rates.items():
        peaked = precision if precision in _FLOATING else "bf16"
        share = rate * 2 * macs / peaks[peaked, name]
        report.add(f"{size}: {precision}, {name}, of the peak of {peaked}", share, "share")


def _add_slowdowns(
    report: Report, size: str, positions: Positions, pace: Pace
) -> None:
    """Add ReLU and spiking networks of several T, in turn, in bf16 on one core."""
    config = net_config(size)
    configs: dict[int | str, NetConfig] = {_BASELINE: config.baseline()}
    configs |= {ticks: net_config(size, ticks=ticks) for ticks in _TICKS}
    with ExitStack() as stack:
        evaluators = {
            key: stack.enter_context(CpuEvaluator(freeze(_network(each), "bf16")))
            for key, each in configs.items()
        }
        works = {key: _work(positions, evaluator) for key, evaluator in evaluators.items()}
        rates = rates_in_turn(works, pace)
        shares = {key: _neuron_share(evaluators[key], works[key]) for key in configs}
    report.add(f"{size}: ReLU baseline", rates[_BASELINE], "evaluations/s")
    for ticks in _TICKS:
        report.add(f"{size}: T = {ticks}", rates[ticks], "evaluations/s")
        slowdown = rates[_BASELINE] / rates[ticks]
        report.add(f"{size}: T = {ticks}, slowdown", slowdown, "times")
        report.add(f"{size}: T = {ticks}, slowdown a tick", slowdown / ticks, "times")
        report.add(f"{size}: T = {ticks}, time in the neurons", shares[ticks], "share")
    report.add(f"{size}: ReLU baseline, time in ReLU", shares[_BASELINE], "share")


def _neuron_share(evaluator: CpuEvaluator, work: Work) -> float:
    """Share of the neurons in the evaluator's processor time; the evaluator has one thread."""
    neurons = TimedNeurons(evaluator.network.neurons)
    evaluator.network.neurons = neurons
    before = evaluator.network_seconds
    work.run()
    return neurons.seconds / (evaluator.network_seconds - before)


def _add_peers(
    report: Report, positions: Positions, batch_size: int, peer_batches: Sequence[int],
    pace: Pace,
) -> None:
    """Add `small` on one core: ours and the installed other libraries, in turn."""
    network = _network(net_config(_PEERED))
    planes = positions.tensor(network)
    works: dict[tuple[str, Precision, str], Work] = {}
    with torch_threads(1), ExitStack() as stack:
        for precision in _OURS:
            evaluator = stack.enter_context(make_evaluator(network, precision=precision))
            works["ours", precision, ""] = _work(positions[:batch_size], evaluator)
        for peer, make in installed_peers().items():
            for precision in _PEER_PRECISIONS[peer]:
                for layout, memory_format in LAYOUTS.items():
                    works[peer, precision, layout] = fastest_inference(
                        make(network), precision, memory_format, planes, peer_batches
                    )
        rates = rates_in_turn(works, pace)
    ours = {precision: rates["ours", precision, ""] for precision in _OURS}
    for precision, rate in ours.items():
        del works["ours", precision, ""]
        report.add(f"{_PEERED}: ours beside them, {precision}, one core", rate, "evaluations/s")
    for (peer, precision, layout), work in works.items():
        name = f"{_PEERED}: {peer}, {precision}, {layout}"
        report.add(name, rates[peer, precision, layout], "evaluations/s")
        report.note(f"{name}: batch {work.items}, the best of {peer_batches}.")
    for peer, precision in dict.fromkeys((peer, precision) for peer, precision, _ in works):
        fastest = max(rates[peer, precision, layout] for layout in LAYOUTS)
        for our_precision in (_FASTEST, "bf16"):
            bar = _BARS.get((peer, precision)) if our_precision == _FASTEST else None
            report.add(
                f"{_PEERED}: ours in {our_precision} over {peer} in {precision}",
                ours[our_precision] / fastest, "times", at_least=bar,
            )
    for note in notes_on_missing_peers():
        report.note(note)


class TimedNeurons:
    """Neurons of an inference network on a CPU, and the processor time of their calls."""

    def __init__(self, neurons: InferenceNeurons) -> None:
        self.kind = neurons.kind
        self.adds_bias_for_nothing = neurons.adds_bias_for_nothing
        self.seconds = 0.0
        """So far; one thread's."""
        self._neurons = neurons

    def fire_static(self, current_BX: Tensor, ticks: int) -> Tensor:
        """Same as the neurons' own."""
        return self._timed(lambda: self._neurons.fire_static(current_BX, ticks))

    def fire(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """Same as the neurons' own."""
        return self._timed(lambda: self._neurons.fire(current_TBX, bias_C))

    def add_and_fire(
        self, shortcut_TBX: Tensor, branch_TBX: Tensor, bias_C: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Same as the neurons' own."""
        return self._timed(lambda: self._neurons.add_and_fire(shortcut_TBX, branch_TBX, bias_C))

    def mean_rate(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """Same as the neurons' own."""
        return self._timed(lambda: self._neurons.mean_rate(current_TBX, bias_C))

    def _timed(self, call: Callable[[], _Fired]) -> _Fired:
        start = time.thread_time()
        fired = call()
        self.seconds += time.thread_time() - start
        return fired
