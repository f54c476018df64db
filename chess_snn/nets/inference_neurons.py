"""What an inference network asks of its neurons, and the three that can answer.

The choice is made once, when the network is frozen, and recorded in its ``neurons.kind``; there is
no falling back while it runs.

Dimensions: T ticks, B batch, X anything.
"""

from typing import Final, Literal, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import relu

from chess_snn.nets import neuron_kernels
from chess_snn.nets.config import NetConfig
from chess_snn.nets.neuron import lif, like_ticks_of
from chess_snn.nets.neuron_cpu import memory_of

NeuronKind = Literal["compiled", "reference", "relu"]


class InferenceNeurons(Protocol):
    """Neurons without gradient. Arguments may be overwritten, except static currents."""

    @property
    def kind(self) -> NeuronKind:
        """Which implementation this is."""
        ...

    def fire_static(self, current_BX: Tensor, ticks: int) -> Tensor:
        """Spikes [T, B, X] of currents that stay the same, and are left alone."""
        ...

    def fire(self, current_TBX: Tensor) -> Tensor:
        """Spikes [T, B, X]."""
        ...

    def add_and_fire(self, shortcut_TBX: Tensor, branch_TBX: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of the two and its spikes, both [T, B, X]; the shortcut may be [1, B, X]."""
        ...

    def mean_rate(self, current_TBX: Tensor) -> Tensor:
        """Mean of the spikes over the ticks, float32[B, X]."""
        ...


class ReferenceNeurons:
    """:func:`chess_snn.nets.neuron.lif` on any device."""

    kind: Final = "reference"

    def __init__(self, config: NetConfig) -> None:
        self._constants = config.decay, config.threshold

    def fire_static(self, current_BX: Tensor, ticks: int) -> Tensor:
        """Spikes [T, B, X] of unchanging currents."""
        return self.fire(current_BX.expand(ticks, *current_BX.shape))

    def fire(self, current_TBX: Tensor) -> Tensor:
        """Spikes [T, B, X]."""
        return lif(current_TBX, *self._constants)

    def add_and_fire(self, shortcut_TBX: Tensor, branch_TBX: Tensor) -> tuple[Tensor, Tensor]:
        """The sum and its spikes."""
        total_TBX = branch_TBX.add_(shortcut_TBX)
        return total_TBX, self.fire(total_TBX)

    def mean_rate(self, current_TBX: Tensor) -> Tensor:
        """Mean over the ticks, float32[B, X]."""
        counts_BX = self.fire(current_TBX).sum(0, dtype=torch.float32)
        return counts_BX.div_(len(current_TBX))


class CompiledNeurons:
    """The kernels of :mod:`chess_snn.nets.neuron_kernels` on CPU tensors, mostly in place."""

    kind: Final = "compiled"

    def __init__(self, config: NetConfig) -> None:
        self._constants = np.float32(config.decay), np.float32(config.threshold)

    def fire_static(self, current_BX: Tensor, ticks: int) -> Tensor:
        """Spikes [T, B, X] of unchanging currents."""
        spikes_TBX = like_ticks_of(current_BX.expand(ticks, *current_BX.shape))
        current = memory_of(current_BX.unsqueeze(0))
        neuron_kernels.fire(current, memory_of(spikes_TBX), *self._constants)
        return spikes_TBX

    def fire(self, current_TBX: Tensor) -> Tensor:
        """Spikes [T, B, X], in the memory of the currents."""
        memory = memory_of(current_TBX)
        neuron_kernels.fire(memory, memory, *self._constants)
        return current_TBX

    def add_and_fire(self, shortcut_TBX: Tensor, branch_TBX: Tensor) -> tuple[Tensor, Tensor]:
        """The sum, in the memory of the branch, and its spikes."""
        if shortcut_TBX[0].stride() != branch_TBX[0].stride():
            raise ValueError(
                f"a shortcut and a branch must share their layout, got strides "
                f"{shortcut_TBX.stride()} and {branch_TBX.stride()}"
            )
        spikes_TBX = torch.empty_like(branch_TBX)
        neuron_kernels.add_and_fire(
            memory_of(shortcut_TBX), memory_of(branch_TBX), memory_of(spikes_TBX), *self._constants
        )
        return branch_TBX, spikes_TBX

    def mean_rate(self, current_TBX: Tensor) -> Tensor:
        """Mean over the ticks, float32[B, X]."""
        counts_BX = torch.empty_like(current_TBX[0], dtype=torch.float32)
        neuron_kernels.count_spikes(
            memory_of(current_TBX), memory_of(counts_BX.unsqueeze(0))[0], *self._constants
        )
        return counts_BX.div_(len(current_TBX))


class ReluUnits:
    """The ordinary twin: values instead of spikes, one tick."""

    kind: Final = "relu"

    def fire_static(self, current_BX: Tensor, ticks: int) -> Tensor:
        """The positive part, for the one tick there is."""
        return relu(current_BX).unsqueeze(0)

    def fire(self, current_TBX: Tensor) -> Tensor:
        """The positive part, in the memory of the currents."""
        return current_TBX.relu_()

    def add_and_fire(self, shortcut_TBX: Tensor, branch_TBX: Tensor) -> tuple[Tensor, Tensor]:
        """The sum and its positive part."""
        total_TBX = branch_TBX.add_(shortcut_TBX)
        return total_TBX, relu(total_TBX)

    def mean_rate(self, current_TBX: Tensor) -> Tensor:
        """The one tick's values, float32[B, X]."""
        return relu(current_TBX[0]).float()


def choose_neurons(config: NetConfig, device: torch.device) -> InferenceNeurons:
    """ReLU for the twin, compiled on the CPU, the reference on every other device."""
    if not config.is_spiking:
        return ReluUnits()
    return CompiledNeurons(config) if device.type == "cpu" else ReferenceNeurons(config)
