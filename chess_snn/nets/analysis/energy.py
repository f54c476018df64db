"""Energy of one evaluation, by two models side by side. Nothing here is measured on a chip.

**The convention** of papers on spiking networks prices operations alone, all of 32-bit floating
point in 45 nm (Horowitz, ISSCC 2014, figure 1.1.9): 0.9 pJ for an accumulate, 4.6 pJ (3.7 + 0.9)
for a multiply-accumulate. Memory is free in it, and a spiking network is compared with a dense one.

**The fair model** prices integers, and memory too, and compares with a baseline that can say as
much: a network of the same shape whose activations have ceil(log2(T + 1)) bits, where T counts
virtual ticks (arXiv 2409.08290, abstract; arXiv 2311.10802 argues alike). Its activations are the
spikes of each neuron, added up, so it skips a neuron that never fires. The terms are

- operations: an addition to a 32-bit sum is 0.1 pJ, an 8-bit product 0.2 pJ (Horowitz, as above),
  one of b bits by 8 a share b / 8 of that; one bit needs none;
- neurons: 4 additions for each membrane update, or for each activation of a baseline (NeuroBench's
  count for a leaky neuron);
- weights, 8 bits each, all read once from a memory of their size: 100 pJ for 64 bits of 1 MiB
  (Horowitz, as above), and with its square root for other sizes (10 pJ for 8 KiB there is 9 here);
- activations, shortcuts and membranes in a memory of 32 KiB: 20 pJ for 64 bits (Horowitz, as
  above). A spike is a bit in each virtual tick; an activation is written once, and read once by
  each layer that sees it. Shortcuts and membranes have 16 bits. A membrane is written in each
  virtual tick but the last, and read in each but the first.

Every number is thus read once a layer, the best that any dataflow can do, in all columns; a chip
that fetches a weight for each spike pays more. docs/decisions/0035-energy-models.md has reasons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from chess_snn.games.base import GameSpec
from chess_snn.nets.analysis.operations import STEM, Pass, count_operations
from chess_snn.nets.model.config import NetConfig

if TYPE_CHECKING:
    from chess_snn.nets.analysis.counts import SynapseCounts, WorkCounts

CONVENTION: Final = "45 nm convention (model, not measured; 32-bit operations, no memory)"
FAIR: Final = "fair model (model, not measured; integers and memory)"
ACCUMULATE_PJ: Final = 0.9
MULTIPLY_ACCUMULATE_PJ: Final = 4.6
_ADD_PJ: Final = 0.1
_BYTE_PRODUCT_PJ: Final = 0.2
_NEURON_OPERATIONS: Final = 4
_BYTE: Final = 8
_STATE_BITS: Final = 16
_LOCAL_PJ_A_BIT: Final = 20 / 64
_MEBIBYTE_PJ_A_BIT: Final = 100 / 64


@dataclass(frozen=True, slots=True)
class LayerEnergy:
    """Energy of one layer for one position, pJ by term, in both models: never one alone."""

    convention: dict[str, float]
    fair: dict[str, float]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Energy of one way to execute a network, for one position."""

    name: str
    layers: dict[str, LayerEnergy]
    """Layers by :class:`~chess_snn.nets.analysis.operations.Pass`, in the order of work."""

    @property
    def convention(self) -> dict[str, float]:
        """Energy by term over all layers, pJ."""
        return _sum([layer.convention for layer in self.layers.values()])

    @property
    def fair(self) -> dict[str, float]:
        """Energy by term over all layers, pJ."""
        return _sum([layer.fair for layer in self.layers.values()])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Execution:
    """How numbers look, and what an operation takes, in the fair model."""

    activation_bits: int
    """Bits of each number that :class:`Pass` counts."""
    rate_bits: int
    """Bits of means over the ticks."""
    weight_bits: int = _BYTE
    state_bits: int = _STATE_BITS
    """Bits of shortcuts and membranes."""
    membrane_accesses: int = 0
    """Accesses of one neuron."""
    accumulate_pj: float = _ADD_PJ
    multiply_accumulate_pj: float = _ADD_PJ


def estimate_energy(spec: GameSpec, config: NetConfig, work: WorkCounts) -> list[Estimate]:
    """Both models of the network and of baselines of the same shape.

    First the network itself, if it spikes. Then the baselines: one of as many bits as the fair
    model asks for, which skips zeros (for a network that is a baseline itself: 8 bits and the zeros
    that it has); int8; and float32. These two skip nothing.

    Args:
        spec: of the game.
        config: of the network that did the work.
        work: on some positions; energies are means over them.
    """
    ticks, positions = config.virtual_ticks, work.num_positions
    bits = math.ceil(math.log2(ticks + 1)) if config.is_spiking else _BYTE

    def spiking(layer: SynapseCounts) -> tuple[float, float]:
        return layer.accumulates / positions, layer.multiply_accumulates / positions

    def merged(layer: SynapseCounts) -> tuple[float, float]:
        return 0.0, layer.merged / positions

    def dense(layer: SynapseCounts) -> tuple[float, float]:
        return 0.0, layer.merged_dense / positions

    executions = {
        f"{bits}-bit, zeros skipped": (_integers(bits), merged),
        "int8": (_integers(_BYTE), dense),
        "ReLU, float32": (
            _Execution(
                activation_bits=32, rate_bits=32, weight_bits=32, state_bits=32,
                accumulate_pj=ACCUMULATE_PJ, multiply_accumulate_pj=MULTIPLY_ACCUMULATE_PJ,
            ),
            dense,
        ),
    }
    found = [
        _estimate(name, spec, config.baseline(), work, execution, operations, updates=None)
        for name, (execution, operations) in executions.items()
    ]
    if not config.is_spiking:
        return found
    own = _Execution(
        activation_bits=config.most_spikes, rate_bits=bits,
        membrane_accesses=2 * (ticks - 1),
        multiply_accumulate_pj=_integers(bits).multiply_accumulate_pj,
    )
    updates = [layer.membrane_updates / positions for layer in work.neurons.values()]
    return [_estimate("spiking", spec, config, work, own, spiking, updates), *found]


def _integers(bits: int) -> _Execution:
    """Activations of ``bits`` by weights of 8."""
    product = _BYTE_PRODUCT_PJ * bits / _BYTE if bits > 1 else 0.0
    return _Execution(
        activation_bits=bits, rate_bits=bits, multiply_accumulate_pj=_ADD_PJ + product
    )


def _estimate(
    name: str, spec: GameSpec, config: NetConfig, work: WorkCounts, execution: _Execution,
    operations_of: Callable[[SynapseCounts], tuple[float, float]], updates: list[float] | None,
) -> Estimate:
    """``updates``: of membranes, by layer of neurons; None for one of each neuron."""
    operations = count_operations(spec, config)
    weight_bytes = operations.parameters * execution.weight_bits / _BYTE
    weight_pj = _MEBIBYTE_PJ_A_BIT * math.sqrt(weight_bytes / 2**20) * execution.weight_bits
    layers: dict[str, LayerEnergy] = {}
    remaining = None if updates is None else iter(updates)
    for each in operations.passes:
        if each.is_neurons:
            count = each.neurons if remaining is None else next(remaining)
            convention: dict[str, float] = {}
            fair = {"neurons": _NEURON_OPERATIONS * count * execution.accumulate_pj}
        else:
            accumulates, multiplies = operations_of(work.synapses[each.name])
            if each.name == STEM:  # its inputs are bits in every network
                accumulates, multiplies = accumulates + multiplies, 0.0
            convention = {
                "accumulates": ACCUMULATE_PJ * accumulates,
                "multiply-accumulates": MULTIPLY_ACCUMULATE_PJ * multiplies,
            }
            fair = {
                "accumulates": execution.accumulate_pj * accumulates,
                "multiply-accumulates": execution.multiply_accumulate_pj * multiplies,
                "weights": weight_pj * each.parameters,
            }
        layers[each.name] = LayerEnergy(convention, fair | _local_memory(each, execution))
    return Estimate(name, layers)


def _local_memory(each: Pass, execution: _Execution) -> dict[str, float]:
    """Terms of activations, shortcuts and membranes: currents stay where they are summed."""
    activations = (
        each.numbers_written - each.shortcuts_written if each.is_neurons else each.numbers_read
    )
    bits = execution.rate_bits if each.is_rate else execution.activation_bits
    if each.name == STEM:
        bits = 1
    shortcuts = each.shortcuts_read + each.shortcuts_written
    membranes = each.neurons * execution.membrane_accesses
    return {
        "activations": _LOCAL_PJ_A_BIT * bits * activations,
        "shortcuts": _LOCAL_PJ_A_BIT * execution.state_bits * shortcuts,
        "membranes": _LOCAL_PJ_A_BIT * execution.state_bits * membranes,
    }


def _sum(layers: list[Mapping[str, float]]) -> dict[str, float]:
    terms = dict.fromkeys((term for layer in layers for term in layer), 0.0)
    for layer in layers:
        for term, energy in layer.items():
            terms[term] += energy
    return terms
