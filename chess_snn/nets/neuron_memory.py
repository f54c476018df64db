"""How the currents of a layer lie in memory, for kernels that see them as ``[T, n]``.

The neurons of a layer do not see each other, so a kernel need not know what its n numbers are: any
layout will do, as long as ticks are dense and lie at regular distances.

Dimensions: T ticks, X anything.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class TickMemory:
    """Where the ticks of one tensor are."""

    num_neurons: int
    """n, the numbers of one tick."""
    tick_stride: int
    """From one tick to the next: n, or 0 where all ticks are one (an expanded view)."""


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
    """Whether the numbers of ``tensor`` fill one stretch of memory, in any order of dimensions."""
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
