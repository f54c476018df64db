"""3x3 convolutions in training on a CPU, by :mod:`chess_snn.nets.cpu.winograd_kernels`.

In bfloat16 where the processor multiplies pairs of it, and every number that torch would round is
rounded here; on other processors in float32.

Dimensions: B batch, H and W board, I and O channels in and out, C channels.
"""

from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from chess_snn.nets.cpu import winograd_kernels
from chess_snn.nets.cpu.neuron_cpu import squares_of
from chess_snn.nets.cpu.winograd_tile import HAS_PRODUCTS, IN_PAIRS, NUMBER, PRODUCT_COLUMNS
from chess_snn.types import Float32Array

PRECISION: Final = torch.bfloat16 if IN_PAIRS else torch.float32
"""The type of images."""


def can_convolve(conv: nn.Conv2d, x_BIHW: Tensor) -> bool:
    """Whether :func:`convolve` can take the place of ``conv`` for such inputs."""
    height, width = x_BIHW.shape[-2:]
    is_cast = torch.is_autocast_enabled("cpu")
    precision = torch.get_autocast_dtype("cpu") if is_cast else conv.weight.dtype
    return (
        HAS_PRODUCTS and x_BIHW.device.type == "cpu" and precision == PRECISION
        and conv.kernel_size == (3, 3) and conv.out_channels % PRODUCT_COLUMNS == 0
        and height % 4 == width % 4 == 0
    )


def convolve(conv: nn.Conv2d, x_BIHW: Tensor) -> Tensor:
    """The convolution, [B, O, H, W] of ``PRECISION``; differentiable."""
    result: Tensor = _Convolution.apply(x_BIHW, conv.weight)  # type: ignore[no-untyped-call]
    return result


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.seen, ctx.taps = squares_of(x.to(PRECISION)), taps_of(weight)
        weights = winograd_kernels.forward_weights(ctx.taps)
        return images_of(convolved(ctx.seen, weights, len(weight)))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor]:
        grads, of_taps, grad_x = squares_of(grad), np.empty_like(ctx.taps), None
        winograd_kernels.find_weight_gradient(ctx.seen, grads, of_taps)
        if ctx.needs_input_grad[0]:
            weights = winograd_kernels.backward_weights(ctx.taps)
            grad_x = images_of(convolved(grads, weights, of_taps.shape[3]))[:, : ctx.seen.shape[3]]
        return grad_x, torch.from_numpy(of_taps).permute(0, 3, 1, 2)[:, : ctx.seen.shape[3]]


def convolved(squares: np.ndarray, weights: np.ndarray, channels: int) -> np.ndarray:
    """Numbers [B, H, W, ``channels``] of ``squares``, by transformed weights."""
    result = np.empty((*squares.shape[:3], channels), NUMBER)
    winograd_kernels.convolve(squares, weights, result)
    return result


def taps_of(weight_OIKK: Tensor) -> Float32Array:
    """The weights as float32[O, 3, 3, I], with I filled up to whole vectors of products."""
    taps = weight_OIKK.detach().permute(0, 2, 3, 1)
    missing = -taps.shape[3] % PRODUCT_COLUMNS
    if missing:
        taps = nn.functional.pad(taps, (0, missing))
    filled: Float32Array = taps.contiguous().numpy()
    return filled


def images_of(squares: np.ndarray) -> Tensor:
    """[B, C, H, W], channels-last, of numbers [B, H, W, C] in the same memory."""
    return torch.from_numpy(squares).view(PRECISION).permute(0, 3, 1, 2)
