"""Batch normalisation, shortcut and neuron in one pass each way, for training on CUDA devices.

It takes the place of ``norm``, the sum with a shortcut, and the neurons of
:mod:`chess_snn.nets.model.layers`, with the statistics of the batch. A pass backward computes the
charges again rather than reading them. So a layer moves less memory; in units of A, the bytes of
one layer's spikes in all ticks:

===================================  ========================  ========================
of a layer                           by itself                 fused
===================================  ========================  ========================
convolution, forward and backward    2 + 4                     2 + 4
statistics and normalisation         1 + 2                     1 + 0
shortcut, every second layer         3                         0
neuron, forward                      3 (keeps its charges)     2, or 4 with a shortcut
neuron, backward                     4                         0
shortcut, backward                   3                         0
normalisation, backward              5                         5, or 8 with a shortcut
a layer without / with a shortcut    21 / 27                   14 / 19
===================================  ========================  ========================

The mean goes from 24 A to 16.5 A. Sums over rows are of fixed parts in a fixed order, so that
training again gives the same bits. Statistics are not torch's own kernel, which takes 3.6 times as
long on an H200 (docs/gpu.md).

With ``TRITON_INTERPRET=1`` the kernels run on CPU tensors, see
:mod:`chess_snn.nets.gpu.neuron_triton`.

Dimensions: T ticks, B batch, C channels, H and W board, R = B * H * W rows.
"""

import math
from typing import Any, Final

import torch
import triton
from torch import Tensor, nn

from chess_snn.nets.gpu import norm_neuron_triton_kernels as kernels
from chess_snn.nets.gpu.neuron_triton import on_device_of
from chess_snn.nets.model.config import NetConfig

_MOST_COLUMNS: Final = 128
_MOST_PROGRAMS: Final = 1024
"""Most programs that sum over rows: each leaves sums, so every device has the same number."""
_MOMENT_ROWS, _MOMENT_COLUMNS = 128, 8
"""Size of a tile of these sums."""


def fire(branch_TBCHW: Tensor, norm: nn.BatchNorm2d, config: NetConfig) -> Tensor:
    """Spikes [T, B, C, H, W] of neurons that get the normalised branch; differentiable.

    Args:
        branch_TBCHW: float32 or bfloat16, with as many ticks as the neurons.
        norm: in training; its running statistics are updated.
        config: of leaky or integer neurons, of at most 4 ticks.
    """
    spikes_TBCHW: Tensor
    _, spikes_TBCHW = _apply(branch_TBCHW, None, norm, config, keeps_current=False)
    return spikes_TBCHW


def carry_and_fire(
    branch_TBCHW: Tensor, norm: nn.BatchNorm2d, config: NetConfig,
    shortcut_TBCHW: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The normalised branch plus the shortcut, and the spikes of neurons that get this sum.

    Args:
        branch_TBCHW: as for :func:`fire`; without a shortcut it may have 1 tick for all of them.
        norm: as for :func:`fire`.
        config: as for :func:`fire`.
        shortcut_TBCHW: in the precision of the branch, of T ticks or 1.

    Returns:
        The sum [T or 1, B, C, H, W], with the ticks of the branch, and spikes [T, B, C, H, W].
    """
    current_TBCHW, spikes_TBCHW = _apply(
        branch_TBCHW, shortcut_TBCHW, norm, config, keeps_current=True
    )
    return current_TBCHW, spikes_TBCHW


def _apply(
    branch: Tensor, shortcut: Tensor | None, norm: nn.BatchNorm2d, config: NetConfig,
    keeps_current: bool,
) -> Any:
    moments = _batch_moments(branch, norm)
    constants = {
        "EPSILON": norm.eps, "DECAY": config.decay, "THRESHOLD": config.threshold,
        "LEVELS": config.levels if config.activation == "ilif" else 0, "ticks": config.ticks,
    }
    return _NormaliseAndFire.apply(  # type: ignore[no-untyped-call]
        branch, shortcut, norm.weight, norm.bias, *moments, constants, config.surrogate_alpha,
        keeps_current,
    )


@torch.no_grad()
def _batch_moments(branch_TBCHW: Tensor, norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """Mean and variance (biased) of each channel, float32[C]; the running statistics follow."""
    assert norm.num_batches_tracked is not None
    assert norm.momentum is not None
    norm.num_batches_tracked.add_(1)
    branch_TRC = _rows(branch_TBCHW)
    ticks, num_rows, channels = branch_TRC.shape
    partial_P2C = _room_for_sums(branch_TRC)
    _launch(
        kernels.sum_branch, branch_TRC, partial_P2C, ticks=ticks, num_programs=len(partial_P2C)
    )
    mean_C, variance_C = branch_TRC.new_empty(2, channels, dtype=torch.float32)
    with on_device_of(branch_TRC):
        kernels.find_moments[(triton.cdiv(channels, _MOMENT_COLUMNS),)](
            branch_TRC, partial_P2C, mean_C, variance_C, norm.running_mean, norm.running_var,
            num_rows, len(partial_P2C), MOMENTUM=norm.momentum, CHANNELS=channels, TICKS=ticks,
            ROWS=_MOMENT_ROWS, COLUMNS=_MOMENT_COLUMNS,
        )
    return mean_C, variance_C


class _NormaliseAndFire(torch.autograd.Function):
    """It keeps the branch and, with ``keeps_current``, the sum: neurons got it rounded."""

    @staticmethod
    def forward(
        ctx: Any, branch: Tensor, shortcut: Tensor | None, weight: Tensor, bias: Tensor,
        mean: Tensor, variance: Tensor, constants: dict[str, Any], alpha: float,
        keeps_current: bool,
    ) -> tuple[Tensor | None, Tensor]:
        branch_TRC, ticks = _rows(branch), constants["ticks"]
        spikes_TRC = branch_TRC.new_empty(ticks, *branch_TRC.shape[1:])
        # Any tensor will do for one that a kernel does not use.
        current_TRC = torch.empty_like(branch_TRC) if keeps_current else branch_TRC
        shortcut_TRC = branch_TRC if shortcut is None else _rows(shortcut)
        constants = constants | {"MOVES": len(branch_TRC) == ticks, "KEEPS": keeps_current}
        parameters = mean, variance, weight, bias
        _launch(
            kernels.normalise_and_fire, branch_TRC, shortcut_TRC, current_TRC, spikes_TRC,
            *parameters, HAS_SHORTCUT=shortcut is not None,
            SHORTCUT_MOVES=shortcut is not None and len(shortcut) > 1, **constants,
        )
        ctx.save_for_backward(branch_TRC, current_TRC, *parameters)
        ctx.set_materialize_grads(False)
        ctx.shape, ctx.shortcut_ticks = branch.shape, 0 if shortcut is None else len(shortcut)
        ctx.constants = constants | {"HALF_ALPHA": alpha / 2, "STEEPNESS": math.pi / 2 * alpha}
        current = _images(current_TRC, branch.shape) if keeps_current else None
        return current, _images(spikes_TRC, branch.shape)

    @staticmethod
    def backward(
        ctx: Any, grad_current: Tensor | None, grad_spikes: Tensor
    ) -> tuple[Tensor | None, ...]:
        branch_TRC, current_TRC, *parameters = ctx.saved_tensors
        constants, keeps_current = ctx.constants, ctx.constants["KEEPS"]
        grad_spikes_TRC = _rows(grad_spikes)
        grad_current_TRC = branch_TRC if grad_current is None else _rows(grad_current)
        grad_sum_TRC = torch.empty_like(branch_TRC) if keeps_current else branch_TRC
        partial_P2C = _room_for_sums(branch_TRC)
        _launch(
            kernels.sum_gradients, grad_spikes_TRC, grad_current_TRC, branch_TRC, current_TRC,
            grad_sum_TRC, partial_P2C, *parameters, num_programs=len(partial_P2C),
            HAS_GRAD_CURRENT=grad_current is not None, **constants,
        )
        sums_2C = partial_P2C.sum(0)
        result_TRC = torch.empty_like(branch_TRC)
        _launch(
            kernels.differentiate, grad_spikes_TRC, grad_sum_TRC, branch_TRC, result_TRC,
            sums_2C / branch_TRC[:, :, 0].numel(), *parameters, **constants,
        )
        grad_shortcut = None
        if ctx.shortcut_ticks:
            grad_shortcut = _images(grad_sum_TRC, ctx.shape)
            if ctx.shortcut_ticks < len(grad_shortcut):
                grad_shortcut = grad_shortcut.sum(0, keepdim=True)
        grad_bias, grad_weight = sums_2C
        grads = _images(result_TRC, ctx.shape), grad_shortcut, grad_weight, grad_bias
        return *grads, None, None, None, None, None


def _rows(images_TBCHW: Tensor) -> Tensor:
    """The same memory as dense [T, R, C]; a copy unless it is channels-last."""
    ticks, _, channels = images_TBCHW.shape[:3]
    return images_TBCHW.movedim(2, -1).contiguous().view(ticks, -1, channels)


def _images(rows_TRC: Tensor, shape: torch.Size) -> Tensor:
    """The same memory as [T, B, C, H, W], channels-last."""
    ticks, _, channels = rows_TRC.shape
    return rows_TRC.view(ticks, shape[1], *shape[3:], channels).movedim(-1, 2)


def _tile(channels: int) -> tuple[int, int]:
    """Rows and columns of a program: 1024 neurons, eight for each of 128 threads."""
    columns = min(triton.next_power_of_2(channels), _MOST_COLUMNS)
    return 1024 // columns, columns


def _room_for_sums(branch_TRC: Tensor) -> Tensor:
    """float32[P, 2, C], unwritten, for P programs that take the tiles of a column in turns."""
    _, num_rows, channels = branch_TRC.shape
    num_programs = min(triton.cdiv(num_rows, _tile(channels)[0]), _MOST_PROGRAMS)
    return branch_TRC.new_empty(num_programs, 2, channels, dtype=torch.float32)


def _launch(
    kernel: Any, *tensors: Tensor, ticks: int, num_programs: int = 0, **constants: Any
) -> None:
    """Run ``kernel`` for [T, R, C], the shape of its first tensor, with a program for each tile.

    With ``num_programs`` so many take the tiles of a column of tiles in turns.
    """
    _, num_rows, channels = tensors[0].shape
    rows, columns = _tile(channels)
    grid = num_programs or triton.cdiv(num_rows, rows), triton.cdiv(channels, columns)
    with on_device_of(tensors[0]):
        kernel[grid](
            *tensors, num_rows, CHANNELS=channels, TICKS=ticks, ROWS=rows, COLUMNS=columns,
            **constants,
        )
