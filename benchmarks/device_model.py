"""How long a GPU should take: the model behind every figure that is called modelled.

Device time of a position is the sum of three terms: 3x3 convolutions at a rate, the passes of
neurons at a share of the bandwidth, and the rest. The constants are fitted to kernels that were
traced on one H200 in batches of 4,096 (docs/gpu.md); other GPUs are scaled by two figures of
theirs. Batches of less than 1,024 take up to twice as long as modelled.

With G groups of games, a host that takes h an evaluation on one of C cores, and a device that takes
d, a group has one evaluation in h + d at best; the device and the cores are bounds of their own::

    evaluations/s = min(1 / d, G / (h + d), C / h)
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from chess_snn.games import get_game
from chess_snn.nets import NetConfig
from chess_snn.nets.analysis.operations import count_operations
from chess_snn.nets.gpu.static_batch import ROW_SIZES, row_bucket
from chess_snn.nets.model.layers import MOST_NORM_TICKS

CONV_FLOPS: Final = {32: 165e12, 64: 470e12, 128: 760e12, 256: 755e12}
"""Operations/s of a 3x3 convolution in bf16, by channels; between them it is interpolated."""
FUSED_OVER_UNFUSED: Final = {"fused": 1.42, "trunk": 1.74}
"""How many times as fast `small` is in int8 with one kernel a layer, or one for all blocks."""
CALLER_S: Final = 0.24e-6
"""Of the host, a position: filling a batch, starting it and reading the answer."""

PASS_SHARE: Final = 0.94
"""Of the bandwidth of a copy: a pass of neurons."""
_TRAINING_PASS_SHARE: Final = 0.79
_TRAINING_CONV_SHARE: Final = 0.93
"""Of the rate in inference: the three convolutions of a training step."""
_FUSED_PASSES, _TRAINING_PASSES = 16.5, 24
"""Times a training step moves one layer's spikes, as counted in
:mod:`chess_snn.nets.gpu.norm_neuron_triton`; the first where normalisation and neurons are one
pass."""
_REST_S, _REST_S_A_CHANNEL = 0.06e-6, 0.06e-6 / 64
"""Expanding planes, the stem's padding, the readouts and the value head, a position."""
_TRAINING_REST_S: Final = 0.5e-6
"""The readouts and losses, and what optimiser and norms take for a sample of 2,048."""
_KERNEL_S: Final = 2.5e-6
"""A kernel in a graph takes at least this long."""
_KERNELS, _KERNELS_A_BLOCK = 30, 4
"""Nodes of a graph."""
_BYTES: Final = 2
"""Of a number in bf16."""
_LARGE_BATCH: Final = 4096
_SPEC: Final = get_game("chess").spec


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """A GPU, by two figures that any program can measure on it."""

    name: str
    copy_bytes_per_s: float
    """Of a copy within the device, reads and writes counted."""
    matrix_flops_per_s: float
    """Of a large product of matrices in bf16."""


H200: Final = DeviceModel("H200", copy_bytes_per_s=4.3e12, matrix_flops_per_s=785e12)
H100: Final = DeviceModel("H100", copy_bytes_per_s=3.0e12, matrix_flops_per_s=798e12)


def model_of(device_name: str) -> DeviceModel:
    """The model of the device that torch calls ``device_name``; an unknown one is taken as H200."""
    return H100 if "H100" in device_name else H200


@dataclass(frozen=True, slots=True)
class PositionTime:
    """Device seconds of one position in a large batch."""

    convolutions: float
    neurons: float
    rest: float

    @property
    def total(self) -> float:
        """All three."""
        return self.convolutions + self.neurons + self.rest


def position_time(device: DeviceModel, config: NetConfig) -> PositionTime:
    """Device time of one position in bf16, spiking or baseline."""
    operations = count_operations(_SPEC, config)
    neuron_bytes = operations.bytes_moved(_BYTES, _LARGE_BATCH, neurons_only=True)
    return PositionTime(
        convolutions=_conv_flops(config) / conv_flops_per_s(config.channels),
        neurons=neuron_bytes / (PASS_SHARE * device.copy_bytes_per_s),
        rest=_REST_S + _REST_S_A_CHANNEL * config.channels,
    )


def conv_flops_per_s(channels: int) -> float:
    """Operations/s of a 3x3 convolution with this many channels."""
    return float(np.interp(channels, [*CONV_FLOPS], [*CONV_FLOPS.values()]))


def batch_s(device: DeviceModel, config: NetConfig, num_rows: int) -> float:
    """Device seconds of one call with ``num_rows`` positions, padded and cut as on a GPU."""
    position_s = position_time(device, config).total
    least_s = _KERNEL_S * (_KERNELS + _KERNELS_A_BLOCK * config.blocks)
    full, last = divmod(num_rows, ROW_SIZES[-1])
    sizes = [ROW_SIZES[-1]] * full + ([row_bucket(last)] if last else [])
    return sum(max(least_s, size * position_s) for size in sizes)


def training_s(device: DeviceModel, config: NetConfig) -> float:
    """Device seconds of one sample of a training step in bf16."""
    layer_bytes = 64 * config.channels * config.ticks * _BYTES
    is_fused = config.is_spiking and config.ticks <= MOST_NORM_TICKS
    passes = _FUSED_PASSES if is_fused else _TRAINING_PASSES
    moved = passes * layer_bytes * (2 * config.blocks + 1)
    return (
        3 * _conv_flops(config) / (_TRAINING_CONV_SHARE * conv_flops_per_s(config.channels))
        + moved / (_TRAINING_PASS_SHARE * device.copy_bytes_per_s)
        + _TRAINING_REST_S
    )


def evaluations_per_s(
    host_s: float, device_s: float, groups: int, cores: float = float("inf")
) -> float:
    """Evaluations/s of ``groups`` groups of games, given the seconds of one on host and device."""
    core_bound = cores / host_s if host_s else float("inf")
    return min(1 / device_s, groups / (host_s + device_s), core_bound)


def _conv_flops(config: NetConfig) -> int:
    """Operations of the 3x3 convolutions of one position; the stem's are few."""
    operations = count_operations(_SPEC, config)
    names = ["policy.conv", *(
        f"blocks.{block}.conv{number}" for block in range(config.blocks) for number in (1, 2)
    )]
    return 2 * sum(operations.macs_of(name) for name in names)
