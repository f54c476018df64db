"""A chain of layers in training on a CPU, in one call each way.

Layers are a 3x3 convolution, batch normalisation and neurons of one tick, integer ones or ReLU. The
first begins a shortcut, and every second one behind it ends it and begins the next: the stem and
the residual blocks of :mod:`chess_snn.nets.model.layers`. It takes their place in the precision of
:mod:`chess_snn.nets.cpu.conv_cpu`.

Few calls matter more than fast ones: of two threads with micro-batches of their own, only one runs
Python at a time.

Dimensions: B batch, H and W board, I and O channels in and out, C channels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from chess_snn.nets.cpu import norm_neuron_kernels, winograd_kernels
from chess_snn.nets.cpu.conv_cpu import PRECISION, can_convolve, convolved, images_of, taps_of
from chess_snn.nets.cpu.neuron_cpu import squares_of
from chess_snn.nets.model.config import NetConfig
from chess_snn.nets.model.integer_neuron import spikes_of_current
from chess_snn.types import Float32Array

Layer = tuple[nn.Conv2d, nn.BatchNorm2d]


def can_run(layers: Sequence[Layer], config: NetConfig, x_BIHW: Tensor) -> bool:
    """Whether :func:`run_chain` can take the place of these layers, in training, for such inputs.

    All layers have as many channels.
    """
    conv, norm = layers[0]
    return (
        norm.training and can_convolve(conv, x_BIHW)
        and config.ticks == 1 and spikes_and_most(config) is not None
    )


def run_chain(x_BIHW: Tensor, layers: Sequence[Layer], config: NetConfig) -> tuple[Tensor, ...]:
    """The spikes of each layer, [B, O, H, W] of ``PRECISION``; differentiable.

    The running statistics are updated.
    """
    parameters = [p for conv, norm in layers for p in (conv.weight, norm.weight, norm.bias)]
    spikes: tuple[Tensor, ...] = _Chain.apply(  # type: ignore[no-untyped-call]
        x_BIHW, layers, spikes_and_most(config), *parameters
    )
    return spikes


def spikes_and_most(config: NetConfig) -> tuple[np.float32, np.float32] | None:
    """Spikes for a current of 1, and the most, which is 0 for ReLU. None for other neurons."""
    if config.activation == "relu":
        return np.float32(1), np.float32(0)
    if config.activation != "ilif":
        return None
    per_spike = spikes_of_current(config.threshold, config.levels)
    return None if per_spike is None else (per_spike, np.float32(config.levels))


@dataclass(frozen=True, slots=True)
class _Pass:
    """Numbers of one layer that its gradients need."""

    seen: np.ndarray
    branch: np.ndarray
    current: np.ndarray
    spikes: np.ndarray
    taps: Float32Array
    """[O, 3, 3, I]"""
    weight: Float32Array
    """The normalisation's, [C]."""
    moments: Float32Array
    """[2, C]"""


class _Chain(torch.autograd.Function):
    """Gives and takes torch's tensors, and works on numpy's arrays in the same memory."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, layers: Sequence[Layer], neurons: tuple[np.float32, np.float32],
        *parameters: Tensor,
    ) -> tuple[Tensor, ...]:
        seen = squares_of(x.to(PRECISION))
        passes: list[_Pass] = []
        shortcut = None
        for k, (conv, norm) in enumerate(layers):
            ends = k > 0 and k % 2 == 0
            passes.append(_pass(seen, conv, norm, shortcut if ends else None, neurons))
            seen = passes[-1].spikes
            if ends or k == 0:
                shortcut = passes[-1].current
        ctx.set_materialize_grads(False)
        ctx.passes = passes
        ctx.constants = layers[0][0].in_channels, layers[0][1].eps, neurons
        return tuple(images_of(each.spikes) for each in passes)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        channels_in, epsilon, (per_spike, most_spikes) = ctx.constants
        grad: np.ndarray | None = None
        grad_shortcut: np.ndarray | None = None
        found: list[Tensor] = []
        for k in reversed(range(len(grads))):
            own, layer = grads[k], ctx.passes[k]
            if own is not None:
                grad = squares_of(own if grad is None else own + images_of(grad))
            if grad is None:
                grad = np.zeros_like(layer.spikes)
            ends = k % 2 == 0
            grad_sum, grad_branch = np.empty_like(grad), np.empty_like(grad)
            of_norm = np.empty_like(layer.moments)
            norm_neuron_kernels.go_backward(
                grad, grad_shortcut if ends else None, layer.branch, layer.current, layer.weight,
                layer.moments, epsilon, per_spike, most_spikes, grad_sum, grad_branch, of_norm,
            )
            if ends:
                grad_shortcut = grad_sum
            of_taps = np.empty_like(layer.taps)
            winograd_kernels.find_weight_gradient(layer.seen, grad_branch, of_taps)
            if k > 0 or ctx.needs_input_grad[0]:
                weights = winograd_kernels.backward_weights(layer.taps)
                grad = convolved(grad_branch, weights, layer.taps.shape[3])
            of_weight = torch.from_numpy(of_taps).permute(0, 3, 1, 2)
            found = [of_weight, *torch.from_numpy(of_norm), *found]
        found[0] = found[0][:, :channels_in]
        grad_x = None
        if ctx.needs_input_grad[0]:
            assert grad is not None
            grad_x = images_of(grad)[:, :channels_in]
        return grad_x, None, None, *found


def _pass(
    seen: np.ndarray, conv: nn.Conv2d, norm: nn.BatchNorm2d, shortcut: np.ndarray | None,
    neurons: tuple[np.float32, np.float32],
) -> _Pass:
    taps = taps_of(conv.weight)
    branch = convolved(seen, winograd_kernels.forward_weights(taps), conv.out_channels)
    current, spikes = np.empty_like(branch), np.empty_like(branch)
    weight, bias = norm.weight.detach().numpy(), norm.bias.detach().numpy()
    moments = np.empty((2, len(weight)), np.float32)
    norm_neuron_kernels.normalise_and_fire(
        branch, shortcut, weight, bias, norm.eps, *neurons, moments, current, spikes
    )
    assert norm.momentum is not None
    assert norm.num_batches_tracked is not None
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.num_batches_tracked.add_(1)
    norm_neuron_kernels.follow(
        moments, branch.size // len(weight), norm.momentum, norm.running_mean.numpy(),
        norm.running_var.numpy(),
    )
    return _Pass(seen, branch, current, spikes, taps, weight, moments)
