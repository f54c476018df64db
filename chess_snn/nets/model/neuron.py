"""The leaky integrate-and-fire neuron, as pure functions with the state passed explicitly.

The neuron that gives the project its name. Read the three equations and ``lif_step``, which is all
of the dynamics; what follows makes the same passes fast, with a gradient. File 2 of 16 of the spine
in docs/architecture.md.

For the current x of tick t, with the membrane at v = 0 before the first tick::

    h[t] = decay * v[t-1] + x[t]            charge
    s[t] = 1 if h[t] >= threshold else 0    fire
    v[t] = h[t] * (1 - s[t])                hard reset

The derivative of s is a convention, that of an arctangent (ATan surrogate; Fang et al. 2021,
arXiv 2007.05785, appendix A.5)::

    ds/dh = (alpha / 2) / (1 + (pi / 2 * alpha * (h - threshold))^2)

and the reset is detached: dv/dh = 1 - s. The membrane is float32 whatever the precision of the
currents; spikes come in the precision of the currents.

The neurons of a layer do not see each other, so a kernel need not know what its n numbers are: any
memory layout will do, as long as ticks are dense and lie at regular distances.

Dimensions: T ticks, X anything (the neurons do not see each other).
"""

import importlib.util
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

_LOG = logging.getLogger(__name__)


def lif_step(
    current_X: Tensor, membrane_X: Tensor | None, decay: float, threshold: float
) -> tuple[Tensor, Tensor, Tensor]:
    """One tick.

    Args:
        current_X: x, in any floating point precision.
        membrane_X: float32, v of the tick before; None for zero.
        decay: share of v that is left after a tick.
        threshold: h from which a neuron spikes.

    Returns:
        h (float32), s (bool) and the new v (float32).
    """
    charge_X = current_X.float()
    if membrane_X is not None:
        charge_X = membrane_X * decay + charge_X
    fired_X = charge_X >= threshold
    return charge_X, fired_X, charge_X.masked_fill(fired_X, 0.0)


def lif(current_TX: Tensor, decay: float, threshold: float, alpha: float = 2.0) -> Tensor:
    """Spikes in {0, 1} of T ticks, [T, X] in the precision of ``current_TX``.

    ``current_TX`` may be an expanded view, for a current that does not change.
    """
    spikes_TX: Tensor = _Lif.apply(current_TX, decay, threshold, alpha)  # type: ignore[no-untyped-call]
    return spikes_TX


def surrogate_derivative(distance_X: Tensor, alpha: float) -> Tensor:
    """ds/dh at ``distance_X`` = h - threshold."""
    return (alpha / 2) / (1 + (math.pi / 2 * alpha * distance_X).square())


class _Lif(torch.autograd.Function):
    """Backpropagation through time by hand: it keeps h, and nothing else of its own.

    The spikes it also refers to are its output, which the next convolution keeps anyway; a reset
    mask taken from them is exact, even where h was rounded to bfloat16.
    """

    @staticmethod
    def forward(
        ctx: Any, current_TX: Tensor, decay: float, threshold: float, alpha: float
    ) -> Tensor:
        spikes_TX = like_ticks_of(current_TX)
        charge_TX = like_ticks_of(current_TX) if ctx.needs_input_grad[0] else None
        membrane_X = None
        for tick, current_X in enumerate(current_TX):
            charge_X, fired_X, membrane_X = lif_step(current_X, membrane_X, decay, threshold)
            spikes_TX[tick] = fired_X
            if charge_TX is not None:
                charge_TX[tick] = charge_X
        ctx.save_for_backward(charge_TX, spikes_TX)
        ctx.constants = decay, threshold, alpha
        return spikes_TX

    @staticmethod
    def backward(ctx: Any, grad_TX: Tensor) -> tuple[Tensor, None, None, None]:
        charge_TX, spikes_TX = ctx.saved_tensors
        decay, threshold, alpha = ctx.constants
        result_TX = torch.empty_like(charge_TX)
        grad_charge_X = None
        for tick in reversed(range(len(charge_TX))):
            slope_X = surrogate_derivative(charge_TX[tick].float() - threshold, alpha)
            through_spike_X = slope_X * grad_TX[tick]
            if grad_charge_X is None:
                grad_charge_X = through_spike_X
            else:
                kept_X = 1 - spikes_TX[tick].float()
                grad_charge_X = through_spike_X + grad_charge_X * decay * kept_X
            result_TX[tick] = grad_charge_X
        return result_TX, None, None, None


def like_ticks_of(current_TX: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """An empty tensor of this shape whose ticks have the memory layout of one tick.

    ``empty_like`` would lose channels-last where the ticks are an expanded view.
    """
    one_tick = torch.empty_like(current_TX[0], dtype=dtype)
    return one_tick.new_empty_strided(current_TX.shape, (one_tick.numel(), *one_tick.stride()))


@dataclass(frozen=True, slots=True)
class TickMemory:
    """The places of the ticks of one tensor."""

    num_neurons: int
    """n, the numbers of one tick."""
    tick_stride: int
    """Distance from one tick to the next: n, or 0 where all ticks are one (an expanded view)."""


def tick_memory(tensor_TX: Tensor) -> TickMemory:
    """The memory of ``tensor_TX``.

    Raises:
        ValueError: ticks have gaps or lie at irregular distances.
    """
    num_neurons = tensor_TX[0].numel()
    tick_stride = tensor_TX.stride(0) if len(tensor_TX) > 1 else num_neurons
    if not is_dense(tensor_TX[0]) or tick_stride not in (0, num_neurons):
        raise ValueError(
            f"neurons need dense ticks, got shape {tuple(tensor_TX.shape)} with strides "
            f"{tensor_TX.stride()}; call .contiguous() on the currents"
        )
    return TickMemory(num_neurons, tick_stride)


def is_dense(tensor: Tensor) -> bool:
    """Whether the numbers of ``tensor`` fill one block of memory, in any order of dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def check_same_layout(shortcut_TX: Tensor, branch_TX: Tensor) -> None:
    """Raise where a number of the one does not lie where its partner lies in the other.

    Raises:
        ValueError: strides differ; those of a dimension of size 1 mean nothing.
    """
    ours, theirs = (
        [stride for stride, size in zip(tick.stride(), tick.shape, strict=True) if size != 1]
        for tick in (shortcut_TX[0], branch_TX[0])
    )
    if ours != theirs:
        raise ValueError(
            f"a shortcut and a branch must share their layout, got strides "
            f"{shortcut_TX.stride()} and {branch_TX.stride()}"
        )


@cache
def has_triton() -> bool:
    """Whether fused kernels are available; if not, the log says so once."""
    if importlib.util.find_spec("triton") is not None:
        return True
    _LOG.warning(
        "triton is not installed: neurons on the GPU run unfused, several times slower; "
        "install the triton that belongs to this torch"
    )
    return False


@cache
def lif_on_gpu() -> Callable[[Tensor, float, float, float], Tensor]:
    """The differentiable neuron for CUDA tensors."""
    if not has_triton():
        return lif
    # Triton comes with torch for CUDA, and with no other torch.
    from chess_snn.nets.gpu.neuron_triton import lif_triton  # noqa: PLC0415

    return lif_triton
