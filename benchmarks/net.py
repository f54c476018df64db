"""The network alone on CPUs: its rates, its ReLU baseline, other libraries, and one kernel.

Evaluations use the evaluator of self-play. SpikingJelly and snnTorch run the same network with the
same weights on one core, in the same run.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Final, TypeVar

import typer
from torch import Tensor

from benchmarks.harness import (
    FULL,
    QUICK,
    Pace,
    Quick,
    Report,
    Work,
    benchmark,
    chosen_parts,
    rates_in_turn,
    torch_threads,
)
from benchmarks.random_data import Positions, random_positions
from benchmarks.spiking_peers import (
    LAYOUTS,
    fastest_inference,
    installed_peers,
    notes_on_missing_peers,
)
from chess_snn.cores import num_cores
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
from chess_snn.nets.cpu.dot_tile import DOT_PRODUCT
from chess_snn.nets.gpu.conv_neuron import LayerKind
from chess_snn.nets.inference_neurons import InferenceNeurons

_BATCHES: Final[dict[str, tuple[int, ...]]] = {
    "tiny": (1, 16, 64, 256), "small": (1, 16, 64, 256), "base": (16, 64),
}
_BATCHES_QUICK: Final[dict[str, tuple[int, ...]]] = {"tiny": (1, 8), "small": (1, 8)}
_TICKS: Final = (2, 4, 8)
_BASELINE: Final = 0
"""Stands for the ReLU baseline among numbers of ticks."""

_PEERED: Final = "small"
_PEER_BATCHES, _PEER_BATCHES_QUICK = (8, 16, 32, 64, 128, 256), (4, 8)
_PEER_PRECISIONS: Final[dict[str, tuple[Precision, ...]]] = {
    "SpikingJelly": ("fp32", "bf16"), "snnTorch": ("fp32",),
}
_OURS: Final[tuple[Precision, ...]] = ("int8", "bf16", "fp32")
_FASTEST: Final[Precision] = "int8"
_BARS: Final = {("SpikingJelly", "fp32"): 4.0, ("SpikingJelly", "bf16"): 2.5}
"""Least ratio of our fastest inference to a peer's in a precision, on one core."""

_KERNEL_SIZES: Final = ((3, 32), (6, 64), (10, 128))
_KERNEL_BATCHES, _KERNEL_BATCHES_QUICK = (1, 4, 16, 64, 256), (1, 4)
_KINDS: Final[tuple[LayerKind, LayerKind]] = ("separate", "compiled")

_Fired = TypeVar("_Fired")


def rates(report: Report, quick: bool) -> None:
    """Add rates by size, precision, threads and batch."""
    for size, batch_sizes in (_BATCHES_QUICK if quick else _BATCHES).items():
        network, positions = _network(net_config(size)), random_positions(max(batch_sizes))
        for precision in _OURS:
            for num_threads in sorted({1, num_cores()}):
                with make_evaluator(
                    network, precision=precision, num_threads=num_threads
                ) as evaluator:
                    works = {batch: _work(positions[:batch], evaluator) for batch in batch_sizes}
                    found = rates_in_turn(works, _pace(quick))
                for batch, rate in found.items():
                    name = f"{size}: {precision}, {num_threads} threads, batch {batch}"
                    report.add(name, rate, "evaluations/s")


def baseline(report: Report, quick: bool) -> None:
    """Add ReLU and spiking networks of several T, in turn, in bf16 on one core."""
    for size, batch_sizes in (_BATCHES_QUICK if quick else _BATCHES).items():
        config, positions = net_config(size), random_positions(max(batch_sizes))
        configs = {_BASELINE: config.baseline()}
        configs |= {ticks: net_config(size, ticks=ticks) for ticks in _TICKS}
        with ExitStack() as stack:
            evaluators = {
                ticks: stack.enter_context(CpuEvaluator(freeze(_network(each), "bf16")))
                for ticks, each in configs.items()
            }
            works = {ticks: _work(positions, each) for ticks, each in evaluators.items()}
            found = rates_in_turn(works, _pace(quick))
            shares = {ticks: _neuron_share(evaluators[ticks], works[ticks]) for ticks in _TICKS}
        report.add(f"{size}: ReLU baseline", found[_BASELINE], "evaluations/s")
        for ticks in _TICKS:
            report.add(f"{size}: T = {ticks}", found[ticks], "evaluations/s")
            slowdown = found[_BASELINE] / found[ticks] / ticks
            report.add(f"{size}: T = {ticks}, slowdown a tick", slowdown, "times")
            report.add(f"{size}: T = {ticks}, time in the neurons", shares[ticks], "share")


def peers(report: Report, quick: bool) -> None:
    """Add `small` on one core: ours and the installed other libraries, in turn."""
    network = _network(net_config(_PEERED))
    batch_sizes = _PEER_BATCHES_QUICK if quick else _PEER_BATCHES
    positions = random_positions(max(batch_sizes))
    planes = positions.tensor(network)
    works: dict[tuple[str, Precision, str], Work] = {}
    with torch_threads(1), ExitStack() as stack:
        for precision in _OURS:
            evaluator = stack.enter_context(make_evaluator(network, precision=precision))
            works["ours", precision, ""] = _work(positions, evaluator)
        for peer, make in installed_peers().items():
            for precision in _PEER_PRECISIONS[peer]:
                for layout, memory_format in LAYOUTS.items():
                    works[peer, precision, layout] = fastest_inference(
                        make(network), precision, memory_format, planes, batch_sizes
                    )
        found = rates_in_turn(works, _pace(quick))
    ours = {precision: found["ours", precision, ""] for precision in _OURS}
    for precision, rate in ours.items():
        del works["ours", precision, ""]
        report.add(f"{_PEERED}: ours beside them, {precision}, one core", rate, "evaluations/s")
    for (peer, precision, layout), work in works.items():
        name = f"{_PEERED}: {peer}, {precision}, {layout}"
        report.add(name, found[peer, precision, layout], "evaluations/s")
        report.note(f"{name}: batch {work.items}, the best of {batch_sizes}.")
    for peer, precision in dict.fromkeys((peer, precision) for peer, precision, _ in works):
        fastest = max(found[peer, precision, layout] for layout in LAYOUTS)
        for our_precision in (_FASTEST, "bf16"):
            bar = _BARS.get((peer, precision)) if our_precision == _FASTEST else None
            report.add(
                f"{_PEERED}: ours in {our_precision} over {peer} in {precision}",
                ours[our_precision] / fastest, "times", at_least=bar,
            )
    for note in notes_on_missing_peers():
        report.note(note)


def kernel(report: Report, quick: bool) -> None:
    """Add all convolutions of integer neurons as one kernel, beside a call of oneDNN for each.

    In int8 on one core, by size and batch.
    """
    if DOT_PRODUCT is None:
        report.note("kernel: this processor has no instruction that the kernel needs")
        return
    batches = _KERNEL_BATCHES_QUICK if quick else _KERNEL_BATCHES
    positions = random_positions(max(batches))
    for blocks, channels in _KERNEL_SIZES[:1] if quick else _KERNEL_SIZES:
        network = _network(NetConfig(
            blocks=blocks, channels=channels, ticks=1, activation="ilif", levels=8,
            rule_planes=True, target_readout=True,
        ))
        with torch_threads(1), ExitStack() as stack:
            evaluators = {
                kind: stack.enter_context(CpuEvaluator(freeze(network, "int8", layers=kind)))
                for kind in _KINDS
            }
            found = rates_in_turn({
                (kind, batch): _work(positions[:batch], evaluator)
                for kind, evaluator in evaluators.items() for batch in batches
            }, _pace(quick))
        for batch in batches:
            separate, compiled = (found[kind, batch] for kind in _KINDS)
            name = f"{blocks}x{channels}, batch {batch}"
            report.add(f"{name}, separate", separate, "evaluations/s")
            report.add(f"{name}, compiled", compiled, "evaluations/s")
            report.add(f"{name}, ratio", compiled / separate, "times")


PARTS: Final = {"rates": rates, "baseline": baseline, "peers": peers, "kernel": kernel}


def run(
    report: Report, quick: Quick = False,
    part: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join(PARTS)}; all by default.")
    ] = None,
) -> None:
    """The network alone on CPUs: its ReLU baseline, other libraries, one kernel for all layers.

    All parts take about 4 minutes on two cores.

    python -m benchmarks net --part peers
    """
    for name, measure in chosen_parts(PARTS, part).items():
        report.progress(name)
        measure(report, quick)
    report.note(
        "Positions of random games. Our rates are those of the evaluator: bitplanes expanded, "
        "logits of legal actions, WDL. Neurons: processor time in their calls over that of the "
        "evaluator, measured with the same clock."
    )


command = benchmark("net", run)


def _pace(quick: bool) -> Pace:
    return QUICK if quick else FULL


def _work(positions: Positions, evaluator: Evaluator) -> Work:
    return Work(partial(positions.ask, evaluator), len(positions))


def _network(config: NetConfig) -> Network:
    return build_network(get_game("chess").spec, config, seed=0)


def _neuron_share(evaluator: CpuEvaluator, work: Work) -> float:
    """Share of the neurons in the evaluator's processor time; the evaluator has one thread."""
    neurons = TimedNeurons(evaluator.network.neurons)
    evaluator.network.neurons = neurons
    before = evaluator.network_seconds
    work.run()
    return neurons.seconds / (evaluator.network_seconds - before)


class TimedNeurons(InferenceNeurons):
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
