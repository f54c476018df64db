"""All convolutions of integer neurons as one kernel, beside one call of oneDNN for each."""

from contextlib import ExitStack
from functools import partial
from typing import Final

from benchmarks.harness import FULL, QUICK, Work, rates_in_turn, torch_threads
from benchmarks.random_data import random_positions
from benchmarks.report import Quick, Report, benchmark
from chess_snn.games import get_game
from chess_snn.nets import CpuEvaluator, NetConfig, build_network, freeze
from chess_snn.nets.gpu.conv_neuron import LayerKind

_SIZES: Final = ((3, 32), (6, 64), (10, 128))
_BATCHES: Final = (1, 4, 16, 64, 256)
_BATCHES_QUICK: Final = (1, 4)
_KINDS: Final[tuple[LayerKind, LayerKind]] = ("separate", "compiled")


def run(report: Report, quick: Quick = False) -> None:
    """Evaluations/s of both kinds of layers, in turn, by size and batch; int8 on one core."""
    batches = _BATCHES_QUICK if quick else _BATCHES
    positions, spec = random_positions(max(batches)), get_game("chess").spec
    for blocks, channels in _SIZES[:1] if quick else _SIZES:
        config = NetConfig(
            blocks=blocks, channels=channels, ticks=1, activation="ilif", levels=8,
            rule_planes=True, target_readout=True,
        )
        network = build_network(spec, config, seed=0)
        with torch_threads(1), ExitStack() as stack:
            evaluators = {
                kind: stack.enter_context(CpuEvaluator(freeze(network, "int8", layers=kind)))
                for kind in _KINDS
            }
            rates = rates_in_turn({
                (kind, batch): Work(partial(positions[:batch].ask, evaluator), batch)
                for kind, evaluator in evaluators.items() for batch in batches
            }, QUICK if quick else FULL)
        for batch in batches:
            separate, compiled = (rates[kind, batch] for kind in _KINDS)
            name = f"{blocks}x{channels}, batch {batch}"
            report.add(f"{name}, separate", separate, "evaluations/s")
            report.add(f"{name}, compiled", compiled, "evaluations/s")
            report.add(f"{name}, ratio", compiled / separate, "times")


command = benchmark("layers", run)
