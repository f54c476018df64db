"""The integer neuron: 0 to D spikes in one tick, so one convolution takes the place of D.

For the current x and the threshold theta, it fires::

    n = number of k in 1 ... D with x >= (k - 1/2) theta

spikes: x / theta rounded to the nearest integer in [0, D]. It is a spiking neuron in two ways: D
binary neurons with thresholds of their own (:func:`as_thresholds`), or one integrate-and-fire
neuron that starts at theta / 2, gets x once, and loses theta with each spike over D ticks without
leak. A convolution of n is the sum of the convolutions of those binary spikes (I-LIF, arXiv
2407.20708; spike firing approximation, arXiv 2411.16061).

In training dn/dx is a rectangle: 1 / theta where 0 <= x <= D theta, else 0.

Dimensions: X anything.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from chess_snn.nets.cpu import integer_kernels
from chess_snn.nets.cpu.neuron_cpu import memory_of


def integer_spikes(current_X: Tensor, threshold: float, levels: int) -> Tensor:
    """Spikes in {0, ..., ``levels``}, in the precision of ``current_X``; differentiable."""
    neuron = _CompiledSpikes if current_X.device.type == "cpu" else _Spikes
    spikes_X: Tensor = neuron.apply(current_X, threshold, levels)  # type: ignore[no-untyped-call]
    return spikes_X


def count_spikes(current_X: Tensor, threshold: float, levels: int) -> Tensor:
    """The definition: float32[X], of currents in any precision on any device."""
    return as_thresholds(current_X, threshold, levels).sum(0, dtype=torch.float32)


def as_thresholds(current_X: Tensor, threshold: float, levels: int) -> Tensor:
    """The spikes of ``levels`` binary neurons with rising thresholds, bool[D, X]."""
    least_D = level_thresholds(threshold, levels, current_X.device)
    return current_X.float() >= least_D.view(-1, *[1] * current_X.ndim)


def level_thresholds(
    threshold: float, levels: int, device: torch.device | str = "cpu"
) -> Tensor:
    """float32[D], rising: the least current for each number of spikes from 1 to ``levels``."""
    steps_D = torch.arange(levels, dtype=torch.float32, device=device) + 0.5
    return steps_D * threshold


@cache
def spikes_of_current(threshold: float, levels: int) -> np.float32 | None:
    """About ``1 / threshold``: its product with any bfloat16, rounded, is the number of spikes.

    Both the thresholds of :func:`level_thresholds` and the
    product are rounded, so neighbours of the quotient are tried too. None where none serves all.
    """
    currents = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    counted = count_spikes(torch.from_numpy(currents), threshold, levels).numpy()
    quotient = np.float32(1) / np.float32(threshold)
    for factor in (quotient, *(np.nextafter(quotient, to, dtype=np.float32) for to in (np.inf, 0))):
        with np.errstate(over="ignore", invalid="ignore"):
            products = currents * factor + np.float32(0.5)
        rounded = np.fmin(np.fmax(products, 0), np.float32(levels)).astype(np.int32)
        if (rounded == counted).all():
            return np.float32(factor)
    return None


class _Spikes(torch.autograd.Function):
    """Spikes and their gradient on any device; it keeps the currents."""

    @staticmethod
    def forward(ctx: Any, current_X: Tensor, threshold: float, levels: int) -> Tensor:
        ctx.save_for_backward(current_X)
        ctx.constants = threshold, levels
        return count_spikes(current_X, threshold, levels).to(current_X.dtype)

    @staticmethod
    def backward(ctx: Any, grad_X: Tensor) -> tuple[Tensor, None, None]:
        (current_X,) = ctx.saved_tensors
        threshold, levels = ctx.constants
        inside_X = (current_X >= 0) & (current_X <= threshold * levels)
        return torch.where(inside_X, grad_X / threshold, 0), None, None


class _CompiledSpikes(torch.autograd.Function):
    """The same by the kernels of :mod:`chess_snn.nets.cpu.integer_kernels`, on the CPU."""

    @staticmethod
    def forward(ctx: Any, current_X: Tensor, threshold: float, levels: int) -> Tensor:
        spikes_X = torch.empty_like(current_X)
        constants = np.float32(threshold), levels
        integer_kernels.fire(_memory(current_X), _memory(spikes_X), *constants)
        ctx.save_for_backward(current_X)
        ctx.constants = constants
        return spikes_X

    @staticmethod
    def backward(ctx: Any, grad_X: Tensor) -> tuple[Tensor, None, None]:
        (current_X,) = ctx.saved_tensors
        if grad_X.stride() != current_X.stride():
            grad_X = torch.empty_like(current_X).copy_(grad_X)
        result_X = torch.empty_like(current_X)
        integer_kernels.backward(
            _memory(grad_X), _memory(current_X), _memory(result_X), *ctx.constants
        )
        return result_X, None, None


def _memory(tensor_X: Tensor) -> np.ndarray:
    """The memory of ``tensor_X`` as [1, n]."""
    return memory_of(tensor_X.unsqueeze(0))
