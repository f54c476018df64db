"""Interface of the neurons of an inference network, and the implementations.

The choice is made once, when the network is frozen, and recorded in its ``neurons.kind``; there is
no falling back while it runs.

Dimensions: T ticks, B batch, C channels, X anything; with a bias, X begins with C.
"""

from typing import Any, Final, Literal, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import relu

from chess_snn.nets.cpu import integer_kernels, neuron_kernels
from chess_snn.nets.cpu.neuron_cpu import memory_of
from chess_snn.nets.model.config import NetConfig
from chess_snn.nets.model.integer_neuron import integer_spikes
from chess_snn.nets.model.neuron import check_same_layout, has_triton, lif, like_ticks_of

NeuronKind = Literal["compiled", "fused", "reference", "relu"]


class InferenceNeurons(Protocol):
    """Neurons without gradient. Arguments may be overwritten, except static currents.

    Where a bias [C] is given, it is added to every current first.
    """

    @property
    def kind(self) -> NeuronKind:
        """Name of this implementation."""
        ...

    @property
    def adds_bias_for_nothing(self) -> bool:
        """Whether a bias costs less here than in the convolution before."""
        ...

    def fire_static(self, current_BX: Tensor, ticks: int) -> Tensor:
        """Spikes [T, B, X] of currents that stay the same, and are left alone."""
        ...

    def fire(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """Spikes [T, B, X]."""
        ...

    def add_and_fire(
        self, shortcut_TBX: Tensor, branch_TBX: Tensor, bias_C: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The sum of the two and its spikes, both [T, B, X]; the shortcut may be [1, B, X]."""
        ...

    def mean_rate(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """Mean of the spikes over the ticks, float32[B, X]."""
        ...


class ReferenceNeurons:
    """The definitions, :func:`chess_snn.nets.model.neuron.lif` among them, on any device."""

    kind: Final = "reference"
    adds_bias_for_nothing: Final = False

    def __init__(self, config: NetConfig) -> None:
        self._config = config

    def fire_static(self, current_BX: Tensor, ticks: int) -> Tensor:
        """Spikes [T, B, X] of unchanging currents."""
        return self.fire(current_BX.expand(ticks, *current_BX.shape))

    def fire(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """Spikes [T, B, X]."""
        current_TBX, config = _add_bias(current_TBX, bias_C), self._config
        if config.activation == "ilif":
            return integer_spikes(current_TBX, config.threshold, config.levels)
        return lif(current_TBX, config.decay, config.threshold)

    def add_and_fire(
        self, shortcut_TBX: Tensor, branch_TBX: Tensor, bias_C: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The sum and its spikes."""
        total_TBX = _add_bias(branch_TBX, bias_C).add_(shortcut_TBX)
        return total_TBX, self.fire(total_TBX)

    def mean_rate(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """Mean over the ticks, float32[B, X]."""
        counts_BX = self.fire(current_TBX, bias_C).sum(0, dtype=torch.float32)
        return counts_BX.div_(len(current_TBX))


class CompiledNeurons:
    """The kernels of :mod:`chess_snn.nets.cpu.neuron_kernels` on CPU tensors, mostly in place.

    Integer neurons have those of :mod:`chess_snn.nets.cpu.integer_kernels`.
    """

    kind: Final = "compiled"
    adds_bias_for_nothing: Final = False

    def __init__(self, config: NetConfig, integer_spikes: bool = False) -> None:
        """Spikes are of the type of the currents, or uint8."""
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

    def mean_rate(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """Mean over the ticks, float32[B, X]."""
        counts_BX = torch.empty_like(current_TBX[0], dtype=torch.float32)
        self._kernels.count_spikes(
            memory_of(_add_bias(current_TBX, bias_C)), memory_of(counts_BX.unsqueeze(0))[0],
            *self._constants,
        )
        return counts_BX.div_(len(current_TBX))

    def _spikes_like(self, current_TBX: Tensor) -> Tensor:
        return like_ticks_of(current_TBX, self._spike_dtype)


class FusedNeurons:
    """The kernels of :mod:`chess_snn.nets.gpu.neuron_triton` on CUDA tensors, mostly in place."""

    kind: Final = "fused"
    adds_bias_for_nothing: Final = True

    def __init__(self, config: NetConfig) -> None:
        # Triton comes with torch for CUDA, and with no other torch.
        from chess_snn.nets.gpu import neuron_triton  # noqa: PLC0415

        self._kernels = neuron_triton
        self._constants = config.decay, config.threshold

    def fire_static(self, current_BX: Tensor, ticks: int) -> Tensor:
        """Spikes [T, B, X] of unchanging currents."""
        current_TBX = current_BX.expand(ticks, *current_BX.shape)
        spikes_TBX = like_ticks_of(current_TBX)
        self._kernels.fire(current_TBX, spikes_TBX, None, *self._constants)
        return spikes_TBX

    def fire(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """Spikes [T, B, X], in the memory of the currents."""
        self._kernels.fire(current_TBX, current_TBX, bias_C, *self._constants)
        return current_TBX

    def add_and_fire(
        self, shortcut_TBX: Tensor, branch_TBX: Tensor, bias_C: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The sum, in the memory of the branch, and its spikes."""
        spikes_TBX = torch.empty_like(branch_TBX)
        self._kernels.add_and_fire(
            shortcut_TBX, branch_TBX, spikes_TBX, bias_C, *self._constants
        )
        return branch_TBX, spikes_TBX

    def mean_rate(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """Mean over the ticks, float32[B, X]."""
        rate_BX = torch.empty_like(current_TBX[0], dtype=torch.float32)
        self._kernels.mean_rate(current_TBX, rate_BX, bias_C, *self._constants)
        return rate_BX


class ReluUnits:
    """The ReLU baseline: values instead of spikes, one tick."""

    kind: Final = "relu"
    adds_bias_for_nothing: Final = False

    def fire_static(self, current_BX: Tensor, ticks: int) -> Tensor:
        """The positive part, for the one tick there is."""
        return relu(current_BX).unsqueeze(0)

    def fire(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """The positive part, in the memory of the currents."""
        return _add_bias(current_TBX, bias_C).relu_()

    def add_and_fire(
        self, shortcut_TBX: Tensor, branch_TBX: Tensor, bias_C: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The sum and its positive part."""
        total_TBX = _add_bias(branch_TBX, bias_C).add_(shortcut_TBX)
        return total_TBX, relu(total_TBX)

    def mean_rate(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """The one tick's values, float32[B, X]."""
        return relu(_add_bias(current_TBX, bias_C)[0]).float()


def choose_neurons(
    config: NetConfig, device: torch.device, integer_spikes: bool = False
) -> InferenceNeurons:
    """ReLU for the baseline; compiled on the CPU; on a GPU fused, or the reference.

    The reference serves where there is no Triton, and integer neurons, of which it is one pass.
    Spikes as integers, uint8, are for the CPU alone.
    """
    if not config.is_spiking:
        return ReluUnits()
    if device.type == "cpu":
        return CompiledNeurons(config, integer_spikes)
    is_fused = config.activation == "lif" and has_triton()
    return FusedNeurons(config) if is_fused else ReferenceNeurons(config)


def _add_bias(current_TBX: Tensor, bias_C: Tensor | None) -> Tensor:
    """The currents, in their own memory, after one bias a channel was added."""
    if bias_C is None:
        return current_TBX
    return current_TBX.add_(bias_C.view(-1, *[1] * (current_TBX.ndim - 3)))
