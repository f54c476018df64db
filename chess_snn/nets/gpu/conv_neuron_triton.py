"""The launch of :mod:`chess_snn.nets.gpu.conv_neuron_triton_kernels`, for CUDA devices.

With ``TRITON_INTERPRET=1`` set before this module is imported, the kernel runs on CPU tensors.

Dimensions: T ticks, B batch, C channels, H and W board.
"""

import torch
import triton
from torch import Tensor

from chess_snn.nets.gpu import conv_neuron_triton_kernels as kernels
from chess_snn.nets.gpu.conv_neuron import NUM_WARPS, Tiling
from chess_snn.nets.gpu.neuron_triton import on_device_of
from chess_snn.nets.model.config import NetConfig


def convolve_and_fire(
    x_TBCHW: Tensor, weight: Tensor, scale_C: Tensor, bias_C: Tensor,
    shortcut_TBCHW: Tensor | None, total_TBCHW: Tensor | None, fired_TBCHW: Tensor,
    *, ticks: int, side: int, config: NetConfig, tiling: Tiling,
) -> None:
    """Fill ``fired_TBCHW``, and ``total_TBCHW`` if there is one.

    Args:
        x_TBCHW: uint8, all ticks or one for all; as every tensor of five dimensions, dense in
            channels-last memory.
        weight: int8[outputs, side * side, channels].
        scale_C: float32, of a step of the weights.
        bias_C: float32.
        shortcut_TBCHW: bfloat16, added to the currents: all ticks, or one for all.
        total_TBCHW: bfloat16, for the currents with the shortcut.
        fired_TBCHW: uint8, the spikes; or float32, one tick, for their mean.
        ticks: of the neurons.
        side: of the window, 1 or 3.
        config: whose neurons they are.
        tiling: of the launch.

    Raises:
        ValueError: a tensor is in other memory.
    """
    for tensor in (x_TBCHW, shortcut_TBCHW, total_TBCHW, fired_TBCHW):
        if tensor is not None and not tensor.movedim(2, -1).is_contiguous():
            raise ValueError(
                f"a fused convolution needs dense channels-last memory, got shape "
                f"{tuple(tensor.shape)} with strides {tensor.stride()}"
            )
    _, batch, channels, height, width = x_TBCHW.shape
    num_rows, outputs = batch * height * width, len(bias_C)
    tiles = triton.cdiv(num_rows, tiling.rows) * triton.cdiv(outputs, tiling.columns)
    with on_device_of(x_TBCHW):
        kernels.convolve_and_fire[(tiles,)](
            _signed(x_TBCHW), weight, scale_C, bias_C,
            # A missing tensor has a stand-in that is not read.
            bias_C if shortcut_TBCHW is None else shortcut_TBCHW,
            bias_C if total_TBCHW is None else total_TBCHW,
            _signed(fired_TBCHW), num_rows,
            CHANNELS=channels, OUTPUTS=outputs, SIDE=side, HEIGHT=height, WIDTH=width,
            INPUT_MOVES=len(x_TBCHW) > 1 or ticks == 1,
            HAS_SHORTCUT=shortcut_TBCHW is not None,
            SHORTCUT_MOVES=shortcut_TBCHW is not None and len(shortcut_TBCHW) > 1,
            KEEPS_TOTAL=total_TBCHW is not None, IS_RATE=fired_TBCHW.dtype == torch.float32,
            DECAY=config.decay, THRESHOLD=config.threshold,
            LEVELS=config.levels if config.activation == "ilif" else 0, TICKS=ticks,
            ROWS=tiling.rows, COLUMNS=tiling.columns, DEPTH=tiling.depth, STAGES=tiling.stages,
            num_warps=NUM_WARPS, num_stages=tiling.stages,
            # The reference rounds a product before it adds.
            enable_fp_fusion=False,
        )


def _signed(spikes: Tensor) -> Tensor:
    """Spikes as the tensor cores take them: none is above 127."""
    return spikes.view(torch.int8) if spikes.dtype == torch.uint8 else spikes
