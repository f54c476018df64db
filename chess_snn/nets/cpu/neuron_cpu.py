"""The neuron on torch tensors of the CPU, by :mod:`chess_snn.nets.cpu.neuron_kernels`.

It gives the bits of :func:`chess_snn.nets.model.neuron.lif`, tens of times faster.

Dimensions: T ticks, X anything. Ticks must be dense in memory; their layout is kept.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from chess_snn.nets.cpu import neuron_kernels
from chess_snn.nets.model.neuron import like_ticks_of, tick_memory


def lif_cpu(current_TX: Tensor, decay: float, threshold: float, alpha: float = 2.0) -> Tensor:
    """Differentiable: as :func:`chess_snn.nets.model.neuron.lif`, for CPU tensors."""
    spikes_TX: Tensor = _CompiledLif.apply(current_TX, decay, threshold, alpha)  # type: ignore[no-untyped-call]
    return spikes_TX


def memory_of(tensor_TX: Tensor) -> np.ndarray:
    """The memory of ``tensor_TX`` as [T, n]: float32, uint16 for the bits of bfloat16, or uint8.

    Where all ticks are one (an expanded view), [1, n]. Writing to the array writes to the tensor.

    Raises:
        ValueError: ticks have gaps or lie at irregular distances.
        TypeError: another precision.
    """
    memory = tick_memory(tensor_TX)
    ticks = 1 if memory.tick_stride == 0 else len(tensor_TX)
    flat_TN = tensor_TX.detach().as_strided((ticks, memory.num_neurons), (memory.num_neurons, 1))
    if flat_TN.dtype == torch.bfloat16:
        flat_TN = flat_TN.view(torch.uint16)
    elif flat_TN.dtype not in (torch.float32, torch.uint8):
        raise TypeError(f"neurons on the CPU take float32 or bfloat16, got {flat_TN.dtype}")
    array: np.ndarray = flat_TN.numpy()
    return array


def squares_of(images_BCHW: Tensor) -> np.ndarray:
    """[B, H, W, C] of the same memory if it is channels-last: float32, or the bits of bfloat16."""
    squares = images_BCHW.permute(0, 2, 3, 1).contiguous()
    if squares.dtype == torch.bfloat16:
        squares = squares.view(torch.uint16)
    array: np.ndarray = squares.numpy()
    return array


class _CompiledLif(torch.autograd.Function):
    """Keeps what the reference keeps, and takes the same gradient."""

    @staticmethod
    def forward(
        ctx: Any, current_TX: Tensor, decay: float, threshold: float, alpha: float
    ) -> Tensor:
        spikes_TX = like_ticks_of(current_TX)
        current, spikes = memory_of(current_TX), memory_of(spikes_TX)
        constants = np.float32(decay), np.float32(threshold)
        if not ctx.needs_input_grad[0]:
            neuron_kernels.fire(current, spikes, *constants)
            return spikes_TX
        charges_TX = like_ticks_of(current_TX)
        neuron_kernels.fire_and_keep_charge(current, spikes, memory_of(charges_TX), *constants)
        ctx.save_for_backward(charges_TX, spikes_TX)
        ctx.constants = (*constants, np.float32(alpha / 2), np.float32(math.pi / 2 * alpha))
        return spikes_TX

    @staticmethod
    def backward(ctx: Any, grad_TX: Tensor) -> tuple[Tensor, None, None, None]:
        charges_TX, spikes_TX = ctx.saved_tensors
        if grad_TX.stride() != charges_TX.stride():
            grad_TX = torch.empty_like(charges_TX).copy_(grad_TX)
        result_TX = torch.empty_like(charges_TX)
        neuron_kernels.backward(
            memory_of(grad_TX), memory_of(charges_TX), memory_of(spikes_TX), memory_of(result_TX),
            *ctx.constants,
        )
        return result_TX, None, None, None
