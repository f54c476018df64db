"""The policy's readout of legal actions alone, as compiled kernels on the CPU.

Dimensions: B batch, S squares, C channels, L columns for legal actions.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from chess_snn.jit import kernel
from chess_snn.types import Float32Array

IntegerArray = NDArray[np.integer[Any]]


class LegalReadout(torch.autograd.Function):
    """As many dot products as there are legal actions, and not one for each action.

    Takes rates float32[B, S, C], weight and bias of the readout, legal actions [B, L] and their
    numbers [B]; gives logits float32[B, L], -inf behind each list.
    """

    @staticmethod
    def forward(
        ctx: Any, rate_BSC: Tensor, weight: Tensor, bias: Tensor, legal_actions_BL: Tensor,
        num_legal_B: Tensor,
    ) -> Tensor:
        """See the class."""
        ctx.save_for_backward(rate_BSC, weight, legal_actions_BL, num_legal_B)
        logits = np.empty(tuple(legal_actions_BL.shape), np.float32)
        _dot_products(
            rate_BSC.detach().numpy(), weight.detach().numpy(), bias.detach().numpy(),
            legal_actions_BL.numpy(), num_legal_B.numpy(), logits,
        )
        return torch.from_numpy(logits)

    @staticmethod
    def backward(
        ctx: Any, grad_BL: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, None, None]:
        """Gradients of rates, weight and bias."""
        rate_BSC, weight, legal_actions_BL, num_legal_B = ctx.saved_tensors
        grad_rate, grad_weight = torch.zeros_like(rate_BSC), torch.zeros_like(weight)
        grad_bias = weight.new_zeros(len(weight))
        _spread_gradients(
            grad_BL.contiguous().numpy(), rate_BSC.numpy(), weight.detach().numpy(),
            legal_actions_BL.numpy(), num_legal_B.numpy(),
            grad_rate.numpy(), grad_weight.numpy(), grad_bias.numpy(),
        )
        return grad_rate, grad_weight, grad_bias, None, None


@kernel
def _dot_products(
    rates: Float32Array, weights: Float32Array, biases: Float32Array,
    legal_actions: IntegerArray, num_legal: IntegerArray, logits: Float32Array,
) -> None:
    """``rates`` float32[B, S, C], ``weights`` float32[planes, C]; fills ``logits`` [B, L]."""
    lanes = 16
    num_planes, channels = weights.shape
    partial = np.empty(lanes, np.float32)
    for b in range(len(num_legal)):
        for j in range(num_legal[b]):
            square, plane = divmod(int(legal_actions[b, j]), num_planes)
            rate, weight = rates[b, square], weights[plane]
            # Independent sums, so that LLVM may add them side by side.
            partial[:] = np.float32(0)
            for start in range(0, channels - channels % lanes, lanes):
                for lane in range(lanes):
                    partial[lane] += rate[start + lane] * weight[start + lane]
            for channel in range(channels - channels % lanes, channels):
                partial[0] += rate[channel] * weight[channel]
            logits[b, j] = biases[plane] + partial.sum()
        logits[b, num_legal[b] :] = -np.inf


@kernel
def _spread_gradients(
    grad_logits: Float32Array, rates: Float32Array, weights: Float32Array,
    legal_actions: IntegerArray, num_legal: IntegerArray,
    grad_rates: Float32Array, grad_weights: Float32Array, grad_biases: Float32Array,
) -> None:
    """Add the gradients that follow from ``grad_logits`` float32[B, L] to the last three.

    These begin at 0.
    """
    num_planes, channels = weights.shape
    for b in range(len(num_legal)):
        for j in range(num_legal[b]):
            square, plane = divmod(int(legal_actions[b, j]), num_planes)
            grad = grad_logits[b, j]
            grad_biases[plane] += grad
            rate, weight = rates[b, square], weights[plane]
            grad_rate, grad_weight = grad_rates[b, square], grad_weights[plane]
            for channel in range(channels):
                grad_rate[channel] += grad * weight[channel]
                grad_weight[channel] += grad * rate[channel]
