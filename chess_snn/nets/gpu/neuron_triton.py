"""The neuron as Triton kernels, for CUDA devices: all ticks in one pass over memory.

A layer costs one read of its currents and one write of its spikes.

The operations around a neuron in a network that plays are done in the same pass: the bias that
folding left to each channel, and the sum with the shortcut.

With ``TRITON_INTERPRET=1`` set before this module is imported, the kernels run on CPU tensors, in
numpy: slowly, by the same program text, and cutting what does not fit in bfloat16 instead of
rounding it.

Dimensions: T ticks, B batch, X anything, C channels. Ticks must be dense in memory; their layout is
kept.
"""

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import triton
from torch import Tensor

from chess_snn.nets.gpu import neuron_triton_kernels as kernels
from chess_snn.nets.inference_neurons import InferenceNeurons
from chess_snn.nets.model.config import NetConfig
from chess_snn.nets.model.neuron import check_same_layout, like_ticks_of, tick_memory

_BLOCK = 1024
"""Neurons of a program: eight for each of the 128 threads, which are 16 bytes of bfloat16."""
_CHANNEL_DIMENSION = 2
"""Dimension of channels in currents [T, B, C, H, W], or [T, B, F]."""


def lif_triton(current_TX: Tensor, decay: float, threshold: float, alpha: float = 2.0) -> Tensor:
    """Differentiable: as :func:`chess_snn.nets.model.neuron.lif`, for CUDA tensors."""
    spikes_TX: Tensor = _FusedLif.apply(current_TX, decay, threshold, alpha)  # type: ignore[no-untyped-call]
    return spikes_TX


class FusedNeurons(InferenceNeurons):
    """The kernels on CUDA tensors, mostly in place."""

    kind = "fused"
    adds_bias_for_nothing = True

    def __init__(self, config: NetConfig) -> None:
        super().__init__(config)
        self._constants = {"DECAY": config.decay, "THRESHOLD": config.threshold}

    def fire_static(self, current_BX: Tensor, ticks: int) -> Tensor:
        """Spikes [T, B, X] of unchanging currents."""
        current_TBX = current_BX.expand(ticks, *current_BX.shape)
        spikes_TBX = like_ticks_of(current_TBX)
        _fire(current_TBX, spikes_TBX, None, **self._constants)
        return spikes_TBX

    def fire(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """Spikes [T, B, X], in the memory of the currents."""
        _fire(current_TBX, current_TBX, bias_C, **self._constants)
        return current_TBX

    def add_and_fire(
        self, shortcut_TBX: Tensor, branch_TBX: Tensor, bias_C: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The sum, in the memory of the branch, and its spikes; both must share their layout."""
        check_same_layout(shortcut_TBX, branch_TBX)
        spikes_TBX = torch.empty_like(branch_TBX)
        memory, shortcut = tick_memory(branch_TBX), tick_memory(shortcut_TBX)
        _launch(
            kernels.add_and_fire, memory.num_neurons, shortcut_TBX, branch_TBX, spikes_TBX,
            *_bias_arguments(branch_TBX, bias_C), memory.num_neurons,
            SHORTCUT_MOVES=len(shortcut_TBX) > 1 and shortcut.tick_stride != 0,
            **self._constants, TICKS=len(branch_TBX),
        )
        return branch_TBX, spikes_TBX

    def mean_rate(self, current_TBX: Tensor, bias_C: Tensor | None = None) -> Tensor:
        """Mean over the ticks, float32[B, X]."""
        rate_BX = torch.empty_like(current_TBX[0], dtype=torch.float32)
        memory = tick_memory(current_TBX)
        _launch(
            kernels.mean_rate, memory.num_neurons, current_TBX, rate_BX,
            *_bias_arguments(current_TBX, bias_C), memory.num_neurons,
            **self._constants, TICKS=len(current_TBX),
        )
        return rate_BX


class _FusedLif(torch.autograd.Function):
    """Keeps what the reference keeps, and takes the same gradient."""

    @staticmethod
    def forward(
        ctx: Any, current_TX: Tensor, decay: float, threshold: float, alpha: float
    ) -> Tensor:
        spikes_TX = like_ticks_of(current_TX)
        if not ctx.needs_input_grad[0]:
            _fire(current_TX, spikes_TX, None, DECAY=decay, THRESHOLD=threshold)
            return spikes_TX
        charges_TX = like_ticks_of(current_TX)
        memory = tick_memory(current_TX)
        _launch(
            kernels.fire_and_keep_charge, memory.num_neurons, current_TX, spikes_TX, charges_TX,
            memory.num_neurons, CURRENT_MOVES=memory.tick_stride != 0,
            DECAY=decay, THRESHOLD=threshold, TICKS=len(current_TX),
        )
        ctx.save_for_backward(charges_TX, spikes_TX)
        ctx.constants = decay, threshold, alpha
        return spikes_TX

    @staticmethod
    def backward(ctx: Any, grad_TX: Tensor) -> tuple[Tensor, None, None, None]:
        charges_TX, spikes_TX = ctx.saved_tensors
        decay, threshold, alpha = ctx.constants
        if grad_TX.stride() != charges_TX.stride():
            grad_TX = torch.empty_like(charges_TX).copy_(grad_TX)
        result_TX = torch.empty_like(charges_TX)
        num_neurons = tick_memory(charges_TX).num_neurons
        _launch(
            kernels.backward, num_neurons, grad_TX, charges_TX, spikes_TX, result_TX, num_neurons,
            DECAY=decay, THRESHOLD=threshold,
            HALF_ALPHA=alpha / 2, STEEPNESS=math.pi / 2 * alpha, TICKS=len(charges_TX),
        )
        return result_TX, None, None, None


def _fire(
    current_TX: Tensor, spikes_TX: Tensor, bias_C: Tensor | None, **constants: float
) -> None:
    """Fill ``spikes_TX``, which may be ``current_TX``, with the spikes of currents plus bias."""
    memory = tick_memory(current_TX)
    _launch(
        kernels.fire, memory.num_neurons, current_TX, spikes_TX,
        *_bias_arguments(current_TX, bias_C), memory.num_neurons,
        CURRENT_MOVES=memory.tick_stride != 0, **constants, TICKS=len(spikes_TX),
    )


def _launch(kernel: Any, num_neurons: int, *arguments: Any, **constants: Any) -> None:
    with on_device_of(arguments[0]):
        kernel[(triton.cdiv(num_neurons, _BLOCK),)](*arguments, **constants, BLOCK=_BLOCK)


def on_device_of(tensor: Tensor) -> AbstractContextManager[object]:
    """Triton launches on the current device, which need not be the tensor's."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


def _bias_arguments(current_TX: Tensor, bias_C: Tensor | None) -> tuple[Tensor, int, int]:
    """The bias, C, and how many numbers lie between a channel and the next.

    Without a bias C is 0, and the tensor a stand-in that is not read.
    """
    if bias_C is None:
        return current_TX, 0, 1
    return bias_C, len(bias_C), current_TX.stride(_CHANNEL_DIMENSION)
