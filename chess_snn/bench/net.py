"""The network alone: positions/s, and how far that is from the machine's peak and from others.

Evaluations go through the evaluator that self-play uses. SpikingJelly and snnTorch run the same
network with the same weights on one core, in the same run.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final

from chess_snn.bench.positions import Positions, random_positions
from chess_snn.bench.report import BenchReport
from chess_snn.bench.spiking_peers import (
    LAYOUTS,
    fastest_inference,
    installed_peers,
    notes_on_missing_peers,
)
from chess_snn.bench.timing import (
    FULL,
    QUICK,
    Pace,
    TimedNeurons,
    Work,
    matrix_flops_per_s,
    rates_in_turn,
    thread_counts,
    torch_threads,
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
from chess_snn.nets.config import SIZES
from chess_snn.nets.inference import PRECISIONS
from chess_snn.nets.operations import POLICY_READOUT, count_operations

_BATCHES: Final = {"tiny": (1, 16, 64, 256), "small": (1, 16, 64, 256), "base": (16, 64)}
_BATCHES_QUICK: Final = {"tiny": (1, 8), "small": (1, 8)}
_TICKS: Final = (2, 4, 8)
_TWIN: Final = "twin"
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
"""Slowdown of spiking a tick that is asked for where a GPU computes it."""

_Rates = Mapping[tuple[str, str], float]
"""By precision and name of the number of threads."""


def run(quick: bool = False) -> BenchReport:
    """Measure; about 3 minutes on two cores, or some seconds without `base`."""
    report = BenchReport("net")
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
    report.notes.append(
        "Positions of random games. Our rates are those of the evaluator: bitplanes expanded, "
        "logits of legal actions, WDL. Operations: two for each multiply-accumulate of the "
        "convolutions and linear layers, zeros too, but of the policy's readout, which is done "
        "for legal actions only. Bytes: what crosses memory where no pass is fused with the "
        f"next, at a batch of {_LARGE_BATCH:,}. Peak: a product of two large matrices in the "
        "same precision, in this run. Neurons: processor time in their calls over that of the "
        "evaluator's answers, both taken with the same clock. A GPU is asked for a slowdown of "
        f"at most {_AIM_A_TICK:g} a tick in inference; on a CPU it is information."
    )
    return report


def _work(positions: Positions, evaluator: Evaluator) -> Work:
    return Work(partial(positions.ask, evaluator), len(positions))


def _network(config: NetConfig) -> Network:
    return build_network(get_game("chess").spec, config, seed=0)


def _add_peaks(report: BenchReport, matrix_size: int) -> _Rates:
    peaks: dict[tuple[str, str], float] = {}
    for precision in _FLOATING:
        for name, num_threads in thread_counts().items():
            peak = matrix_flops_per_s(PRECISIONS[precision], num_threads, matrix_size)
            peaks[precision, name] = peak
            report.add(f"matrix product, {precision}, {name}", peak / 1e9, "GFLOP/s")
    return peaks


def _add_costs(report: BenchReport) -> None:
    """What every size costs by its shape: arithmetic, nothing is measured."""
    itemsize = PRECISIONS["bf16"].itemsize
    for size in SIZES:
        config = net_config(size)
        operations = count_operations(get_game("chess").spec, config)
        costs = {
            "operations": (2 * _macs(config), "MFLOP/position"),
            "operations of the twin": (2 * _macs(config.twin()), "MFLOP/position"),
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
    report: BenchReport, size: str, positions: Positions, batch_sizes: Sequence[int], pace: Pace
) -> _Rates:
    """Rates by batch, every precision, one core and all; what is returned: of the largest."""
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


def _add_shares(report: BenchReport, size: str, rates: _Rates, peaks: _Rates) -> None:
    """Of the machine's peak."""
    macs = _macs(net_config(size))
    for (precision, name), rate in rates.items():
        peaked = precision if precision in _FLOATING else "bf16"
        share = rate * 2 * macs / peaks[peaked, name]
        report.add(f"{size}: {precision}, {name}, of the peak of {peaked}", share, "share")


def _add_slowdowns(
    report: BenchReport, size: str, positions: Positions, pace: Pace
) -> None:
    """Twin and spiking networks of several T in turn, in bf16 on one core; share of the neurons."""
    config = net_config(size)
    configs: dict[int | str, NetConfig] = {_TWIN: config.twin()}
    configs |= {ticks: net_config(size, ticks=ticks) for ticks in _TICKS}
    with ExitStack() as stack:
        evaluators = {
            key: stack.enter_context(CpuEvaluator(freeze(_network(each), "bf16")))
            for key, each in configs.items()
        }
        works = {key: _work(positions, evaluator) for key, evaluator in evaluators.items()}
        rates = rates_in_turn(works, pace)
        shares = {key: _neuron_share(evaluators[key], works[key]) for key in configs}
    report.add(f"{size}: ordinary twin", rates[_TWIN], "evaluations/s")
    for ticks in _TICKS:
        report.add(f"{size}: T = {ticks}", rates[ticks], "evaluations/s")
        slowdown = rates[_TWIN] / rates[ticks]
        report.add(f"{size}: T = {ticks}, slowdown", slowdown, "times")
        report.add(f"{size}: T = {ticks}, slowdown a tick", slowdown / ticks, "times")
        report.add(f"{size}: T = {ticks}, time in the neurons", shares[ticks], "share")
    report.add(f"{size}: ordinary twin, time in ReLU", shares[_TWIN], "share")


def _neuron_share(evaluator: CpuEvaluator, work: Work) -> float:
    """Of the evaluator's processor time, in calls of the neurons; the evaluator has one thread."""
    neurons = TimedNeurons(evaluator.network.neurons)
    evaluator.network.neurons = neurons
    before = evaluator.network_seconds
    work.run()
    return neurons.seconds / (evaluator.network_seconds - before)


def _add_peers(
    report: BenchReport, positions: Positions, batch_size: int, peer_batches: Sequence[int],
    pace: Pace,
) -> None:
    """`small` on one core: ours, and what is installed of the others, in turn."""
    network = _network(net_config(_PEERED))
    planes = positions.tensor()
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
        report.notes.append(f"{name}: batch {work.items}, the best of {peer_batches}.")
    for peer, precision in dict.fromkeys((peer, precision) for peer, precision, _ in works):
        fastest = max(rates[peer, precision, layout] for layout in LAYOUTS)
        for our_precision in (_FASTEST, "bf16"):
            bar = _BARS.get((peer, precision)) if our_precision == _FASTEST else None
            report.add(
                f"{_PEERED}: ours in {our_precision} over {peer} in {precision}",
                ours[our_precision] / fastest, "times", at_least=bar,
            )
    report.notes += notes_on_missing_peers()
