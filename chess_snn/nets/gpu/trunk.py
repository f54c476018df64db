"""All residual blocks and the policy head's convolution as one kernel, for int8 on CUDA devices.

Spikes between the layers stay in a multiprocessor's memory, where a kernel for each layer reads and
writes them all, and reads each square for nine taps. The kernel is ``trunk.cu``; this module
chooses its constants, orders the weights and launches it. Its spikes are those of
:class:`chess_snn.nets.gpu.conv_neuron.FusedConv`, exactly.

Dimensions: T ticks, B batch, C channels, H and W board, L layers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Final

import torch
from torch import Tensor, nn

from chess_snn.games.base import GameSpec
from chess_snn.nets.gpu.conv_neuron import FusedConv, shared_memory
from chess_snn.nets.gpu.cuda_kernel import CudaKernel, compile_cuda, has_cuda_bindings
from chess_snn.nets.model.config import NetConfig

SOURCES: Final = ("instructions.cuh", "trunk.cu")
KERNEL: Final = "fire_trunk"
_BOARD: Final = (8, 8)
_TICKS: Final = (1, 2, 4)
_CHANNELS: Final = (32, 64, 96, 128)
_LANES, _TILES = 32, 4
_ALL_WARPS: Final = 8
"""Warps of a multiprocessor: of one block, or of two that share it."""
_MOST_CHANNELS_OF_A_WARP: Final = 64
_WARPS: Final = (4, 8)
_TAPS_OF_STAGE: Final = (3, 1)
_FEWEST_STAGES, _MOST_STAGES = 2, 4
"""Stages of weights in shared memory: one is read while the others come."""
_ZERO_BYTES: Final = 128
_RESERVED_MEMORY: Final = 1024
"""Bytes of each block, for the system."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How the kernel cuts the work of one network; the first that fits is taken."""

    config: NetConfig
    warps: int
    """Number of warps of a block."""
    taps: int
    """Taps of a stage of weights."""
    stages: int = 0

    @property
    def threads(self) -> int:
        """Number of threads of a block."""
        return self.warps * _LANES

    @property
    def boards(self) -> int:
        """Boards of a block at a time."""
        return self.warps // (self.config.ticks * self._shares)

    @property
    def shared_bytes(self) -> int:
        """Memory of a block: spikes of two layers, the shortcut in bfloat16, and weights."""
        channels = self.config.channels
        spikes = self.boards * self.config.ticks * math.prod(_BOARD) * channels
        shortcut = _TILES * channels // self._shares * self.threads
        weights = self.stages * self.taps * channels**2
        return 2 * spikes + shortcut + _ZERO_BYTES + weights

    @property
    def constants(self) -> dict[str, object]:
        """Constants that the kernel is compiled with."""
        config = self.config
        return {
            "TICKS": config.ticks, "CHANNELS": config.channels, "BLOCKS": config.blocks,
            "LEVELS": config.levels if config.activation == "ilif" else 0,
            "DECAY": f"{float(config.decay)}f", "THRESHOLD": f"{float(config.threshold)}f",
            "WARPS": self.warps, "TAPS_OF_STAGE": self.taps, "STAGES": self.stages,
        }

    @property
    def _shares(self) -> int:
        """Between how many warps the channels of a square are divided."""
        return -(-self.config.channels // _MOST_CHANNELS_OF_A_WARP)


def shape_of(config: NetConfig, shared_memory: int) -> Shape | None:
    """How to run a network, or None where the kernel cannot.

    Args:
        config: of the network.
        shared_memory: bytes that one block may have.
    """
    if not config.is_spiking or config.channels not in _CHANNELS or config.ticks not in _TICKS:
        return None
    for warps, taps in product(_WARPS, _TAPS_OF_STAGE):
        shape = Shape(config, warps, taps)
        memory = (shared_memory + _RESERVED_MEMORY) * warps // _ALL_WARPS - _RESERVED_MEMORY
        stages = (memory - shape.shared_bytes) // (taps * config.channels**2)
        if shape.boards and stages >= _FEWEST_STAGES:
            return replace(shape, stages=min(stages, _MOST_STAGES))
    return None


def can_fuse_trunk(spec: GameSpec, config: NetConfig, device: torch.device) -> bool:
    """Whether the kernel can be that of a network whose layers can be fused on ``device``."""
    return (
        spec.board_shape == _BOARD and shape_of(config, shared_memory(device)) is not None
        and has_cuda_bindings()
    )


class FusedTrunk(nn.Module):
    """Computes the last block's spikes and the policy head's rates from the stem's currents."""

    weight: Tensor
    """int8[L, taps, steps of 32 inputs, groups of 16 outputs, lanes, bytes]."""
    scale: Tensor
    """float32[L, C]: of a step of the weights."""
    bias: Tensor
    """float32[L, C]."""

    def __init__(self, layers: Sequence[FusedConv], config: NetConfig) -> None:
        """Take over the weights of ``layers``, of integers.

        Args:
            layers: two of each block, and the policy head's.
            config: of the network.
        """
        super().__init__()
        self._config = config
        self.register_buffer("weight", torch.stack([_fragments(each.weight) for each in layers]))
        self.register_buffer("scale", torch.stack([each.scale for each in layers]))
        self.register_buffer("bias", torch.stack([each.bias for each in layers]))

    def forward(self, current_BCHW: Tensor) -> tuple[Tensor, Tensor]:
        """Spikes uint8[T, B, C, H, W], and rates float32[B, C, H, W]; memory is channels-last.

        Args:
            current_BCHW: bfloat16, channels-last, B >= 1: of the stem, the same in all ticks.

        Raises:
            RuntimeError: the driver refuses the kernel.
        """
        batch, channels, height, width = current_BCHW.shape
        size = batch, height, width, channels
        fired_TBHWC = current_BCHW.new_empty((self._config.ticks, *size), dtype=torch.uint8)
        rate_BHWC = current_BCHW.new_empty(size, dtype=torch.float32)
        device = current_BCHW.device
        with torch.cuda.device(device):
            shape, kernel = _load(self._config, device)
            kernel.launch(
                min(-(-batch // shape.boards), _ALL_WARPS // shape.warps * _processors(device)),
                shape.threads, current_BCHW.contiguous(memory_format=torch.channels_last),
                self.weight, self.scale, self.bias, fired_TBHWC, rate_BHWC, batch,
            )
        return fired_TBHWC.permute(0, 1, 4, 2, 3), rate_BHWC.permute(0, 3, 1, 2)


def _fragments(weight: Tensor) -> Tensor:
    """int8 [outputs, taps, inputs] as the lanes of a warp multiply them.

    Of 16 outputs and 32 inputs a lane has 16 bytes: for both groups of 8 outputs the inputs
    4 t to 4 t + 3 and those 16 later, of output g, where 4 g + t is the lane.
    """
    outputs, taps, inputs = weight.shape
    parts = weight.view(outputs // 16, 2, 8, taps, inputs // 32, 2, 4, 4)
    # [taps, steps, groups of 16, g, t, group of 8, later, byte]
    return parts.permute(3, 4, 0, 2, 6, 1, 5, 7).reshape(
        taps, inputs // 32, outputs // 16, _LANES, 16
    )


@cache
def _load(config: NetConfig, device: torch.device) -> tuple[Shape, CudaKernel]:
    """Compiled once for a shape, within seconds."""
    shape = shape_of(config, shared_memory(device))
    assert shape is not None
    major, minor = torch.cuda.get_device_capability(device)
    code, _ = compile_cuda(SOURCES, shape.constants, 10 * major + minor)
    return shape, CudaKernel(code, KERNEL, shape.shared_bytes)


def _processors(device: torch.device) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
