"""Kernels of normalisation, shortcut and neurons of one tick, for training on CPUs.

Memory and types are as in :mod:`chess_snn.nets.cpu.neuron_kernels`: float32, or the bits of
bfloat16. The channels of a square, whole vectors, follow each other.

Dimensions: B batch, H and W board, C channels.
"""

import numpy as np

from chess_snn.jit import copy_row, kernel
from chess_snn.nets.cpu.norm_neuron_passes import (
    LANES,
    add_moments,
    differentiate,
    normalise,
    sum_gradients,
)
from chess_snn.types import Float32Array

_BLOCK = 64
"""Rows that stay in the cache next to the core; the sums of a block are float32, all others
float64."""
_ZERO, _ONE = np.float32(0), np.float32(1)


@kernel
def normalise_and_fire(
    branch: np.ndarray, shortcut: np.ndarray | None, weight: Float32Array, bias: Float32Array,
    epsilon: float, per_spike: np.float32, most_spikes: np.float32, moments: Float32Array,
    current: np.ndarray, spikes: np.ndarray,
) -> None:
    """Normalise, add, and let neurons fire; each result is rounded to the precision of memory.

    Args:
        branch: [B, H, W, C].
        shortcut: [B, H, W, C], which is added; or None.
        weight: of the normalisation, [C].
        bias: of the normalisation, [C].
        epsilon: of the normalisation.
        per_spike: spikes for a current of 1.
        most_spikes: of a neuron, or 0 for ReLU.
        moments: [2, C], filled with means and biased variances.
        current: [B, H, W, C], filled with what the neurons get.
        spikes: [B, H, W, C], filled with what they fire.
    """
    width = len(weight)
    num_rows = branch.size // width
    _find_moments(branch, moments)
    scale, shift = np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(width):
        scale[i] = weight[i] / np.sqrt(moments[1, i] + epsilon)
        shift[i] = bias[i] - moments[0, i] * scale[i]
    for row in range(0, num_rows, _BLOCK):
        for i in range(0, width, LANES):
            normalise(
                (branch, shortcut, scale, shift, current, spikes), (per_spike, most_spikes),
                (row * width + i, i, min(_BLOCK, num_rows - row), width),
            )


@kernel
def go_backward(
    grad_spikes: np.ndarray, grad_current: np.ndarray | None, branch: np.ndarray,
    current: np.ndarray, weight: Float32Array, moments: Float32Array, epsilon: float,
    per_spike: np.float32, most_spikes: np.float32, grad_sum: np.ndarray, grad_branch: np.ndarray,
    grad_parameters: Float32Array,
) -> None:
    """Find the gradients of :func:`normalise_and_fire`, through the batch's moments too.

    Args:
        grad_spikes: [B, H, W, C].
        grad_current: [B, H, W, C], or None where the currents go nowhere else.
        branch: as there, as the next six.
        current: [B, H, W, C].
        weight: [C].
        moments: [2, C].
        epsilon: number.
        per_spike: number.
        most_spikes: number.
        grad_sum: [B, H, W, C], filled: of the normalised branch, and of the shortcut.
        grad_branch: [B, H, W, C], filled.
        grad_parameters: [2, C], filled: of ``weight`` and ``bias``.
    """
    width = len(weight)
    num_rows = branch.size // width
    scale, shift = np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(width):
        scale[i] = _ONE / np.sqrt(moments[1, i] + epsilon)
        shift[i] = -moments[0, i] * scale[i]
    low, high, slope = _ZERO, most_spikes / per_spike, per_spike
    if most_spikes == _ZERO:
        low, high, slope = np.float32(1e-45), np.float32(np.inf), _ONE
    sums = np.zeros((2, width), np.float64)
    block = np.empty((2, width), np.float32)
    for row in range(0, num_rows, _BLOCK):
        block[:] = _ZERO
        for i in range(0, width, LANES):
            sum_gradients(
                (grad_spikes, grad_current, branch, current, scale, shift, grad_sum, block[1],
                 block[0]),
                (low, high, slope), (row * width + i, i, min(_BLOCK, num_rows - row), width),
            )
        sums += block
    factor, offset = np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(width):
        grad_parameters[0, i], grad_parameters[1, i] = sums[0, i], sums[1, i]
        mean_product = grad_parameters[0, i] / num_rows
        mean_grad = grad_parameters[1, i] / num_rows
        factor[i] = weight[i] * scale[i]
        offset[i] = -factor[i] * (mean_grad + shift[i] * mean_product)
        scale[i] *= -factor[i] * mean_product
    for row in range(0, num_rows, _BLOCK):
        for i in range(0, width, LANES):
            differentiate(
                (grad_sum, branch, factor, scale, offset, grad_branch), (),
                (row * width + i, i, min(_BLOCK, num_rows - row), width),
            )


@kernel
def follow(
    moments: Float32Array, num_squares: int, momentum: float, mean: Float32Array,
    variance: Float32Array,
) -> None:
    """Let the running statistics [C], with the unbiased variance, follow those of a batch."""
    for c in range(len(mean)):
        unbiased = moments[1, c] * num_squares / (num_squares - 1)
        mean[c] += momentum * (moments[0, c] - mean[c])
        variance[c] += momentum * (unbiased - variance[c])


@kernel
def _find_moments(branch: np.ndarray, moments: Float32Array) -> None:
    """Mean and biased variance of each channel.

    Numbers are counted from their channel's first one, so that a variance is exact beside a large
    mean.
    """
    width = moments.shape[1]
    num_rows = branch.size // width
    begin = np.zeros(width, np.float32)
    sums = np.zeros((2, width), np.float64)
    block = np.zeros((2, width), np.float32)
    for i in range(0, width, LANES):
        add_moments((branch, begin, block[0], block[1]), (), (i, i, 1, width))
    copy_row(block[0], begin)
    for row in range(0, num_rows, _BLOCK):
        block[:] = _ZERO
        for i in range(0, width, LANES):
            add_moments(
                (branch, begin, block[0], block[1]), (),
                (row * width + i, i, min(_BLOCK, num_rows - row), width),
            )
        sums += block
    for c in range(width):
        mean = sums[0, c] / num_rows
        moments[0, c] = begin[c] + mean
        moments[1, c] = sums[1, c] / num_rows - mean * mean
