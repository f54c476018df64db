"""The neurons of an inference network: by their definitions, and as kernels on a CPU.

The choice is made once, when the network is frozen, and recorded in its ``neurons.kind``; there is
no falling back while it runs.

Dimensions: T ticks, B batch, C channels, X anything; with a bias, X begins with C.
"""

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import relu

from chess_snn.nets.cpu import integer_kernels, neuron_kernels
from chess_snn.nets.cpu.neuron_cpu import memory_of
from chess_snn.nets.model.config import NetConfig
from chess_snn.nets.model.integer_neuron import integer_spikes
from chess_snn.nets.model.neuron import check_same_layout, has_triton, lif, like_ticks_of

NeuronKind = Literal["compiled", "fused", "reference"]


class InferenceNeurons:
    """Neurons without gradient; here the definitions, on any device, and the ReLU baseline's.

    Arguments may be overwritten, except static currents. Where a bias [C] is given, it is added to
    every current first.
    """

    kind: NeuronKind = "reference"
    """Name of this implementation."""
    adds_bias_for_nothing = False
    """Whether a bias costs less here than in the convolution before."""

    def __init__(self, config: NetConfig) -> None:
        self._config = config

    def fire_static(self, current_BX: Tensor, ticks: int) -> Tensor:
        """Spikes [T, B, X] of currents that stay the same, and are left alone."""
        return self.fire(current_BX.expand(ticks, *current_BX.shape))

    def fire(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """Spikes [T, B, X]; of the baseline the positive part of its one tick."""
        current_TBX, config = _add_bias(current_TBX, bias_C), self._config
        if config.activation == "relu":
            return relu(current_TBX)
        if config.activation == "ilif":
            return integer_spikes(current_TBX, config.threshold, config.levels)
        return lif(current_TBX, config.decay, config.threshold)

    def add_and_fire(
        self, shortcut_TBX: Tensor, branch_TBX: Tensor, bias_C: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The sum of the two and its spikes, both [T, B, X]; the shortcut may be [1, B, X]."""
        total_TBX = _add_bias(branch_TBX, bias_C).add_(shortcut_TBX)
        return total_TBX, self.fire(total_TBX)

    def mean_rate(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """Mean of the spikes over the ticks, float32[B, X]."""
        fired_TBX = self.fire(current_TBX, bias_C)
        rate_BX = fired_TBX[0].to(torch.float32, copy=True)
        for fired_BX in fired_TBX[1:]:  # five times as fast as torch's sum
            rate_BX += fired_BX
        return rate_BX.div_(len(fired_TBX))


class CompiledNeurons(InferenceNeurons):
    """The kernels of :mod:`chess_snn.nets.cpu.neuron_kernels` on CPU tensors, mostly in place.

    Integer neurons have those of :mod:`chess_snn.nets.cpu.integer_kernels`.
    """

    kind = "compiled"

    def __init__(self, config: NetConfig, integer_spikes: bool = False) -> None:
        """Spikes are of the type of the currents, or uint8."""
        super().__init__(config)
        self._kernels: Any = neuron_kernels
        self._constants: tuple[Any, ...] = np.float32(config.decay), np.float32(config.threshold)
        if config.activation == "ilif":
            self._kernels = integer_kernels
            self._constants = np.float32(config.threshold), config.levels
        self._spike_dtype = torch.uint8 if integer_spikes else None

    def fire_static(self, current_BX: Tensor, ticks: int) -> Tensor:
        """Spikes [T, B, X] of unchanging currents."""
        spikes_TBX = self._spikes_like(current_BX.expand(ticks, *current_BX.shape))
        current = memory_of(current_BX.unsqueeze(0))
        self._kernels.fire(current, memory_of(spikes_TBX), *self._constants)
        return spikes_TBX

    def fire(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """Spikes [T, B, X], in the memory of the currents where they are of one type."""
        current_TBX = _add_bias(current_TBX, bias_C)
        spikes_TBX = current_TBX if self._spike_dtype is None else self._spikes_like(current_TBX)
        self._kernels.fire(memory_of(current_TBX), memory_of(spikes_TBX), *self._constants)
        return spikes_TBX

    def add_and_fire(
        self, shortcut_TBX: Tensor, branch_TBX: Tensor, bias_C: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The sum, in the memory of the branch, and its spikes."""
        check_same_layout(shortcut_TBX, branch_TBX)
        branch_TBX = _add_bias(branch_TBX, bias_C)
        spikes_TBX = self._spikes_like(branch_TBX)
        self._kernels.add_and_fire(
            memory_of(shortcut_TBX), memory_of(branch_TBX), memory_of(spikes_TBX), *self._constants
        )
        return branch_TBX, spikes_TBX

    def _spikes_like(self, current_TBX: Tensor) -> Tensor:
        return like_ticks_of(current_TBX, self._spike_dtype)


def choose_neurons(
    config: NetConfig, device: torch.device, integer_spikes: bool = False
) -> InferenceNeurons:
    """Compiled on the CPU; on a GPU fused, or the reference.

    The reference serves where there is no Triton, and integer neurons and the baseline, of which it
    is one pass. Spikes as integers, uint8, are for the CPU alone.
    """
    if config.is_spiking and device.type == "cpu":
        return CompiledNeurons(config, integer_spikes)
    if config.activation == "lif" and has_triton():
        # Triton comes with torch for CUDA, and with no other torch.
        from chess_snn.nets.gpu.neuron_triton import FusedNeurons  # noqa: PLC0415

        return FusedNeurons(config)
    return InferenceNeurons(config)


def _add_bias(current_TBX: Tensor, bias_C: Tensor | None) -> Tensor:
    """The currents, in their own memory, after one bias a channel was added."""
    if bias_C is None:
        return current_TBX
    return current_TBX.add_(bias_C.view(-1, *[1] * (current_TBX.ndim - 3)))
