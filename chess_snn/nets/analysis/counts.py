"""Activity of a network on given positions: its spikes, operations without zeros, and membranes.

All counts are those of NeuroBench 2.3 (Yik et al., Nature Communications 16:1545, 2025; its code is
the reference), to the last one. A *synaptic operation* is one weight that one number passes: a
multiply-accumulate or, where the layer's inputs are 0 and 1, an accumulate. *Effective* operations
leave out zeros among inputs and weights. *Dense* ones do not. Padding and biases are in neither,
nor are normalisation and shortcuts.

Integer spikes are counted as the binary spikes of ``levels`` virtual ticks in each tick: those of
an integrate-and-fire neuron without leak (:mod:`chess_snn.nets.model.integer_neuron`). The readouts
see means over the ticks: they multiply, but for positions in which every mean is 0 or 1. What only
training asks for, the plies left, is left out; the policy is read for all actions, legal or not.

Where each position follows another one, *changes* can be counted in place of spikes: what neurons
of a sigma-delta network send (arXiv 2310.03251), which remember what they sent last.

Dimensions: T ticks, B batch, P planes, C channels, O outputs, H and W board, F features, X any.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import conv_transpose2d

from chess_snn.nets.analysis.activity import listening, watching
from chess_snn.nets.analysis.operations import POLICY_READOUT, STEM, TARGET_READOUT, VALUE_READOUT
from chess_snn.nets.model.config import NetConfig
from chess_snn.nets.model.layers import ConvNorm, Neurons
from chess_snn.nets.model.network import Network
from chess_snn.nets.model.neuron import lif_step

READOUTS: Final = (POLICY_READOUT, TARGET_READOUT, VALUE_READOUT)
"""The layers that see means over the ticks."""
_TRAINING_ONLY: Final = "value.plies_left_readout"
_CHUNK: Final = 64
"""Positions evaluated at a time."""


@dataclass(frozen=True, slots=True)
class LayerSpikes:
    """Spikes of one layer's neurons over some positions."""

    by_tick: tuple[float, ...]
    """Spikes in each tick."""
    chances: int
    """Most spikes that there could have been: one a neuron, tick and position, or `levels`."""

    @property
    def spikes(self) -> float:
        """Spikes of all ticks."""
        return sum(self.by_tick)

    @property
    def rate(self) -> float:
        """Share of neurons and ticks that spiked, in [0, 1]."""
        return self.spikes / self.chances

    @property
    def rates_by_tick(self) -> tuple[float, ...]:
        """The same of each tick."""
        return tuple(spikes * len(self.by_tick) / self.chances for spikes in self.by_tick)


@dataclass(frozen=True, slots=True)
class SpikeCounts:
    """Spikes of a network that evaluated some positions; a ReLU baseline fires none."""

    layers: dict[str, LayerSpikes]
    """Counts by the layer's name."""

    @property
    def rate(self) -> float:
        """Share of all neurons and ticks that spiked, in [0, 1]; 0 for a baseline."""
        chances = sum(layer.chances for layer in self.layers.values())
        return sum(layer.spikes for layer in self.layers.values()) / chances if chances else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SynapseCounts:
    """Work of one convolution or linear layer over some positions."""

    accumulates: int = 0
    """Effective operations of positions whose inputs are all 0 or 1."""
    multiply_accumulates: int = 0
    """Effective operations of the other positions."""
    dense: int = 0
    """Operations with zeros, in all virtual ticks."""
    merged: int = 0
    """Effective operations, had each neuron sent one number in place of its spikes."""
    merged_dense: int = 0
    """The same with zeros."""
    received: int = 0
    """Numbers that came in and were not 0, the spikes of a neuron being one number."""
    inputs: int = 0
    """All that came in."""
    weights: int = 0
    zero_weights: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuronCounts:
    """Work of one layer of neurons over some positions."""

    active: int = 0
    """Binary spikes; in the baseline, values above 0."""
    chances: int = 0
    """Most spikes that there could have been."""
    senders: int = 0
    """Neurons that sent anything."""
    num_neurons: int = 0
    membrane_updates: int = 0
    """All in the first tick, later those that changed a membrane; 0 in the baseline. Of changes,
    the neurons whose currents differ."""


@dataclass(frozen=True, slots=True)
class WorkCounts:
    """Work of a network that evaluated some positions."""

    synapses: dict[str, SynapseCounts]
    """Convolutions and linear layers by name, in the order of their work."""
    neurons: dict[str, NeuronCounts]
    """Layers of neurons by name, in the order of their work."""
    num_positions: int

    def total(self, count: str) -> int:
        """The sum over all layers that have a field ``count``."""
        layers = (*self.synapses.values(), *self.neurons.values())
        return sum(getattr(layer, count, 0) for layer in layers)

    @property
    def activation_sparsity(self) -> float:
        """Share of neurons and virtual ticks without a spike, or of values that are 0."""
        return 1 - self.total("active") / self.total("chances")

    @property
    def sender_share(self) -> float:
        """Share of neurons that sent anything: *active* ones or, of changes, *changed* ones."""
        return self.total("senders") / self.total("num_neurons")

    @property
    def connection_sparsity(self) -> float:
        """Share of weights that are 0, biases not counted."""
        return self.total("zero_weights") / self.total("weights")


def footprint(network: Network) -> int:
    """Bytes of all parameters and buffers, as NeuroBench counts them: as trained, in float32."""
    tensors = (*network.parameters(), *network.buffers())
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def changes_of_pairs(spikes_TBX: Tensor) -> Tensor:
    """Differences [T, B / 2, X] between the spikes of positions 0 and 1, 2 and 3, and so on."""
    return (spikes_TBX[:, ::2] - spikes_TBX[:, 1::2]).abs()


@torch.no_grad()
def count_spikes(
    network: Network, planes_BPHW: Tensor, of: Callable[[Tensor], Tensor] = torch.positive
) -> SpikeCounts:
    """Count what ``network`` fires for B >= 1 positions; ``of`` as in :func:`measuring_spike_rate`.

    It is evaluated with its running statistics and left as it was.
    """
    layers: dict[str, LayerSpikes] = {}
    most = network.config.most_spikes

    def see(name: str, _layer: nn.Module, _currents: Tensor, spikes: Tensor) -> None:
        numbers = of(spikes)
        by_tick = tuple(_sum(numbers.flatten(1), dim=1).tolist())
        layers[name] = LayerSpikes(by_tick, most * numbers.numel())

    if network.config.is_spiking:
        with watching(network, (Neurons,), see):
            network(planes_BPHW)
    return SpikeCounts(layers)


@contextmanager
def measuring_spike_rate(
    network: Network, of: Callable[[Tensor], Tensor] = torch.positive
) -> Iterator[Callable[[], Tensor]]:
    """Listen to calls of ``network``, in whatever mode it is.

    Args:
        network: that is called.
        of: numbers made of a layer's spikes, which stand in their place; each is at most as large.

    Yields:
        Function that gives, after a call, the ``rate`` of :class:`SpikeCounts` as float32[]:
        differentiable, through the neurons' surrogate.
    """
    sums: list[Tensor] = []
    chances = 0

    def see(_name: str, _layer: nn.Module, _currents: Tensor, spikes: Tensor) -> None:
        nonlocal chances
        numbers = of(spikes)
        sums.append(numbers.sum(dtype=torch.float32))
        chances += network.config.most_spikes * numbers.numel()

    with listening(network, (Neurons,), see):
        yield lambda: torch.stack(sums).sum() / chances


@torch.no_grad()
def count_work(
    network: Network, planes_BPHW: Tensor, before_BPHW: Tensor | None = None
) -> WorkCounts:
    """Count what ``network`` does for B >= 1 positions, in float32.

    It is evaluated with its running statistics and left as it was.

    Args:
        network: spiking, or a baseline.
        planes_BPHW: of the positions.
        before_BPHW: of the positions that they follow. Then layers get and send what differs from
            there, and these differences are counted as spikes are. Planes of zeros are rest:
            nothing was sent, so everything is.
    """
    config, board_shape = network.config, network.spec.board_shape
    synapses: dict[str, Counter[str]] = defaultdict(Counter)
    neurons: dict[str, Counter[str]] = defaultdict(Counter)
    of_changes = before_BPHW is not None
    follows_B = torch.zeros(0)

    def sent(numbers: Tensor, axis: int) -> Tensor:
        """The numbers, or their differences, with B positions along ``axis``."""
        if not of_changes:
            return numbers
        new, old = numbers.movedim(axis, 0).chunk(2)
        old = old * follows_B.view(-1, *[1] * (old.ndim - 1))
        return (new - old).abs().movedim(0, axis)

    def see(name: str, layer: nn.Module, inputs: Tensor, outputs: Tensor) -> None:
        if isinstance(layer, Neurons):
            currents, fired = sent(inputs, axis=1), sent(outputs, axis=1)
            neurons[name].update(_neuron_counts(config, currents, fired, of_changes=of_changes))
        elif isinstance(layer, ConvNorm | nn.Linear) and name != _TRAINING_ONLY:
            weight = layer.conv.weight if isinstance(layer, ConvNorm) else layer.weight
            numbers = sent(inputs, axis=0 if name in READOUTS else 1)
            synapses[name].update(_operations(config, name, weight, board_shape, numbers))
            synapses[name] |= _weights(weight)

    with watching(network, (ConvNorm, nn.Linear, Neurons), see):
        for first in range(0, len(planes_BPHW), _CHUNK):
            rows = slice(first, first + _CHUNK)
            if before_BPHW is None:
                network(planes_BPHW[rows])
            else:
                follows_B = before_BPHW[rows].flatten(1).any(1).to(planes_BPHW)
                network(torch.cat([planes_BPHW[rows], before_BPHW[rows]]))
    return WorkCounts(
        {name: SynapseCounts(**counts) for name, counts in synapses.items()},
        {name: NeuronCounts(**counts) for name, counts in neurons.items()},
        len(planes_BPHW),
    )


def _operations(
    config: NetConfig, name: str, weight: Tensor, board_shape: tuple[int, int], inputs: Tensor
) -> dict[str, int]:
    """Counts of one call with ``inputs`` [T, B, ...], or [B, ...] for a readout."""
    fan_out = _fan_out(weight != 0, board_shape)
    all_out = _fan_out(torch.ones_like(weight, dtype=torch.bool), board_shape)
    dense = round(float(all_out.sum())) * (inputs.numel() // all_out.numel())

    def effective(numbers: Tensor) -> int:
        """Operations, if every number stands for as many binary ones."""
        images = _sum(numbers.reshape(-1, *fan_out.shape), dim=0)
        return round(float((images * fan_out).sum()))

    if name == STEM:
        done = effective(inputs)
        return {
            "accumulates": done, "dense": dense, "merged": done, "merged_dense": dense,
            "received": int(inputs.count_nonzero()), "inputs": inputs.numel(),
        }
    if config.is_spiking and name not in READOUTS:
        return {
            "accumulates": effective(inputs), "dense": dense * config.most_spikes,
            "merged": effective(inputs.any(0)), "merged_dense": dense // config.ticks,
            "received": int(inputs.any(0).sum()), "inputs": inputs[0].numel(),
        }
    values_BX = inputs if name in READOUTS else inputs[0]
    is_zero, is_one = values_BX == 0, values_BX == config.most_spikes
    is_binary_B = (is_zero | is_one).flatten(1).all(1)
    binary, others = (effective(~is_zero[rows]) for rows in (is_binary_B, ~is_binary_B))
    return {
        "accumulates": binary, "multiply_accumulates": others,
        "dense": dense, "merged": binary + others, "merged_dense": dense,
        "received": int(values_BX.count_nonzero()), "inputs": values_BX.numel(),
    }


def _fan_out(is_weight: Tensor, board_shape: tuple[int, int]) -> Tensor:
    """How many outputs each input reaches: float64[C, H, W] of a convolution, else float64[F].

    ``is_weight`` bool[O, C, k, k] or bool[O, F]; at the border a kernel has no outputs beyond it.
    """
    ones = is_weight.double()
    if ones.ndim == 2:
        return ones.sum(0)
    outputs_1OHW = ones.new_ones(1, len(ones), *board_shape)
    return conv_transpose2d(outputs_1OHW, ones, padding=ones.shape[-1] // 2)[0]


def _weights(weight: Tensor) -> Counter[str]:
    return Counter(weights=weight.numel(), zero_weights=int((weight == 0).sum()))


def _neuron_counts(
    config: NetConfig, current_TBX: Tensor, fired_TBX: Tensor, *, of_changes: bool
) -> dict[str, int]:
    senders = {
        "senders": int(fired_TBX.any(0).sum()),
        "num_neurons": fired_TBX.numel() // len(fired_TBX),
    }
    if of_changes:
        updates = int(current_TBX.any(0).sum())
    elif not config.is_spiking:
        updates = 0
    elif config.activation == "ilif":
        # The first of a neuron's spikes falls into the tick of its current; each later one takes
        # the threshold from the membrane in a tick of its own.
        updates = fired_TBX.numel() + round(float(_sum((fired_TBX - 1).clamp_min(0))))
    else:
        updates = _membrane_updates(config, current_TBX)
    spikes = fired_TBX if config.is_spiking else fired_TBX != 0
    return senders | {
        "active": round(float(_sum(spikes))),
        "chances": config.most_spikes * fired_TBX.numel(), "membrane_updates": updates,
    }


def _membrane_updates(config: NetConfig, current_TBX: Tensor) -> int:
    updates, membrane_BX = current_TBX[0].numel(), None
    for current_BX in current_TBX:
        _, _, after_BX = lif_step(current_BX, membrane_BX, config.decay, config.threshold)
        if membrane_BX is not None:
            updates += int((after_BX != membrane_BX).sum())
        membrane_BX = after_BX
    return updates


def _sum(numbers: Tensor, dim: int | None = None) -> Tensor:
    """Exact: float64."""
    return numbers.sum(dim, dtype=torch.float64)
