"""A convolution and its neurons as one layer: two kernels, or one in int8 on a GPU.

Where a convolution and a pass over its currents are two kernels, the currents cross memory twice.
In one they stay in registers, and weights are read once for all ticks. The kernel is in
:mod:`chess_snn.nets.gpu.conv_neuron_triton_kernels`; this module cuts the work into tiles. Its
spikes are those of :class:`chess_snn.nets.folded_convs.BinaryConv`, exactly: sums are of integers.

With ``TRITON_INTERPRET=1`` set before it is first used, the kernel runs on CPU tensors.

Dimensions: T ticks, B batch, C channels, H and W board.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn

from chess_snn.nets.folded_convs import BinaryConv, FloatConv, round_weights
from chess_snn.nets.inference_neurons import InferenceNeurons
from chess_snn.nets.model.config import NetConfig
from chess_snn.nets.model.layers import each_tick
from chess_snn.nets.model.neuron import has_triton

MOST_FUSED_TICKS: Final = 8
"""A thread has registers for the sums of so many."""
_NUMBERS_OF_A_THREAD: Final = {1: 64, 2: 32, 3: 32, 4: 32, 5: 16, 6: 16, 7: 16, 8: 16}
"""Numbers of a tile, by ticks. Each is in a register for every tick, and twice more at the end."""
_THREADS_OF_A_WARP: Final = 32
_LEAST_ROWS: Final = 64
"""Rows of a product of the tensor cores of Hopper."""
_LEAST_COLUMNS: Final = 16
_MOST_ROWS, _MOST_COLUMNS = 256, 128
_LEAST_DEPTH, _MOST_DEPTH = 32, 128
"""Channels of one product."""
NUM_WARPS: Final = 4
"""Number of warps of a block; two blocks share a multiprocessor."""
_BLOCKS_OF_A_MULTIPROCESSOR: Final = 2
_LEAST_STAGES, _MOST_STAGES = 2, 4
"""One is loaded while another is multiplied."""
_RESERVED_MEMORY: Final = 2048
"""Bytes of a block, for the system and for barriers."""
_AMPERE: Final = (8, 0)
"""The first GPUs that have every instruction of the kernels."""
HOPPER_SHARED_MEMORY: Final = 227 * 1024
"""Bytes that one block may have on an H100 or H200."""
LayerKind = Literal["separate", "compiled", "fused", "trunk"]
"""A convolution and its neurons are two kernels, or one ("fused"); or one kernel ("trunk") has all
blocks and the policy head's convolution, and the other layers are fused. On a CPU "compiled" is one
kernel for all convolutions."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """How one launch cuts its work."""

    rows: int
    columns: int
    depth: int
    """Channels of one product."""
    stages: int
    """Tiles of input in shared memory at a time."""


def choose_tiling(
    ticks: int, channels: int, outputs: int, shared_memory: int = HOPPER_SHARED_MEMORY
) -> Tiling:
    """The largest tile that a block's registers hold, and as many stages as its memory holds.

    Args:
        ticks: of the input, from 1 to ``MOST_FUSED_TICKS``.
        channels: of the input.
        outputs: channels of the output.
        shared_memory: bytes that a block may have.
    """
    size = _NUMBERS_OF_A_THREAD[ticks] * _THREADS_OF_A_WARP * NUM_WARPS
    columns = max(_LEAST_COLUMNS, min(_power_of_two(outputs), _MOST_COLUMNS, size // _LEAST_ROWS))
    rows = min(size // columns, _MOST_ROWS)
    depth = max(_LEAST_DEPTH, min(_power_of_two(channels), _MOST_DEPTH))
    stage = (ticks * rows + columns) * depth
    available = shared_memory // _BLOCKS_OF_A_MULTIPROCESSOR - _RESERVED_MEMORY
    while stage * _LEAST_STAGES > available and depth > _LEAST_DEPTH:
        depth, stage = depth // 2, stage // 2
    stages = max(1, min(_MOST_STAGES, available // stage))
    return Tiling(rows, columns, depth, stages)


def can_fuse(config: NetConfig, device: torch.device) -> bool:
    """Whether the kernel can be that of a network's layers on ``device``."""
    return (
        device.type == "cuda" and config.is_spiking and config.ticks <= MOST_FUSED_TICKS
        and torch.cuda.get_device_capability(device) >= _AMPERE and has_triton()
    )


class SeparateLayer(nn.Module):
    """A convolution, and the neurons behind it in a pass of their own."""

    def __init__(self, conv: FloatConv | BinaryConv, neurons: InferenceNeurons) -> None:
        super().__init__()
        self.conv, self._neurons = conv, neurons

    def forward(self, x_XCHW: Tensor) -> Tensor:
        """Currents [X, C, H, W], but for a bias that the neurons add."""
        currents_XCHW: Tensor = self.conv(x_XCHW)
        return currents_XCHW

    def fire_static(self, x_BCHW: Tensor, ticks: int) -> tuple[Tensor, Tensor]:
        """Currents [1, B, C, H, W] of input that stays the same, and their spikes of all ticks."""
        current_BCHW = self(x_BCHW)
        return current_BCHW.unsqueeze(0), self._neurons.fire_static(current_BCHW, ticks)

    def fire(self, x_TBCHW: Tensor) -> Tensor:
        """Spikes [T, B, C, H, W]."""
        return self._neurons.fire(each_tick(self, x_TBCHW), self.conv.late_bias)

    def add_and_fire(self, shortcut_TBCHW: Tensor, x_TBCHW: Tensor) -> tuple[Tensor, Tensor]:
        """The currents plus the shortcut, and the spikes of the sum."""
        current_TBCHW = each_tick(self, x_TBCHW)
        return self._neurons.add_and_fire(shortcut_TBCHW, current_TBCHW, self.conv.late_bias)

    def mean_rate(self, x_TBCHW: Tensor) -> Tensor:
        """Mean of the spikes over the ticks, float32[B, C, H, W]."""
        return self._neurons.mean_rate(each_tick(self, x_TBCHW), self.conv.late_bias)


class FusedConv(nn.Module):
    """A convolution with the neurons of ``config`` behind it, as one kernel.

    Input is uint8: spikes, or planes in {0, 1}, in channels-last memory.
    """

    weight: Tensor
    scale: Tensor
    bias: Tensor

    def __init__(self, conv: nn.Conv2d, config: NetConfig) -> None:
        """Take over the weights of ``conv``, float32 with a bias, rounded."""
        super().__init__()
        # Triton comes with torch for CUDA, and with no other torch.
        from chess_snn.nets.gpu import conv_neuron_triton_kernels, neuron_triton  # noqa: PLC0415

        self._kernel: Any = conv_neuron_triton_kernels.convolve_and_fire
        self._on_device_of = neuron_triton.on_device_of
        self._config, self._side = config, conv.kernel_size[0]
        assert conv.bias is not None
        weight, scale = round_weights(conv.weight.detach())
        # [outputs, taps, channels]: a product takes channels that are neighbours in memory.
        self.register_buffer("weight", weight.flatten(2).transpose(1, 2).contiguous())
        self.register_buffer("scale", scale)
        self.register_buffer("bias", conv.bias.detach().clone())

    def fire_static(self, x_BCHW: Tensor, ticks: int) -> tuple[Tensor, Tensor]:
        """Currents [1, B, C, H, W] of input that stays the same, and their spikes of all ticks."""
        current_TBCHW = self._empty(x_BCHW.unsqueeze(0), 1, torch.bfloat16)
        fired_TBCHW = self._empty(x_BCHW.unsqueeze(0), ticks)
        self._run(x_BCHW.unsqueeze(0), fired_TBCHW, ticks, total=current_TBCHW)
        return current_TBCHW, fired_TBCHW

    def fire(self, x_TBCHW: Tensor) -> Tensor:
        """Spikes [T, B, C, H, W]."""
        fired_TBCHW = self._empty(x_TBCHW, len(x_TBCHW))
        self._run(x_TBCHW, fired_TBCHW, len(x_TBCHW))
        return fired_TBCHW

    def add_and_fire(self, shortcut_TBCHW: Tensor, x_TBCHW: Tensor) -> tuple[Tensor, Tensor]:
        """The currents plus the shortcut, and the spikes of the sum.

        The sum is in the memory of the shortcut, unless that is [1, B, C, H, W] for T > 1 ticks.
        """
        ticks = len(x_TBCHW)
        fired_TBCHW, total_TBCHW = self._empty(x_TBCHW, ticks), shortcut_TBCHW
        if len(shortcut_TBCHW) != ticks:
            total_TBCHW = self._empty(x_TBCHW, ticks, torch.bfloat16)
        self._run(x_TBCHW, fired_TBCHW, ticks, shortcut_TBCHW, total_TBCHW)
        return total_TBCHW, fired_TBCHW

    def mean_rate(self, x_TBCHW: Tensor) -> Tensor:
        """Mean of the spikes over the ticks, float32[B, C, H, W]."""
        rate_TBCHW = self._empty(x_TBCHW, 1, torch.float32)
        self._run(x_TBCHW, rate_TBCHW, len(x_TBCHW))
        return rate_TBCHW[0]

    def _empty(self, x_TBCHW: Tensor, ticks: int, dtype: torch.dtype | None = None) -> Tensor:
        _, batch, _, height, width = x_TBCHW.shape
        shape = (ticks, batch, height, width, len(self.bias))
        return x_TBCHW.new_empty(shape, dtype=dtype).permute(0, 1, 4, 2, 3)

    def _run(
        self, x_TBCHW: Tensor, fired_TBCHW: Tensor, ticks: int,
        shortcut: Tensor | None = None, total: Tensor | None = None,
    ) -> None:
        """Fill ``fired_TBCHW``, and ``total`` if there is one.

        Args:
            x_TBCHW: uint8, all ticks or one for all; as every tensor of five dimensions, dense in
                channels-last memory.
            fired_TBCHW: uint8, the spikes; or float32, one tick, for their mean.
            ticks: of the neurons.
            shortcut: bfloat16, added to the currents: all ticks, or one for all.
            total: bfloat16, for the currents with the shortcut.

        Raises:
            ValueError: a tensor is in other memory.
        """
        for tensor in (x_TBCHW, shortcut, total, fired_TBCHW):
            if tensor is not None and not tensor.movedim(2, -1).is_contiguous():
                raise ValueError(
                    f"a fused convolution needs dense channels-last memory, got shape "
                    f"{tuple(tensor.shape)} with strides {tensor.stride()}"
                )
        config, bias_C = self._config, self.bias
        _, batch, channels, height, width = x_TBCHW.shape
        num_rows, outputs = batch * height * width, len(bias_C)
        tiling = choose_tiling(len(x_TBCHW), channels, outputs, shared_memory(x_TBCHW.device))
        tiles = -(-num_rows // tiling.rows) * -(-outputs // tiling.columns)
        with self._on_device_of(x_TBCHW):
            self._kernel[(tiles,)](
                _signed(x_TBCHW), self.weight, self.scale, bias_C,
                # A missing tensor has a stand-in that is not read.
                bias_C if shortcut is None else shortcut,
                bias_C if total is None else total,
                _signed(fired_TBCHW), num_rows,
                CHANNELS=channels, OUTPUTS=outputs, SIDE=self._side, HEIGHT=height, WIDTH=width,
                INPUT_MOVES=len(x_TBCHW) > 1 or ticks == 1,
                HAS_SHORTCUT=shortcut is not None,
                SHORTCUT_MOVES=shortcut is not None and len(shortcut) > 1,
                KEEPS_TOTAL=total is not None, IS_RATE=fired_TBCHW.dtype == torch.float32,
                DECAY=config.decay, THRESHOLD=config.threshold,
                LEVELS=config.levels if config.activation == "ilif" else 0, TICKS=ticks,
                ROWS=tiling.rows, COLUMNS=tiling.columns, DEPTH=tiling.depth, STAGES=tiling.stages,
                num_warps=NUM_WARPS, num_stages=tiling.stages,
                # The reference rounds a product before it adds.
                enable_fp_fusion=False,
            )


def shared_memory(device: torch.device) -> int:
    """Bytes that one block may have."""
    if device.type == "cpu":  # where the kernel is interpreted
        return HOPPER_SHARED_MEMORY
    properties: Any = torch.cuda.get_device_properties(device)
    return int(properties.shared_memory_per_block_optin)


def _signed(spikes: Tensor) -> Tensor:
    """Spikes as the tensor cores take them: none is above 127."""
    return spikes.view(torch.int8) if spikes.dtype == torch.uint8 else spikes


def _power_of_two(least: int) -> int:
    """The smallest power of two that is not below ``least``."""
    return 1 << (least - 1).bit_length()
