"""What one evaluation costs, counted from a network's shape, and how much a network spikes.

Operations are those of the passes of :class:`chess_snn.nets.inference.InferenceNetwork` over one
position, with normalisation folded and all ticks together; the ReLU baseline is the case of one
tick. Zeros count like other numbers: no pass skips what did not spike. With the operations and the
bandwidth of a device, they give the least time it can take.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from chess_snn.games.base import GameSpec
from chess_snn.nets.config import NetConfig
from chess_snn.nets.layers import Neurons
from chess_snn.nets.network import Network
from chess_snn.nets.values import num_value_outputs

POLICY_READOUT: Final = "policy.readout"
"""The one pass that may be done in part: on a CPU it is, for the legal actions."""

_KERNEL_AREA: Final = 9


@dataclass(frozen=True, slots=True)
class Pass:
    """One layer's work for one position."""

    name: str
    macs: int
    """Multiply-accumulates; 0 for neurons, whose few additions are not counted."""
    numbers_read: int
    """Activations that come in, each once."""
    numbers_written: int
    """Activations that go out, each once."""
    parameters: int
    """Weights and biases, which are read once a batch."""
    is_neurons: bool = False
    """Whether it is a layer of neurons."""


@dataclass(frozen=True, slots=True)
class Operations:
    """All passes of one evaluation, in their order."""

    passes: tuple[Pass, ...]

    @property
    def macs(self) -> int:
        """Multiply-accumulates a position; a processor's peak counts two operations for each."""
        return sum(each.macs for each in self.passes)

    @property
    def parameters(self) -> int:
        """Weights and biases of the network that plays."""
        return sum(each.parameters for each in self.passes)

    def macs_of(self, name: str) -> int:
        """Multiply-accumulates of the pass ``name``.

        Raises:
            KeyError: no pass has this name.
        """
        return {each.name: each.macs for each in self.passes}[name]

    def bytes_moved(
        self, bytes_a_number: int, batch_size: int, *, neurons_only: bool = False
    ) -> float:
        """Bytes a position that cross memory at least, where no pass is fused with the next.

        Args:
            bytes_a_number: 4 in fp32, 2 in bf16.
            batch_size: positions that share one reading of the parameters.
            neurons_only: of the layers of neurons alone.
        """
        numbers = 0.0
        for each in self.passes:
            if each.is_neurons or not neurons_only:
                numbers += each.numbers_read + each.numbers_written + each.parameters / batch_size
        return numbers * bytes_a_number


def count_operations(spec: GameSpec, config: NetConfig) -> Operations:
    """The passes of a network of this shape for this game."""
    return Operations((*_trunk(spec, config), *_policy(spec, config), *_value(spec, config)))


def _trunk(spec: GameSpec, config: NetConfig) -> Iterator[Pass]:
    squares, ticks = math.prod(spec.board_shape), config.ticks
    layer = squares * config.channels
    yield _conv3x3("stem", squares, spec.num_planes, config.channels, ticks=1)
    # The input does not change, so the first neurons read one tick and fire in all.
    yield _neurons("stem.neurons", layer, ticks * layer)
    shortcut = layer
    for block in range(config.blocks):
        name = f"blocks.{block}"
        yield _conv3x3(f"{name}.conv1", squares, config.channels, config.channels, ticks)
        yield _neurons(f"{name}.neurons1", ticks * layer, ticks * layer)
        yield _conv3x3(f"{name}.conv2", squares, config.channels, config.channels, ticks)
        # They add the shortcut, and hand on the sum beside its spikes.
        yield _neurons(f"{name}.neurons2", shortcut + ticks * layer, 2 * ticks * layer)
        shortcut = ticks * layer


def _policy(spec: GameSpec, config: NetConfig) -> Iterator[Pass]:
    squares, ticks = math.prod(spec.board_shape), config.ticks
    layer = squares * config.channels
    yield _conv3x3("policy.conv", squares, config.channels, config.channels, ticks)
    yield _neurons("policy.neurons", ticks * layer, layer)
    if spec.policy_planes is None:
        yield _linear(POLICY_READOUT, layer, spec.num_actions)
    else:
        yield _linear(POLICY_READOUT, config.channels, spec.policy_planes, times=squares)


def _value(spec: GameSpec, config: NetConfig) -> Iterator[Pass]:
    squares, ticks = math.prod(spec.board_shape), config.ticks
    seen, hidden = squares * config.value_channels, config.value_hidden
    # A 1x1 convolution is a linear layer of every square.
    yield _linear("value.conv", config.channels, config.value_channels, times=ticks * squares)
    yield _neurons("value.neurons1", ticks * seen, ticks * seen)
    yield _linear("value.hidden", seen, hidden, times=ticks)
    yield _neurons("value.neurons2", ticks * hidden, hidden)
    yield _linear("value.readout", hidden, num_value_outputs(spec))


def _conv3x3(name: str, squares: int, channels_in: int, channels_out: int, ticks: int) -> Pass:
    weights = _KERNEL_AREA * channels_in * channels_out
    images = ticks * squares
    return Pass(
        name, images * weights, images * channels_in, images * channels_out,
        weights + channels_out,
    )


def _linear(name: str, features_in: int, features_out: int, times: int = 1) -> Pass:
    weights = features_in * features_out
    return Pass(
        name, times * weights, times * features_in, times * features_out, weights + features_out
    )


def _neurons(name: str, numbers_read: int, numbers_written: int) -> Pass:
    return Pass(name, 0, numbers_read, numbers_written, parameters=0, is_neurons=True)


@dataclass(frozen=True, slots=True)
class LayerSpikes:
    """What the neurons of one layer fired over some positions."""

    spikes: float
    chances: int
    """As many spikes as there could have been: one a neuron, tick and position, or `levels`."""

    @property
    def rate(self) -> float:
        """Share of neurons and ticks that spiked, in [0, 1]."""
        return self.spikes / self.chances


@dataclass(frozen=True, slots=True)
class SpikeCounts:
    """What a network fired while it evaluated some positions; a ReLU baseline fires nothing."""

    layers: dict[str, LayerSpikes]
    """By the layer's name."""
    num_positions: int

    @property
    def per_evaluation(self) -> float:
        """Mean number of spikes in the whole network when it evaluates one position."""
        return sum(layer.spikes for layer in self.layers.values()) / self.num_positions

    @property
    def rate(self) -> float:
        """Share of all neurons and ticks that spiked, in [0, 1]; 0 for a baseline."""
        chances = sum(layer.chances for layer in self.layers.values())
        return sum(layer.spikes for layer in self.layers.values()) / chances if chances else 0.0


@torch.no_grad()
def count_spikes(network: Network, planes_BPHW: Tensor) -> SpikeCounts:
    """Count what ``network`` fires for B >= 1 positions.

    It is evaluated with its running statistics and left as it was.
    """
    layers: dict[str, LayerSpikes] = {}
    if network.config.is_spiking:
        was_training = network.training
        network.eval()
        try:
            with _counting(network) as layers:
                network(planes_BPHW)
        finally:
            network.train(was_training)
    return SpikeCounts(layers, len(planes_BPHW))


@contextmanager
def _counting(network: Network) -> Iterator[dict[str, LayerSpikes]]:
    """Count what every layer of neurons fires while the context is open."""
    counts: dict[str, LayerSpikes] = {}

    def count(name: str, spikes: Tensor) -> None:
        counts[name] = LayerSpikes(float(spikes.sum(dtype=torch.float64)), most * spikes.numel())

    most = network.config.most_spikes

    def watch(name: str, layer: Neurons) -> torch.utils.hooks.RemovableHandle:
        def hook(_layer: nn.Module, _inputs: tuple[Tensor, ...], spikes: Tensor) -> None:
            count(name, spikes)

        return layer.register_forward_hook(hook)

    handles = [
        watch(name, layer) for name, layer in network.named_modules() if isinstance(layer, Neurons)
    ]
    try:
        yield counts
    finally:
        for handle in handles:
            handle.remove()
