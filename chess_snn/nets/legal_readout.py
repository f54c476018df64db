"""Policy logits of legal actions alone: of chess's 4672 actions, some thirty are ever asked for.

Dimensions: B batch, C channels, H and W board, S = H * W squares, L columns for legal actions.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from chess_snn.jit import kernel
from chess_snn.nets.layers import read_policy, squares_first
from chess_snn.types import Float32Array

IntegerArray = NDArray[np.integer[Any]]

_BEHIND = float("-inf")


def read_legal_policy(
    readout: nn.Linear, rate_BCHW: Tensor, legal_actions_BL: Tensor, num_legal_B: Tensor,
    is_dense: bool,
) -> Tensor:
    """Logits float32[B, L] of the listed actions; -inf behind each list, whatever stands there.

    Differentiable in the rates and the readout.

    Args:
        readout: from C channels to policy planes, or from S * C features to actions if dense.
        rate_BCHW: float32, what the policy head's neurons fired.
        legal_actions_BL: integers, action = square * policy planes + plane.
        num_legal_B: integers.
        is_dense: which of the two readouts it is.
    """
    if not is_dense and rate_BCHW.device.type == "cpu":
        batch, channels = rate_BCHW.shape[:2]
        rate_BSC = squares_first(rate_BCHW).contiguous().view(batch, -1, channels)
        logits_BL: Tensor = _LegalReadout.apply(  # type: ignore[no-untyped-call]
            rate_BSC, readout.weight, readout.bias, legal_actions_BL, num_legal_B
        )
        return logits_BL
    columns_L = torch.arange(legal_actions_BL.shape[1], device=rate_BCHW.device)
    behind_BL = columns_L >= num_legal_B.unsqueeze(1)
    actions_BL = legal_actions_BL.long().masked_fill(behind_BL, 0)
    logits_BA = read_policy(readout, rate_BCHW, is_dense)
    return logits_BA.gather(1, actions_BL).masked_fill(behind_BL, _BEHIND)


class _LegalReadout(torch.autograd.Function):
    """On the CPU: as many dot products as there are legal actions, and not one for each action."""

    @staticmethod
    def forward(
        ctx: Any, rate_BSC: Tensor, weight: Tensor, bias: Tensor, legal_actions_BL: Tensor,
        num_legal_B: Tensor,
    ) -> Tensor:
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
    """Add to the last three, which begin at 0, what ``grad_logits`` float32[B, L] comes to."""
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
