"""Kernels of 3x3 convolutions for training on CPUs, by Winograd's method.

With 2.25 times fewer products than a plain convolution
(:mod:`chess_snn.nets.cpu.winograd_tile`). Sums are float32. In bfloat16, spikes stay exact; weights
are rounded once, after their transformation; gradients are rounded once more than in a plain
convolution, so their error is at most twice bfloat16's own.

Images are numbers, the bits of bfloat16 or float32. Boards have sides of a multiple of 4; channels,
where nothing else is said, come in whole vectors of products.

Dimensions: B batch, H and W board, I and O channels in and out, P positions of a transformed tile,
U numbers of a unit.
"""

from typing import Final

import numpy as np

from chess_snn.jit import kernel
from chess_snn.nets.cpu.winograd_tile import (
    LANES,
    NUMBER,
    NUMBER_BYTES,
    POSITIONS,
    PRODUCT_COLUMNS,
    PRODUCT_ROWS,
    UNIT,
    multiply,
    multiply_and_add,
    transform_inputs,
    transform_results,
    transform_units_of_gradients,
    transform_units_of_inputs,
    transform_units_of_weights,
    transform_weight_gradients,
    transform_weights,
)
from chess_snn.types import Float32Array

_GAP: Final = 96
"""Numbers between the positions of transformed tiles, so that the cache has room for all of them:
at a distance of a power of two they would take the same place."""
_PART: Final = 4 * UNIT
"""Boards whose tiles are summed at once into the gradient of weights."""


@kernel
def forward_weights(taps: Float32Array) -> np.ndarray:
    """Transformed weights, numbers [P, I / U, O * U], of float32[O, 3, 3, I]."""
    outputs, _, _, inputs = taps.shape
    line = np.empty((POSITIONS, inputs // UNIT, UNIT), NUMBER)
    weights = np.empty((POSITIONS, inputs // UNIT, outputs), np.uint32)
    units = line.view(np.uint32)
    for o in range(outputs):
        for i in range(0, inputs, LANES):
            transform_weights(
                (taps, line), (),
                ((o * 9 * inputs + i) * 4, 3 * inputs * 4, inputs * 4, 0,
                 i * NUMBER_BYTES, 4 * inputs * NUMBER_BYTES, inputs * NUMBER_BYTES),
            )
        for p in range(POSITIONS):
            for i in range(inputs // UNIT):
                weights[p, i, o] = units[p, i, 0]
    return weights.view(NUMBER)


@kernel
def backward_weights(taps: Float32Array) -> np.ndarray:
    """Those of the kernel turned round, for gradients: [P, O / U, I * U]."""
    outputs, _, _, inputs = taps.shape
    weights = np.empty((POSITIONS, outputs // UNIT, inputs * UNIT), NUMBER)
    step = outputs * inputs * NUMBER_BYTES
    for o in range(0, outputs, UNIT):
        for i in range(0, inputs, LANES):
            transform_units_of_weights(
                (taps, weights), (),
                (((o * 9 + 8) * inputs + i) * 4, -3 * inputs * 4, -inputs * 4, 9 * inputs * 4,
                 (o * inputs + UNIT * i) * NUMBER_BYTES, 4 * step, step),
            )
    return weights


@kernel
def convolve(images: np.ndarray, weights: np.ndarray, result: np.ndarray) -> None:
    """Fill ``result`` [B, H, W, O] from ``images`` [B, H, W, I].

    The images may have fewer channels than the weights, of :func:`forward_weights` or, from
    gradients back to inputs, of :func:`backward_weights`.
    """
    batch, height, width, channels_in = images.shape
    inputs, outputs = UNIT * weights.shape[1], result.shape[3]
    tiles = height * width // 4
    # The tiles of a board, or of two small ones, are whole blocks of rows.
    boards = 1 if tiles % PRODUCT_ROWS == 0 else 2
    rows = boards * tiles
    rim = np.zeros((height + 2, width + 2, inputs), NUMBER)
    column = inputs * NUMBER_BYTES
    row = (width + 2) * column
    input_step, sum_step = rows * inputs + _GAP, rows * outputs + _GAP
    seen = np.zeros(POSITIONS * input_step, NUMBER)
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
                        (corner + i * NUMBER_BYTES, row, column, 0,
                         (((b - first) * tiles + t) * inputs + i) * NUMBER_BYTES,
                         4 * input_step * NUMBER_BYTES, input_step * NUMBER_BYTES),
                    )
        for p in range(POSITIONS):
            for o in range(0, outputs, PRODUCT_COLUMNS):
                for t in range(0, rows, PRODUCT_ROWS):
                    multiply(
                        (seen, weights, sums), (),
                        ((p * input_step + t * inputs) * NUMBER_BYTES, column, 4,
                         (p * inputs * outputs + UNIT * o) * NUMBER_BYTES, outputs * 4,
                         (p * sum_step + t * outputs + o) * 4, outputs * 4, inputs // UNIT),
                    )
        for b in range(first, last):
            for t in range(tiles):
                place = (b * height + 2 * (t // (width // 2))) * width + 2 * (t % (width // 2))
                for o in range(0, outputs, LANES):
                    transform_results(
                        (sums, result), (),
                        ((((b - first) * tiles + t) * outputs + o) * 4,
                         4 * sum_step * 4, sum_step * 4, 0,
                         (place * outputs + o) * NUMBER_BYTES, width * outputs * NUMBER_BYTES,
                         outputs * NUMBER_BYTES),
                    )


@kernel
def find_weight_gradient(images: np.ndarray, grads: np.ndarray, taps: Float32Array) -> None:
    """Fill ``taps`` float32[O, 3, 3, I] from [B, H, W, I] and [B, H, W, O]."""
    batch, height, width, channels_in = images.shape
    outputs, inputs = grads.shape[3], taps.shape[3]
    tiles = height * width // 4
    rim = np.zeros((height + 2, width + 2, inputs), NUMBER)
    column = inputs * NUMBER_BYTES
    row = (width + 2) * column
    units = _PART * tiles // UNIT
    input_step, grad_step = units * inputs * UNIT + _GAP, units * outputs * UNIT + _GAP
    seen = np.empty(POSITIONS * input_step, NUMBER)
    wanted = np.empty(POSITIONS * grad_step, NUMBER)
    sums = np.zeros((POSITIONS, outputs, inputs), np.float32)
    sum_step = outputs * inputs * 4
    for first in range(0, batch, _PART):
        last = min(first + _PART, batch)
        for b in range(first, last):
            _put_in_rim(images[b], channels_in, rim)
            for t in range(0, tiles, UNIT):
                y, x = 2 * (t // (width // 2)), 2 * (t % (width // 2))
                unit = ((b - first) * tiles + t) // UNIT
                for i in range(0, inputs, LANES):
                    transform_units_of_inputs(
                        (rim, seen), (),
                        (y * row + x * column + i * NUMBER_BYTES, row, column, 2 * column,
                         (unit * inputs + i) * 4, 4 * input_step * NUMBER_BYTES,
                         input_step * NUMBER_BYTES),
                    )
                for o in range(0, outputs, LANES):
                    transform_units_of_gradients(
                        (grads, wanted), (),
                        ((((b * height + y) * width + x) * outputs + o) * NUMBER_BYTES,
                         width * outputs * NUMBER_BYTES, outputs * NUMBER_BYTES,
                         2 * outputs * NUMBER_BYTES,
                         (unit * outputs + o) * 4, 4 * grad_step * NUMBER_BYTES,
                         grad_step * NUMBER_BYTES),
                    )
        for p in range(POSITIONS):
            for o in range(0, outputs, PRODUCT_ROWS):
                for i in range(0, inputs, PRODUCT_COLUMNS):
                    multiply_and_add(
                        (wanted, seen, sums), (),
                        ((p * grad_step + UNIT * o) * NUMBER_BYTES, 4, outputs * 4,
                         (p * input_step + UNIT * i) * NUMBER_BYTES, inputs * 4,
                         ((p * outputs + o) * inputs + i) * 4, inputs * 4,
                         (last - first) * tiles // UNIT),
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
