"""The readouts: linear layers from the rates of a head's neurons to its answers, in float32.

Where an action goes from a square to another by the step of one of P planes, the policy's readout
has a weight for each channel and plane. The logit of an action is read from the neurons of the
square that it leaves and, with targets, also from those of the square that it goes to. All squares
share the weights. In other games the readout is a linear layer of the whole board.

Of chess's 4672 actions some thirty are ever asked for. Kernels read the legal ones alone: on the
CPU, and in play on a GPU.

Dimensions: B batch, C channels, H and W board, S = H * W squares, F features, A actions, L columns
for legal actions, P policy planes, X any of them.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from chess_snn.games.base import GameSpec
from chess_snn.jit import kernel, lean_kernel
from chess_snn.nets.model.neuron import has_triton
from chess_snn.types import Float32Array, Int64Array

IntegerArray = NDArray[np.integer[Any]]
ACTIONS_OF_A_BLOCK: Final = 16
"""Actions that a program on a GPU reads at a time."""
_BEHIND: Final = float("-inf")
_OFF_BOARD: Final = -1
_LANES: Final = 16
"""Sums of a dot product."""


def squares_first(x_XCHW: Tensor) -> Tensor:
    """[..., C, H, W] as features [..., H * W * C]: a view of channels-last memory."""
    return x_XCHW.movedim(-3, -1).flatten(-3)


def read_float32(readout: nn.Linear, rate_BX: Tensor) -> Tensor:
    """A readout in float32, under autocast too: a logit needs more than 8 bits."""
    with torch.autocast(rate_BX.device.type, enabled=False):
        logits: Tensor = readout(rate_BX.float())
    return logits


@dataclass(frozen=True, slots=True)
class PolicyReadout:
    """How the policy is read: the rule for all actions or some, with the layers of a network."""

    spec: GameSpec
    layer: nn.Linear
    """Weights of the square that an action leaves, [P, C]; or of the board, [A, H * W * C]."""
    target: nn.Linear | None
    """Weights of the square that an action goes to, [P, C] without a bias."""

    @property
    def is_dense(self) -> bool:
        """Whether it is a layer of the whole board."""
        return self.spec.policy_planes is None

    def of_all(self, rate_BCHW: Tensor) -> Tensor:
        """Logits float32[B, A] of all actions, legal or not."""
        logits_BA, of_targets_BA = self._of_squares(rate_BCHW)
        if of_targets_BA is None:
            return logits_BA
        targets_A = _target_actions(self.spec, rate_BCHW.device)
        return logits_BA + of_targets_BA[:, targets_A].masked_fill(targets_A == _OFF_BOARD, 0)

    def of_legal(
        self, rate_BCHW: Tensor, legal_actions_BL: Tensor, num_legal_B: Tensor
    ) -> Tensor:
        """Logits float32[B, L] of the listed actions; -inf behind each list.

        Differentiable in the rates and the weights.

        Args:
            rate_BCHW: float32, what the policy head's neurons fired.
            legal_actions_BL: integers, action = square * policy planes + plane.
            num_legal_B: integers.
        """
        read = self._choose_legal
        if rate_BCHW.device.type == "cpu" and not self.is_dense:
            read = self._read_legal
        elif not (self.is_dense or torch.is_grad_enabled()) and has_triton():
            read = self._read_legal_on_gpu
        return read(rate_BCHW, legal_actions_BL, num_legal_B)

    def _read_legal(
        self, rate_BCHW: Tensor, legal_actions_BL: Tensor, num_legal_B: Tensor
    ) -> Tensor:
        batch, channels = rate_BCHW.shape[:2]
        rate_BSC = squares_first(rate_BCHW).contiguous().view(batch, -1, channels)
        logits_BL: Tensor = _LegalReadout.apply(  # type: ignore[no-untyped-call]
            rate_BSC, self.layer.weight, self.layer.bias,
            rate_BSC.new_empty(0, channels) if self.target is None else self.target.weight,
            _target_actions(self.spec), legal_actions_BL, num_legal_B,
        )
        return logits_BL

    def _read_legal_on_gpu(
        self, rate_BCHW: Tensor, legal_actions_BL: Tensor, num_legal_B: Tensor
    ) -> Tensor:
        # Triton comes with torch for CUDA, and with no other torch.
        from triton import next_power_of_2  # noqa: PLC0415

        from chess_snn.nets.gpu.neuron_triton import on_device_of  # noqa: PLC0415
        from chess_snn.nets.gpu.readout_triton_kernels import read_legal  # noqa: PLC0415

        (batch, channels), columns = rate_BCHW.shape[:2], legal_actions_BL.shape[1]
        logits_BL = rate_BCHW.new_empty(batch, columns)
        target = self.layer if self.target is None else self.target
        with on_device_of(rate_BCHW):
            read_legal[(batch,)](
                squares_first(rate_BCHW).contiguous(), self.layer.weight, self.layer.bias,
                target.weight, _target_actions(self.spec, rate_BCHW.device),
                legal_actions_BL, num_legal_B, logits_BL,
                CHANNELS=channels, DEPTH=next_power_of_2(channels),
                SQUARES=math.prod(self.spec.board_shape), PLANES=len(self.spec.policy_steps),
                COLUMNS=columns, HAS_TARGET=self.target is not None, BLOCK=ACTIONS_OF_A_BLOCK,
            )
        return logits_BL

    def _choose_legal(
        self, rate_BCHW: Tensor, legal_actions_BL: Tensor, num_legal_B: Tensor
    ) -> Tensor:
        """Choose the legal ones from the logits of all actions."""
        columns_L = torch.arange(legal_actions_BL.shape[1], device=rate_BCHW.device)
        behind_BL = columns_L >= num_legal_B.unsqueeze(1)
        actions_BL = legal_actions_BL.long().masked_fill(behind_BL, 0)
        logits_BA, of_targets_BA = self._of_squares(rate_BCHW)
        logits_BL = logits_BA.gather(1, actions_BL)
        if of_targets_BA is not None:
            targets_A = _target_actions(self.spec, rate_BCHW.device)
            logits_BL = logits_BL + of_targets_BA.gather(1, targets_A[actions_BL].clamp_min(0))
        return logits_BL.masked_fill(behind_BL, _BEHIND)

    def _of_squares(self, rate_BCHW: Tensor) -> tuple[Tensor, Tensor | None]:
        """Logits of the squares, float32[B, A]: of actions that leave them, and that go to them."""
        rates = squares_first(rate_BCHW) if self.is_dense else rate_BCHW.movedim(-3, -1)
        logits_BA = read_float32(self.layer, rates).flatten(1)
        if self.target is None:
            return logits_BA, None
        return logits_BA, read_float32(self.target, rates).flatten(1)


@cache
@torch.inference_mode(mode=False)
def _target_actions(spec: GameSpec, device: torch.device | str = "cpu") -> Tensor:
    """int64[A]: the action of the same plane from the square that each goes to, or _OFF_BOARD."""
    height, width = spec.board_shape
    actions = np.full((height, width, len(spec.policy_steps)), _OFF_BOARD)
    for plane, (up, right) in enumerate(spec.policy_steps):
        for row in range(max(0, -up), min(height, height - up)):
            for column in range(max(0, -right), min(width, width - right)):
                square = (row + up) * width + column + right
                actions[row, column, plane] = square * len(spec.policy_steps) + plane
    return torch.from_numpy(actions.ravel()).to(device)


class _LegalReadout(torch.autograd.Function):
    """Computes as many dot products as there are legal actions, and not one for each action.

    Takes rates float32[B, S, C], weight [P, C] and bias [P] of the readout, weight [P, C] or [0, C]
    of its targets, the table of their actions [A], legal actions [B, L] and their numbers [B];
    gives logits float32[B, L], -inf behind each list.
    """

    @staticmethod
    def forward(
        ctx: Any, rate_BSC: Tensor, weight: Tensor, bias: Tensor, target_weight: Tensor,
        target_actions_A: Tensor, legal_actions_BL: Tensor, num_legal_B: Tensor,
    ) -> Tensor:
        """See the class."""
        ctx.save_for_backward(
            rate_BSC, weight, target_weight, target_actions_A, legal_actions_BL, num_legal_B
        )
        logits = np.empty(tuple(legal_actions_BL.shape), np.float32)
        _dot_products(
            rate_BSC.detach().numpy(), weight.detach().numpy(), bias.detach().numpy(),
            target_weight.detach().numpy(), target_actions_A.numpy(),
            legal_actions_BL.numpy(), num_legal_B.numpy(), logits, np.empty(_LANES, np.float32),
        )
        return torch.from_numpy(logits)

    @staticmethod
    def backward(
        ctx: Any, grad_BL: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, None, None, None]:
        """Gradients of rates, weights and bias."""
        rate_BSC, weight, target_weight, target_actions_A, *lists = ctx.saved_tensors
        legal_actions_BL, num_legal_B = lists
        grad_rate, grad_weight = torch.zeros_like(rate_BSC), torch.zeros_like(weight)
        grad_target, grad_bias = torch.zeros_like(target_weight), weight.new_zeros(len(weight))
        _spread_gradients(
            grad_BL.contiguous().numpy(), rate_BSC.numpy(), weight.detach().numpy(),
            target_weight.detach().numpy(),
            target_actions_A.numpy(), legal_actions_BL.numpy(), num_legal_B.numpy(),
            grad_rate.numpy(), grad_weight.numpy(), grad_target.numpy(), grad_bias.numpy(),
        )
        return grad_rate, grad_weight, grad_bias, grad_target, None, None, None


@lean_kernel
def _dot_products(
    rates: Float32Array, weights: Float32Array, biases: Float32Array,
    target_weights: Float32Array, target_actions: Int64Array,
    legal_actions: IntegerArray, num_legal: IntegerArray, logits: Float32Array,
    sums: Float32Array,
) -> None:
    """``rates`` float32[B, S, C], ``weights`` float32[P, C]; fills ``logits`` [B, L].

    ``target_weights`` float32[P, C], or [0, C] for none; ``sums`` float32[_LANES] is scratch.
    """
    num_planes = len(weights)
    for b in range(len(num_legal)):
        for j in range(num_legal[b]):
            action = int(legal_actions[b, j])
            square, plane = divmod(action, num_planes)
            logit = biases[plane] + _dot(rates, b, square, weights, plane, sums)
            if len(target_weights):
                target = target_actions[action] // num_planes
                logit += _dot(rates, b, target, target_weights, plane, sums)
            logits[b, j] = logit
        for j in range(num_legal[b], logits.shape[1]):
            logits[b, j] = -np.inf


@lean_kernel
def _dot(
    rates: Float32Array, b: int, square: int, weights: Float32Array, plane: int,
    sums: Float32Array,
) -> np.float32:
    """The product of two rows of C, by way of independent sums, which LLVM adds side by side."""
    channels = rates.shape[2]
    for lane in range(_LANES):
        sums[lane] = np.float32(0)
    for start in range(0, channels - channels % _LANES, _LANES):
        for lane in range(_LANES):
            sums[lane] += rates[b, square, start + lane] * weights[plane, start + lane]
    for channel in range(channels - channels % _LANES, channels):
        sums[0] += rates[b, square, channel] * weights[plane, channel]
    total = np.float32(0)
    for lane in range(_LANES):
        total += sums[lane]
    return total


@kernel
def _spread_gradients(
    grad_logits: Float32Array, rates: Float32Array, weights: Float32Array,
    target_weights: Float32Array, target_actions: Int64Array,
    legal_actions: IntegerArray, num_legal: IntegerArray,
    grad_rates: Float32Array, grad_weights: Float32Array, grad_target_weights: Float32Array,
    grad_biases: Float32Array,
) -> None:
    """Add the gradients that follow from ``grad_logits`` float32[B, L] to the last four.

    These begin at 0.
    """
    num_planes = len(weights)
    for b in range(len(num_legal)):
        for j in range(num_legal[b]):
            action = int(legal_actions[b, j])
            square, plane = divmod(action, num_planes)
            grad = grad_logits[b, j]
            grad_biases[plane] += grad
            _spread(
                grad, rates[b, square], weights[plane],
                grad_rates[b, square], grad_weights[plane],
            )
            if len(target_weights):
                target = target_actions[action] // num_planes
                _spread(
                    grad, rates[b, target], target_weights[plane],
                    grad_rates[b, target], grad_target_weights[plane],
                )


@kernel
def _spread(
    grad: np.float32, rate: Float32Array, weight: Float32Array,
    grad_rate: Float32Array, grad_weight: Float32Array,
) -> None:
    """The gradients of one dot product."""
    for channel in range(len(rate)):
        grad_rate[channel] += grad * weight[channel]
        grad_weight[channel] += grad * rate[channel]
