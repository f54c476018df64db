"""A network as nothing but convolutions, neurons and sums, for formats of other libraries.

Normalisation is folded into the convolutions. A linear layer of the whole board is a convolution
whose kernel is the board, and a linear layer of each square one of kernel 1, so no layer reshapes.
Shortcuts are sums: the currents of neurons are those of all their sources, added in their order.

Dimensions: C channels, H and W board.
"""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from chess_snn.games.base import GameSpec
from chess_snn.nets.model.config import NetConfig
from chess_snn.nets.model.integer_neuron import level_thresholds
from chess_snn.nets.model.layers import Block, ConvNorm, PolicyHead, ValueHead
from chess_snn.nets.model.network import Network

INPUT: Final = "planes"
"""Name of what the first convolution reads: float32[B, P, H, W] in {0, 1}."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution, or neurons; layers of neurons have their name in :class:`Network`."""

    name: str
    sources: tuple[str, ...]
    """Names of the layers whose sum it takes: convolutions for neurons, else one layer."""
    shape: tuple[int, ...]
    """(C, H, W) of what it gives."""
    conv: nn.Conv2d | None = None
    """float32 on the CPU, with a bias; None for neurons."""


@dataclass(frozen=True, slots=True)
class FoldedLayers:
    """The layers of a network in an order in which they can be computed.

    The last of each head is its readout, a convolution. It gives [planes, H, W] for a policy of
    planes, where action = square * planes + plane, and [outputs, 1, 1] for any other head.
    """

    config: NetConfig
    input_shape: tuple[int, ...]
    trunk: list[Layer]
    policy: list[Layer]
    value: list[Layer]

    @property
    def thresholds(self) -> list[float]:
        """Currents, or membranes of leaky neurons, from which a neuron fires one spike more."""
        config = self.config
        if config.activation == "ilif":
            return cast("list[float]", level_thresholds(config.threshold, config.levels).tolist())
        return [torch.tensor(config.threshold).item()]


def fold_layers(network: Network) -> FoldedLayers:
    """The layers of ``network``, which is left as it is, with its running statistics."""
    source = copy.deepcopy(network).cpu().eval().requires_grad_(False).float()
    spec = network.spec
    shape = (network.config.channels, *spec.board_shape)
    return FoldedLayers(
        network.config, (network.num_planes, *spec.board_shape),
        list(_trunk(source, shape)), list(_policy(source.policy, shape)),
        list(_value(source.value, shape)),
    )


def _trunk(network: Network, shape: tuple[int, ...]) -> Iterator[Layer]:
    yield _conv("stem", INPUT, _folded(network.stem), shape)
    shortcut: tuple[str, ...] = ("stem",)
    for number, block in enumerate(network.blocks):
        assert isinstance(block, Block)
        name = f"blocks.{number}"
        yield Layer(f"{name}.neurons1", shortcut, shape)
        yield _conv(f"{name}.conv1", f"{name}.neurons1", _folded(block.conv1), shape)
        yield Layer(f"{name}.neurons2", (f"{name}.conv1",), shape)
        yield _conv(f"{name}.conv2", f"{name}.neurons2", _folded(block.conv2), shape)
        shortcut = (*shortcut, f"{name}.conv2")
    yield Layer("neurons", shortcut, shape)


def _policy(head: PolicyHead, shape: tuple[int, ...]) -> Iterator[Layer]:
    yield _conv("policy.conv", "neurons", _folded(head.conv), shape)
    yield Layer("policy.neurons", ("policy.conv",), shape)
    seen = shape if head.readouts.is_dense else (shape[0], 1, 1)
    conv = _as_conv(head.readout, seen)
    if head.target_readout is not None:
        _add_targets(conv, head.target_readout, head.spec)
    yield _conv("policy.readout", "policy.neurons", conv, shape)


def _value(head: ValueHead, shape: tuple[int, ...]) -> Iterator[Layer]:
    conv = _conv("value.conv", "neurons", _folded(head.conv), shape)
    yield conv
    yield Layer("value.neurons1", ("value.conv",), conv.shape)
    hidden = _conv("value.hidden", "value.neurons1", _as_conv(head.hidden, conv.shape), conv.shape)
    yield hidden
    yield Layer("value.neurons2", ("value.hidden",), hidden.shape)
    readout = _as_conv(head.readout, hidden.shape)
    yield _conv("value.readout", "value.neurons2", readout, hidden.shape)


def _conv(name: str, source: str, conv: nn.Conv2d, shape: tuple[int, ...]) -> Layer:
    """The layer of ``conv``, which reads ``shape``."""
    sizes = (
        length + 2 * int(conv.padding[axis]) - conv.kernel_size[axis] + 1
        for axis, length in enumerate(shape[1:])
    )
    return Layer(name, (source,), (conv.out_channels, *sizes), conv)


def _folded(layer: ConvNorm) -> nn.Conv2d:
    return fuse_conv_bn_eval(layer.conv, layer.norm)


def _as_conv(linear: nn.Linear, shape: tuple[int, ...]) -> nn.Conv2d:
    """The convolution whose kernel [C, H, W] is ``shape``; features of ``linear`` are [H, W, C]."""
    channels, *kernel = shape
    assert linear.in_features == math.prod(shape)
    conv = nn.Conv2d(channels, linear.out_features, (kernel[0], kernel[1]))
    weight: Tensor = linear.weight.detach().view(-1, *kernel, channels).permute(0, 3, 1, 2)
    conv.weight = nn.Parameter(weight.contiguous(), requires_grad=False)
    conv.bias = nn.Parameter(linear.bias.detach(), requires_grad=False)
    return conv


def _add_targets(conv: nn.Conv2d, target: nn.Linear, spec: GameSpec) -> None:
    """Widen the kernel of ``conv``, 1x1, so that it reaches all squares that actions go to."""
    height, width = spec.board_shape
    padding = (height - 1, width - 1)
    weight_PCKK = nn.functional.pad(conv.weight, (padding[1], padding[1], padding[0], padding[0]))
    for plane, (up, right) in enumerate(spec.policy_steps):
        weight_PCKK[plane, :, padding[0] + up, padding[1] + right] += target.weight[plane]
    conv.weight = nn.Parameter(weight_PCKK, requires_grad=False)
    conv.kernel_size, conv.padding = tuple(weight_PCKK.shape[2:]), padding
