"""Policy logits of legal actions alone: of chess's 4672 actions, some thirty are ever asked for.

Dimensions: B batch, C channels, H and W board, S = H * W squares, L columns for legal actions.
"""

import numpy as np
import torch
from torch import Tensor, nn

from chess_snn.jit import kernel
from chess_snn.nets.layers import read_policy, squares_first
from chess_snn.types import Float32Array, Int16Array, Int32Array

_BEHIND = float("-inf")


def read_legal_policy(
    readout: nn.Linear, rate_BCHW: Tensor, legal_actions_BL: Tensor, num_legal_B: Tensor,
    is_dense: bool,
) -> Tensor:
    """Logits float32[B, L] of the listed actions; -inf behind each list, whatever stands there.

    Args:
        readout: from C channels to policy planes, or from S * C features to actions if dense.
        rate_BCHW: float32, what the policy head's neurons fired.
        legal_actions_BL: int16, action = square * policy planes + plane.
        num_legal_B: int32.
        is_dense: which of the two readouts it is.
    """
    if not is_dense and rate_BCHW.device.type == "cpu":
        return _read_on_cpu(readout, rate_BCHW, legal_actions_BL, num_legal_B)
    columns_L = torch.arange(legal_actions_BL.shape[1], device=rate_BCHW.device)
    behind_BL = columns_L >= num_legal_B.unsqueeze(1)
    actions_BL = legal_actions_BL.long().masked_fill_(behind_BL, 0)
    logits_BA = read_policy(readout, rate_BCHW, is_dense)
    return logits_BA.gather(1, actions_BL).masked_fill_(behind_BL, _BEHIND)


def _read_on_cpu(
    readout: nn.Linear, rate_BCHW: Tensor, legal_actions_BL: Tensor, num_legal_B: Tensor
) -> Tensor:
    batch, channels = rate_BCHW.shape[:2]
    rate_BSC = squares_first(rate_BCHW).contiguous().view(batch, -1, channels)
    logits = np.empty(tuple(legal_actions_BL.shape), np.float32)
    _dot_products(
        rate_BSC.numpy(), readout.weight.numpy(), readout.bias.numpy(),
        legal_actions_BL.numpy(), num_legal_B.numpy(), logits,
    )
    return torch.from_numpy(logits)


@kernel
def _dot_products(
    rates: Float32Array, weights: Float32Array, biases: Float32Array,
    legal_actions: Int16Array, num_legal: Int32Array, logits: Float32Array,
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
