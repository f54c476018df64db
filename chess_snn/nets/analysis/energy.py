"""Energy of one evaluation, by three models side by side. None of these networks ran on a chip.

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

**The chip** is event-driven and has what Loihi was found to take by simulation before it was made
(Davies et al., IEEE Micro 38(1), 2018, table 2): 23.6 pJ for a synaptic operation, its weight
included, 81 pJ for the update of a neuron that got something and 52 pJ for another one in each
tick, 1.7 pJ for a spike within a tile. Ways between tiles are left out. A graded event, which later
chips send, is priced like a binary one, for want of published numbers.

*Changes* are the baseline's numbers where positions follow each other: neurons keep their currents
and what they sent last, get differences, and send differences. In the fair model an event has an
address and a sign, and a current is read and written where it changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from chess_snn.games.base import GameSpec
from chess_snn.nets.analysis.operations import STEM, Pass, count_operations
from chess_snn.nets.model.config import NetConfig

if TYPE_CHECKING:
    from chess_snn.nets.analysis.counts import NeuronCounts, SynapseCounts, WorkCounts

CONVENTION: Final = "45 nm convention (model, not measured; 32-bit operations, no memory)"
FAIR: Final = "fair model (model, not measured; integers and memory)"
CHIP: Final = "event-driven chip (model, not measured; Loihi's energies)"
ENERGY_MODELS: Final = {"convention": CONVENTION, "fair": FAIR, "chip": CHIP}
"""The models by name, with what they are: none is ever shown without the others."""
SPIKING, CHANGES, FLOAT32 = "spiking", "changes", "ReLU, float32"
"""Ways to execute a network; in front of changes stand the bits of a number."""
ACCUMULATE_PJ: Final = 0.9
MULTIPLY_ACCUMULATE_PJ: Final = 4.6
_ADD_PJ: Final = 0.1
_BYTE_PRODUCT_PJ: Final = 0.2
_NEURON_OPERATIONS: Final = 4
_BYTE: Final = 8
_STATE_BITS: Final = 16
_LOCAL_PJ_A_BIT: Final = 20 / 64
_MEBIBYTE_PJ_A_BIT: Final = 100 / 64
_CHIP_OPERATION_PJ: Final = 23.6
_CHIP_UPDATE_PJ: Final = 81.0
_CHIP_IDLE_PJ: Final = 52.0
_CHIP_EVENT_PJ: Final = 1.7


@dataclass(frozen=True, slots=True)
class LayerEnergy:
    """Energy of one layer for one position, pJ by term, in all models: never one alone."""

    convention: dict[str, float]
    fair: dict[str, float]
    chip: dict[str, float]
    """Empty for float32, which such a chip does not have."""


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

    @property
    def chip(self) -> dict[str, float]:
        """Energy by term over all layers, pJ."""
        return _sum([layer.chip for layer in self.layers.values()])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Execution:
    """How numbers look, and what an operation takes."""

    activation_bits: int
    """Bits of each number that :class:`Pass` counts."""
    rate_bits: int
    """Bits of means over the ticks."""
    weight_bits: int = _BYTE
    state_bits: int = _STATE_BITS
    """Bits of shortcuts and membranes."""
    ticks: int = 1
    """Virtual ticks."""
    accumulate_pj: float = _ADD_PJ
    multiply_accumulate_pj: float = _ADD_PJ
    sends_events: bool = False
    """Whether numbers that are 0 take no memory, and the others an address."""


class _Way(NamedTuple):
    """How the counts of a layer become its work."""

    synapses: Callable[[SynapseCounts], _LayerWork]
    neurons: Callable[[NeuronCounts], _LayerWork]


class _LayerWork(NamedTuple):
    """Work of one layer for one position; of synapses or of neurons, and 0 of the other ones."""

    accumulates: float = 0.0
    multiply_accumulates: float = 0.0
    sent: float = 0.0
    """Events on the chip that the neurons send."""
    updates: float = 0.0
    """Neurons updated, in all ticks."""
    share: float = 1.0
    """Share that is not 0 of the numbers that come in, or that the neurons have."""


def estimate_energy(
    spec: GameSpec, config: NetConfig, work: WorkCounts, changes: WorkCounts | None = None
) -> list[Estimate]:
    """All models of the network and of baselines of the same shape.

    First the network itself, if it spikes. Then the baselines: one of as many bits as the fair
    model asks for, which skips zeros (for a network that is a baseline itself: 8 bits and the zeros
    that it has); the same that sends changes; int8; and float32. The last two skip nothing.

    Args:
        spec: of the game.
        config: of the network that did the work.
        work: on some positions; energies are means over them.
        changes: on positions that follow others; without them, that estimate is left out.
    """
    ticks, n = config.virtual_ticks, work.num_positions
    bits = math.ceil(math.log2(ticks + 1)) if config.is_spiking else _BYTE
    shape = config.baseline()
    spiking = _Way(
        lambda layer: _LayerWork(layer.accumulates / n, layer.multiply_accumulates / n),
        lambda layer: _LayerWork(sent=layer.active / n, updates=layer.membrane_updates / n),
    )
    merged = _Way(
        lambda layer: _LayerWork(0.0, layer.merged / n),
        lambda layer: _LayerWork(sent=layer.senders / n, updates=layer.num_neurons / n),
    )
    changed = _Way(
        lambda layer: _LayerWork(0.0, layer.merged / n, share=layer.received / layer.inputs),
        lambda layer: _LayerWork(
            sent=layer.senders / n, updates=layer.membrane_updates / n,
            share=layer.senders / layer.num_neurons,
        ),
    )
    dense = _Way(
        lambda layer: _LayerWork(0.0, layer.merged_dense / n),
        lambda layer: _LayerWork(sent=layer.num_neurons / n, updates=layer.num_neurons / n),
    )
    found = []
    if config.is_spiking:
        own = _Execution(
            activation_bits=config.most_spikes, rate_bits=bits, ticks=ticks,
            multiply_accumulate_pj=_integers(bits).multiply_accumulate_pj,
        )
        found.append(_estimate(SPIKING, spec, config, work, own, spiking))
    found.append(
        _estimate(f"{bits}-bit, zeros skipped", spec, shape, work, _integers(bits), merged)
    )
    if changes is not None:
        graded = replace(_integers(bits), sends_events=True)
        found.append(_estimate(f"{bits}-bit, {CHANGES}", spec, shape, changes, graded, changed))
    found.append(_estimate("int8", spec, shape, work, _integers(_BYTE), dense))
    as_trained = _Execution(
        activation_bits=32, rate_bits=32, weight_bits=32, state_bits=32,
        accumulate_pj=ACCUMULATE_PJ, multiply_accumulate_pj=MULTIPLY_ACCUMULATE_PJ,
    )
    found.append(_estimate(FLOAT32, spec, shape, work, as_trained, dense))
    return found


def _integers(bits: int) -> _Execution:
    """Activations of ``bits`` by weights of 8."""
    product = _BYTE_PRODUCT_PJ * bits / _BYTE if bits > 1 else 0.0
    return _Execution(
        activation_bits=bits, rate_bits=bits, multiply_accumulate_pj=_ADD_PJ + product
    )


def _estimate(
    name: str, spec: GameSpec, config: NetConfig, work: WorkCounts, execution: _Execution,
    way: _Way,
) -> Estimate:
    operations = count_operations(spec, config)
    weight_bytes = operations.parameters * execution.weight_bits / _BYTE
    weight_pj = _MEBIBYTE_PJ_A_BIT * math.sqrt(weight_bytes / 2**20) * execution.weight_bits
    layers: dict[str, LayerEnergy] = {}
    neurons = iter(work.neurons.values())
    for each in operations.passes:
        if each.is_neurons:
            done = way.neurons(next(neurons))
            idle = each.neurons * execution.ticks - done.updates
            convention: dict[str, float] = {}
            fair = {"neurons": _NEURON_OPERATIONS * done.updates * execution.accumulate_pj}
            chip = {
                "neurons": _CHIP_UPDATE_PJ * done.updates + _CHIP_IDLE_PJ * idle,
                "events": _CHIP_EVENT_PJ * done.sent,
            }
        else:
            done = way.synapses(work.synapses[each.name])
            accumulates, multiplies = done.accumulates, done.multiply_accumulates
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
            chip = {"synaptic operations": _CHIP_OPERATION_PJ * (accumulates + multiplies)}
        fair |= _local_memory(each, execution, done)
        layers[each.name] = LayerEnergy(convention, fair, chip if name != FLOAT32 else {})
    return Estimate(name, layers)


def _local_memory(each: Pass, execution: _Execution, done: _LayerWork) -> dict[str, float]:
    """Terms of activations, shortcuts and membranes: currents stay where they are summed."""
    activations: float = (
        each.numbers_written - each.shortcuts_written if each.is_neurons else each.numbers_read
    )
    bits = execution.rate_bits if each.is_rate else execution.activation_bits
    if each.name == STEM:
        bits = 1
    shortcuts: float = each.shortcuts_read + each.shortcuts_written
    membranes: float = each.neurons * 2 * (execution.ticks - 1)
    if execution.sends_events:
        bits += 1 + math.ceil(math.log2(activations))
        activations *= done.share
        membranes = 2 * done.updates
        shortcuts *= done.updates / each.neurons if each.is_neurons else 1.0
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
