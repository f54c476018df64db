"""Kernels of 3x3 convolutions in bfloat16 for training on CPUs, by Winograd's method.

With 2.25 times fewer products than a plain convolution
(:mod:`chess_snn.nets.cpu.winograd_tile`). Sums are float32. Spikes stay exact; weights are rounded
once, after their transformation; gradients are rounded once more than in a plain convolution, so
their error is at most twice bfloat16's own.

Images are the bits of bfloat16. Boards have sides of a multiple of 4; channels, where nothing else
is said, come in whole vectors of products.

Dimensions: B batch, H and W board, I and O channels in and out, P positions of a transformed tile.
"""

from typing import Final

import numpy as np

from chess_snn.jit import kernel
from chess_snn.nets.cpu.winograd_tile import (
    LANES,
    POSITIONS,
    PRODUCT_COLUMNS,
    PRODUCT_ROWS,
    multiply,
    multiply_and_add,
    transform_inputs,
    transform_paired_gradients,
    transform_paired_inputs,
    transform_paired_weights,
    transform_results,
    transform_weight_gradients,
    transform_weights,
)
from chess_snn.types import Float32Array

_GAP: Final = 96
"""Numbers between the positions of transformed tiles, so that the cache has room for all of them:
at a distance of a power of two they would take the same place."""
_PART: Final = 8
"""Boards whose tiles are summed at once into the gradient of weights."""


@kernel
def forward_weights(taps: Float32Array) -> np.ndarray:
    """Transformed weights uint16[P, I / 2, O, 2] of float32[O, 3, 3, I]."""
    outputs, _, _, inputs = taps.shape
    line = np.empty((POSITIONS, inputs // 2, 2), np.uint16)
    weights = np.empty((POSITIONS, inputs // 2, outputs), np.uint32)
    pairs = line.view(np.uint32)
    for o in range(outputs):
        for i in range(0, inputs, LANES):
            transform_weights(
                (taps, line), (),
                ((o * 9 * inputs + i) * 4, 3 * inputs * 4, inputs * 4, 0,
                 i * 2, 4 * inputs * 2, inputs * 2),
            )
        for p in range(POSITIONS):
            for i in range(inputs // 2):
                weights[p, i, o] = pairs[p, i, 0]
    return weights.view(np.uint16)


@kernel
def backward_weights(taps: Float32Array) -> np.ndarray:
    """Transformed weights uint16[P, O / 2, I, 2] of the kernel turned round, for gradients."""
    outputs, _, _, inputs = taps.shape
    weights = np.empty((POSITIONS, outputs // 2, inputs * 2), np.uint16)
    step = outputs * inputs * 2
    for o in range(0, outputs, 2):
        for i in range(0, inputs, LANES):
            transform_paired_weights(
                (taps, weights), (),
                (((o * 9 + 8) * inputs + i) * 4, -3 * inputs * 4, -inputs * 4, 9 * inputs * 4,
                 (o * inputs + 2 * i) * 2, 4 * step, step),
            )
    return weights


@kernel
def convolve(images: np.ndarray, weights: np.ndarray, result: np.ndarray) -> None:
    """Fill ``result`` uint16[B, H, W, O] from ``images`` uint16[B, H, W, I].

    The images may have fewer channels than the weights, of :func:`forward_weights` or, from
    gradients back to inputs, of :func:`backward_weights`.
    """
    batch, height, width, channels_in = images.shape
    inputs, outputs = 2 * weights.shape[1], result.shape[3]
    tiles = height * width // 4
    # The tiles of a board, or of two small ones, are whole blocks of rows.
    boards = 1 if tiles % PRODUCT_ROWS == 0 else 2
    rows = boards * tiles
    rim = np.zeros((height + 2, width + 2, inputs), np.uint16)
    row, column = (width + 2) * inputs * 2, inputs * 2
    input_step, sum_step = rows * inputs + _GAP, rows * outputs + _GAP
    seen = np.zeros(POSITIONS * input_step, np.uint16)
    sums = np.empty(POSITIONS * sum_step, np.float32)
    for first in range(0, batch, boards):
        last = min(first + boards, batch)
        for b in range(first, last):
            _put_in_rim(images[b], channels_in, rim)
            for t in range(tiles):
                corner = 2 * (t // (width // 2)) * row + 2 * (t % (width // 2)) * column
                for i in range(0, inputs, LANES):
                    transform_inputs(
                        (rim, seen), (),
                        (corner + i * 2, row, column, 0,
                         (((b - first) * tiles + t) * inputs + i) * 2,
                         4 * input_step * 2, input_step * 2),
                    )
        for p in range(POSITIONS):
            for o in range(0, outputs, PRODUCT_COLUMNS):
                for t in range(0, rows, PRODUCT_ROWS):
                    multiply(
                        (seen, weights, sums), (),
                        ((p * input_step + t * inputs) * 2, inputs * 2, 4,
                         (p * inputs * outputs + 2 * o) * 2, outputs * 4,
                         (p * sum_step + t * outputs + o) * 4, outputs * 4, inputs // 2),
                    )
        for b in range(first, last):
            for t in range(tiles):
                place = (b * height + 2 * (t // (width // 2))) * width + 2 * (t % (width // 2))
                for o in range(0, outputs, LANES):
                    transform_results(
                        (sums, result), (),
                        ((((b - first) * tiles + t) * outputs + o) * 4,
                         4 * sum_step * 4, sum_step * 4, 0,
                         (place * outputs + o) * 2, width * outputs * 2, outputs * 2),
                    )


@kernel
def find_weight_gradient(images: np.ndarray, grads: np.ndarray, taps: Float32Array) -> None:
    """Fill ``taps`` float32[O, 3, 3, I] from uint16[B, H, W, I] and uint16[B, H, W, O]."""
    batch, height, width, channels_in = images.shape
    outputs, inputs = grads.shape[3], taps.shape[3]
    tiles = height * width // 4
    rim = np.zeros((height + 2, width + 2, inputs), np.uint16)
    row, column = (width + 2) * inputs * 2, inputs * 2
    pairs = _PART * tiles // 2
    input_step, grad_step = pairs * inputs * 2 + _GAP, pairs * outputs * 2 + _GAP
    seen = np.empty(POSITIONS * input_step, np.uint16)
    wanted = np.empty(POSITIONS * grad_step, np.uint16)
    sums = np.zeros((POSITIONS, outputs, inputs), np.float32)
    sum_step = outputs * inputs * 4
    for first in range(0, batch, _PART):
        last = min(first + _PART, batch)
        for b in range(first, last):
            _put_in_rim(images[b], channels_in, rim)
            for t in range(0, tiles, 2):
                y, x = 2 * (t // (width // 2)), 2 * (t % (width // 2))
                pair = ((b - first) * tiles + t) // 2
                for i in range(0, inputs, LANES):
                    transform_paired_inputs(
                        (rim, seen), (),
                        (y * row + x * column + i * 2, row, column, 2 * column,
                         (pair * inputs + i) * 4, 4 * input_step * 2, input_step * 2),
                    )
                for o in range(0, outputs, LANES):
                    transform_paired_gradients(
                        (grads, wanted), (),
                        ((((b * height + y) * width + x) * outputs + o) * 2,
                         width * outputs * 2, outputs * 2, 2 * outputs * 2,
                         (pair * outputs + o) * 4, 4 * grad_step * 2, grad_step * 2),
                    )
        for p in range(POSITIONS):
            for o in range(0, outputs, PRODUCT_ROWS):
                for i in range(0, inputs, PRODUCT_COLUMNS):
                    multiply_and_add(
                        (wanted, seen, sums), (),
                        ((p * grad_step + 2 * o) * 2, 4, outputs * 4,
                         (p * input_step + 2 * i) * 2, inputs * 4,
                         ((p * outputs + o) * inputs + i) * 4, inputs * 4,
                         (last - first) * tiles // 2),
                    )
    for o in range(outputs):
        for i in range(0, inputs, LANES):
            transform_weight_gradients(
                (sums, taps), (),
                ((o * inputs + i) * 4, 4 * sum_step, sum_step, 0,
                 (o * 9 * inputs + i) * 4, 3 * inputs * 4, inputs * 4),
            )


@kernel
def _put_in_rim(image: np.ndarray, channels: int, rim: np.ndarray) -> None:
    """Copy [H, W, I] into the middle of [H + 2, W + 2, at least I]."""
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            for i in range(channels):
                rim[y + 1, x + 1, i] = image[y, x, i]
