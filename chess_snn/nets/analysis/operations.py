"""Cost of one evaluation, counted from a network's shape alone.

Operations are those of the passes of :class:`chess_snn.nets.inference.InferenceNetwork` over one
position, with normalisation folded and all ticks together; the ReLU baseline is the case of one
tick. Zeros count like other numbers: no pass skips what did not spike. What a network does on given
positions, without the zeros, is counted in :mod:`chess_snn.nets.analysis.counts`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from chess_snn.games.base import GameSpec
from chess_snn.nets.model.config import NetConfig
from chess_snn.nets.model.values import num_value_outputs

STEM: Final = "stem"
"""The layer that sees the planes, which are bits in every network."""
POLICY_READOUT: Final = "policy.readout"
"""A pass that may be done in part: on a CPU it is, for the legal actions."""
TARGET_READOUT: Final = "policy.target_readout"
"""The other one: of the squares that actions go to."""
VALUE_READOUT: Final = "value.readout"
"""The last pass."""

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
    neurons: int = 0
    """Neurons of the layer; 0 for convolutions and linear layers."""
    shortcuts_read: int = 0
    """Numbers of the shortcut among ``numbers_read``."""
    shortcuts_written: int = 0
    """Numbers of the shortcut among ``numbers_written``."""
    is_rate: bool = False
    """Whether the activations are means over the ticks, in place of spikes."""

    @property
    def is_neurons(self) -> bool:
        """Whether it is a layer of neurons."""
        return self.neurons > 0


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


def count_operations(spec: GameSpec, config: NetConfig) -> Operations:
    """The passes of a network of this shape for this game."""
    return Operations((*_trunk(spec, config), *_policy(spec, config), *_value(spec, config)))


def num_parameters(spec: GameSpec, config: NetConfig) -> int:
    """Trained numbers: those of the passes, each scale of a norm, and the readout of plies left."""
    scales = (2 * config.blocks + 2) * config.channels + config.value_channels
    return count_operations(spec, config).parameters + scales + config.value_hidden + 1


def _trunk(spec: GameSpec, config: NetConfig) -> Iterator[Pass]:
    squares, ticks = math.prod(spec.board_shape), config.ticks
    layer = squares * config.channels
    # The input does not change, so the first neurons read one tick and fire in all; the first
    # shortcut is what they read.
    stem = _conv3x3(STEM, squares, config.num_planes(spec), config.channels, ticks=1)
    yield replace(stem, shortcuts_written=layer)
    yield _neurons("stem.neurons", layer, layer, ticks * layer)
    shortcut = layer
    for block in range(config.blocks):
        name = f"blocks.{block}"
        yield _conv3x3(f"{name}.conv1", squares, config.channels, config.channels, ticks)
        yield _neurons(f"{name}.neurons1", layer, ticks * layer, ticks * layer)
        yield _conv3x3(f"{name}.conv2", squares, config.channels, config.channels, ticks)
        # They add the shortcut, and hand on the sum beside its spikes.
        yield replace(
            _neurons(f"{name}.neurons2", layer, shortcut + ticks * layer, 2 * ticks * layer),
            shortcuts_read=shortcut, shortcuts_written=ticks * layer,
        )
        shortcut = ticks * layer


def _policy(spec: GameSpec, config: NetConfig) -> Iterator[Pass]:
    squares, ticks = math.prod(spec.board_shape), config.ticks
    layer = squares * config.channels
    yield _conv3x3("policy.conv", squares, config.channels, config.channels, ticks)
    yield _neurons("policy.neurons", layer, ticks * layer, layer, is_rate=True)
    if spec.policy_planes is None:
        yield _linear(POLICY_READOUT, layer, spec.num_actions, is_rate=True)
        return
    readout = _linear(POLICY_READOUT, config.channels, spec.policy_planes, squares, is_rate=True)
    yield readout
    if config.target_readout:
        yield replace(
            readout, name=TARGET_READOUT, parameters=config.channels * spec.policy_planes
        )


def _value(spec: GameSpec, config: NetConfig) -> Iterator[Pass]:
    squares, ticks = math.prod(spec.board_shape), config.ticks
    seen, hidden = squares * config.value_channels, config.value_hidden
    # A 1x1 convolution is a linear layer of every square.
    yield _linear("value.conv", config.channels, config.value_channels, times=ticks * squares)
    yield _neurons("value.neurons1", seen, ticks * seen, ticks * seen)
    yield _linear("value.hidden", seen, hidden, times=ticks)
    yield _neurons("value.neurons2", hidden, ticks * hidden, hidden, is_rate=True)
    yield _linear(VALUE_READOUT, hidden, num_value_outputs(spec), is_rate=True)


def _conv3x3(name: str, squares: int, channels_in: int, channels_out: int, ticks: int) -> Pass:
    weights = _KERNEL_AREA * channels_in * channels_out
    images = ticks * squares
    return Pass(
        name, images * weights, images * channels_in, images * channels_out,
        weights + channels_out,
    )


def _linear(
    name: str, features_in: int, features_out: int, times: int = 1, *, is_rate: bool = False
) -> Pass:
    weights = features_in * features_out
    return Pass(
        name, times * weights, times * features_in, times * features_out, weights + features_out,
        is_rate=is_rate,
    )


def _neurons(
    name: str, neurons: int, numbers_read: int, numbers_written: int, *, is_rate: bool = False
) -> Pass:
    return Pass(
        name, 0, numbers_read, numbers_written, parameters=0, neurons=neurons, is_rate=is_rate
    )
