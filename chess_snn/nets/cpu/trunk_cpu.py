"""All convolutions of a network and their neurons as one kernel, for int8 on CPUs.

The kernel takes one position through all layers before it begins the next, so that spikes stay in
the cache next to the core, and one position costs no more than its share of many. Layers by oneDNN
take a fixed time for each call, which is most of it up to some sixteen positions.

Its spikes are those of :class:`chess_snn.nets.folded_convs.BinaryConv` and
:class:`chess_snn.nets.inference_neurons.CompiledNeurons`, to the bit.

Dimensions: B batch, P planes, C channels, H and W board, V channels of the value head, X outputs,
inputs or layers.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from chess_snn.games.base import GameSpec
from chess_snn.jit import int64, kernel
from chess_snn.nets.cpu.dot_tile import (
    DOT_PRODUCT,
    INPUTS_OF_PRODUCT,
    TILE_OUTPUTS,
    TILE_SQUARES,
    fire_tile,
    most_products,
)
from chess_snn.nets.folded_convs import round_weights
from chess_snn.nets.model.config import NetConfig
from chess_snn.nets.model.integer_neuron import spikes_of_current
from chess_snn.types import Float32Array, UInt8Array


def can_compile_trunk(spec: GameSpec, config: NetConfig) -> bool:
    """Whether the kernel can run a network of this shape in int8 on this processor."""
    return (
        config.activation == "ilif" and config.channels % TILE_OUTPUTS == 0
        and spec.board_shape[1] % TILE_SQUARES == 0 and DOT_PRODUCT is not None
        and spikes_of_current(config.threshold, config.levels) is not None
    )


class CompiledTrunk(nn.Module):
    """Computes what the heads read: spikes of the value head, rates of the policy head."""

    def __init__(self, convs: Sequence[nn.Conv2d], config: NetConfig) -> None:
        """Round the weights of ``convs`` and order them as the kernel reads them.

        Args:
            convs: with folded normalisation: the stem's, two of each block, the policy head's and
                the value head's.
            config: of the network, for which :func:`can_compile_trunk`.
        """
        super().__init__()
        self._channels, self._value_channels = config.channels, config.value_channels
        self._num_blocks = config.blocks
        spikes = spikes_of_current(config.threshold, config.levels)
        assert spikes is not None
        self._neuron = spikes, np.float32(config.levels), most_products(config.levels)
        weights, scales = zip(*(round_weights(conv.weight.detach()) for conv in convs), strict=True)
        biases = [conv.bias.detach() for conv in convs if conv.bias is not None]
        self._weights = np.concatenate([_tiles(weight) for weight in weights])
        self._scales, self._biases = (
            np.concatenate([_filled(each, TILE_OUTPUTS, 0).numpy() for each in both])
            for both in (scales, biases)
        )

    def forward(self, planes_BPHW: Tensor) -> tuple[Tensor, Tensor]:
        """Spikes uint8[1, B, V, H, W] and rates float32[B, C, H, W], channels-last.

        Args:
            planes_BPHW: uint8, channels-last.
        """
        batch, _, height, width = planes_BPHW.shape
        fired_BHWV = torch.empty((batch, height, width, self._value_channels), dtype=torch.uint8)
        rate_BHWC = torch.empty((batch, height, width, self._channels))
        _fire_boards(
            planes_BPHW.permute(0, 2, 3, 1).numpy(), self._weights, self._scales, self._biases,
            self._num_blocks, *self._neuron, fired_BHWV.numpy(), rate_BHWC.numpy(),
        )
        return fired_BHWV.permute(0, 3, 1, 2).unsqueeze(0), rate_BHWC.permute(0, 3, 1, 2)


def _tiles(weight: Tensor) -> np.ndarray:
    """int8 [outputs, inputs, rows, columns] of a kernel as the tiles read it, flat.

    In each tile [rows, columns, groups of inputs, outputs, inputs of a product].
    """
    weight = _filled(_filled(weight, TILE_OUTPUTS, 0), INPUTS_OF_PRODUCT, 1)
    outputs, inputs, rows, columns = weight.shape
    parts = weight.view(
        outputs // TILE_OUTPUTS, TILE_OUTPUTS, inputs // INPUTS_OF_PRODUCT, INPUTS_OF_PRODUCT,
        rows, columns,
    )
    ordered: np.ndarray = parts.permute(0, 4, 5, 2, 1, 3).flatten().numpy()
    return ordered


def _filled(tensor_X: Tensor, multiple: int, dim: int) -> Tensor:
    """Pad a dimension with zeros at its end, up to a multiple."""
    missing = -tensor_X.shape[dim] % multiple
    zeros = tensor_X.new_zeros([*tensor_X.shape[:dim], missing, *tensor_X.shape[dim + 1 :]])
    return torch.cat([tensor_X, zeros], dim)


@kernel
def _fire_boards(
    planes: UInt8Array, weights: np.ndarray, scales: Float32Array, biases: Float32Array,
    num_blocks: int, per_spike: np.float32, most_spikes: np.float32, most_of_part: int,
    value_spikes: UInt8Array, rates: Float32Array,
) -> None:
    """Fill ``value_spikes`` [B, H, W, V] and ``rates`` [B, H, W, C] of ``planes`` [B, H, W, P].

    Boards have a rim of one square that stays 0, so that a window needs no test for the edge.
    """
    batch, height, width, num_planes = planes.shape
    channels, value_channels = rates.shape[3], value_spikes.shape[3]
    rim = height + 2, width + 2
    seen = np.zeros((*rim, -(-num_planes // INPUTS_OF_PRODUCT) * INPUTS_OF_PRODUCT), np.uint8)
    fired = np.zeros((*rim, channels), np.uint8)
    inner = np.zeros((*rim, channels), np.uint8)
    values = np.zeros((*rim, -(-value_channels // TILE_OUTPUTS) * TILE_OUTPUTS), np.uint8)
    currents = np.empty((height, width, channels), np.float32)
    layer = weights, scales, biases, per_spike, most_spikes, most_of_part
    for b in range(batch):
        for row in range(height):
            for column in range(width):
                for plane in range(num_planes):
                    seen[row + 1, column + 1, plane] = planes[b, row, column, plane]
        currents[:] = np.float32(0)
        weight = output = int64(0)
        weight, output = _fire_layer(layer, weight, output, 3, seen, currents, fired)
        for _ in range(num_blocks):
            weight, output = _fire_layer(layer, weight, output, 3, fired, None, inner)
            weight, output = _fire_layer(layer, weight, output, 3, inner, currents, fired)
        weight, output = _fire_layer(layer, weight, output, 3, fired, None, inner)
        _fire_layer(layer, weight, output, 1, fired, None, values)
        for row in range(height):
            for column in range(width):
                for channel in range(channels):
                    rates[b, row, column, channel] = inner[row + 1, column + 1, channel]
                for channel in range(value_channels):
                    value_spikes[b, row, column, channel] = values[row + 1, column + 1, channel]


@kernel
def _fire_layer(
    layer: tuple[np.ndarray, Float32Array, Float32Array, np.float32, np.float32, int],
    first_weight: int, first_output: int, kernel_size: int, inputs: UInt8Array,
    currents: Float32Array | None, spikes: UInt8Array,
) -> tuple[int, int]:
    """One layer of one board; ``inputs`` and ``spikes`` are [H + 2, W + 2, channels].

    ``currents`` [H, W, channels] are those of the shortcut, if it ends here; the sum replaces them.

    Returns:
        The first weight and the first output of the next layer.
    """
    weights, scales, biases, per_spike, most_spikes, most_of_part = layer
    height, width, channels_in = inputs.shape
    channels_out = spikes.shape[2]
    row_products, parts = kernel_size * channels_in // INPUTS_OF_PRODUCT, 1
    while row_products % parts or row_products // parts > most_of_part:
        parts += 1
    row_bytes = width * channels_in
    margin = 1 - kernel_size // 2
    for output in range(0, channels_out, TILE_OUTPUTS):
        weight = first_weight + output * kernel_size * kernel_size * channels_in
        for row in range(height - 2):
            for column in range(0, width - 2, TILE_SQUARES):
                window = ((row + margin) * width + column + margin) * channels_in
                current = (row * (width - 2) + column) * channels_out + output
                spike = ((row + 1) * width + column + 1) * channels_out + output
                fire_tile(
                    (inputs, weights, scales, biases, currents, spikes), (per_spike, most_spikes),
                    (window, channels_in, row_bytes, kernel_size, parts, row_products // parts,
                     weight, first_output + output, current, spike, channels_out),
                )
    num_weights = channels_out * kernel_size * kernel_size * channels_in
    return first_weight + num_weights, first_output + channels_out
