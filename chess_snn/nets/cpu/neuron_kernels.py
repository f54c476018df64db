"""Compiled passes over the memory of a layer of neurons, for the CPU: all ticks at once.

The equations are those of :mod:`chess_snn.nets.model.neuron`. Kernels see memory as ``[T, n]`` and
do not care what the n numbers are, so any layout will do. float32 arrays hold numbers; uint16
arrays hold the bits of bfloat16, which is the upper half of a float32; uint8 arrays hold spikes as
integers. The membrane is float32 in all, and the results are the reference's, bit for bit.

A range of ``BLOCK`` neurons stays in the first-level cache over all ticks, and each pass over it
is a loop without branches, which LLVM turns into vector instructions.
"""

from typing import Any

import numpy as np
from numba.extending import overload

from chess_snn.jit import kernel
from chess_snn.types import Float32Array

BLOCK = 1024
_ZERO, _ONE = np.float32(0), np.float32(1)
_HALF_WORD, _LOW_BIT, _ROUND = np.uint32(16), np.uint32(1), np.uint32(0x7FFF)


@kernel
def fire(
    current: np.ndarray, spikes: np.ndarray, decay: np.float32, threshold: np.float32
) -> None:
    """Spikes [T, n] of ``current`` [T, n], or [1, n] where it is the same at each tick.

    ``spikes`` may be ``current`` itself.
    """
    ticks, num_neurons = spikes.shape
    static = len(current) == 1
    charge = np.empty(BLOCK, np.float32)
    membrane = np.empty(BLOCK, np.float32)
    for lo in range(0, num_neurons, BLOCK):
        hi = min(lo + BLOCK, num_neurons)
        membrane[:] = _ZERO
        for tick in range(ticks):
            load_block(current[0 if static else tick, lo:hi], charge)
            _charge(charge, membrane, hi - lo, decay)
            _fire_and_reset(charge, membrane, hi - lo, threshold)
            store_block(charge, spikes[tick, lo:hi])


@kernel
def add_and_fire(
    shortcut: np.ndarray, branch: np.ndarray, spikes: np.ndarray,
    decay: np.float32, threshold: np.float32,
) -> None:
    """``branch`` [T, n] += ``shortcut`` [T or 1, n], and the spikes [T, n] of the sum."""
    ticks, num_neurons = branch.shape
    static = len(shortcut) == 1
    total = np.empty(BLOCK, np.float32)
    charge = np.empty(BLOCK, np.float32)
    membrane = np.empty(BLOCK, np.float32)
    for lo in range(0, num_neurons, BLOCK):
        hi = min(lo + BLOCK, num_neurons)
        membrane[:] = _ZERO
        for tick in range(ticks):
            load_block(shortcut[0 if static else tick, lo:hi], total)
            load_block(branch[tick, lo:hi], charge)
            for i in range(hi - lo):
                total[i] += charge[i]
            store_block(total, branch[tick, lo:hi])
            # Read again: neurons see the sum as rounded to the precision it is kept in.
            load_block(branch[tick, lo:hi], charge)
            _charge(charge, membrane, hi - lo, decay)
            _fire_and_reset(charge, membrane, hi - lo, threshold)
            store_block(charge, spikes[tick, lo:hi])


@kernel
def fire_and_keep_charge(
    current: np.ndarray, spikes: np.ndarray, charges: np.ndarray,
    decay: np.float32, threshold: np.float32,
) -> None:
    """Fire as :func:`fire` does; also store h [T, n] for :func:`backward`."""
    ticks, num_neurons = spikes.shape
    static = len(current) == 1
    charge = np.empty(BLOCK, np.float32)
    membrane = np.empty(BLOCK, np.float32)
    for lo in range(0, num_neurons, BLOCK):
        hi = min(lo + BLOCK, num_neurons)
        membrane[:] = _ZERO
        for tick in range(ticks):
            load_block(current[0 if static else tick, lo:hi], charge)
            _charge(charge, membrane, hi - lo, decay)
            store_block(charge, charges[tick, lo:hi])
            _fire_and_reset(charge, membrane, hi - lo, threshold)
            store_block(charge, spikes[tick, lo:hi])


@kernel
def backward(
    grad_spikes: np.ndarray, charges: np.ndarray, spikes: np.ndarray, grad_currents: np.ndarray,
    decay: np.float32, threshold: np.float32, half_alpha: np.float32, steepness: np.float32,
) -> None:
    """Gradient [T, n] of the currents; ``steepness`` is pi / 2 * alpha."""
    ticks, num_neurons = charges.shape
    charge = np.empty(BLOCK, np.float32)
    spike = np.empty(BLOCK, np.float32)
    grad_spike = np.empty(BLOCK, np.float32)
    grad_charge = np.empty(BLOCK, np.float32)
    for lo in range(0, num_neurons, BLOCK):
        hi = min(lo + BLOCK, num_neurons)
        grad_charge[:] = _ZERO
        for tick in range(ticks - 1, -1, -1):
            load_block(charges[tick, lo:hi], charge)
            load_block(spikes[tick, lo:hi], spike)
            load_block(grad_spikes[tick, lo:hi], grad_spike)
            for i in range(hi - lo):
                scaled = steepness * (charge[i] - threshold)
                # Not "/": its check for zero would keep this loop from becoming vector code.
                slope = np.divide(half_alpha, _ONE + scaled * scaled)
                kept = grad_charge[i] * decay * (_ONE - spike[i])
                grad_charge[i] = slope * grad_spike[i] + kept
            store_block(grad_charge, grad_currents[tick, lo:hi])


@kernel
def _charge(
    charge: Float32Array, membrane: Float32Array, num_neurons: int, decay: np.float32
) -> None:
    """First half of a tick: ``charge`` holds the current before and h after."""
    for i in range(num_neurons):
        charge[i] += decay * membrane[i]


@kernel
def _fire_and_reset(
    charge: Float32Array, membrane: Float32Array, num_neurons: int, threshold: np.float32
) -> None:
    """Second half of a tick: ``charge`` holds h before and the spikes after."""
    for i in range(num_neurons):
        h = charge[i]
        fired = h >= threshold
        membrane[i] = _ZERO if fired else h
        charge[i] = _ONE if fired else _ZERO


def load_block(source: np.ndarray, block: Float32Array) -> None:
    """Fill the start of ``block`` from ``source``, float32 or the bits of bfloat16."""
    raise NotImplementedError("compiled code only")


def store_block(block: Float32Array, target: np.ndarray) -> None:
    """Fill ``target`` from the start of ``block``: float32, bits of bfloat16, or spikes uint8."""
    raise NotImplementedError("compiled code only")


@overload(load_block, inline="always")  # type: ignore[untyped-decorator]
def _compile_load(source: Any, block: Any) -> Any:
    def load_float32(source: Any, block: Any) -> None:
        for i in range(len(source)):
            block[i] = source[i]

    def load_bfloat16(source: Any, block: Any) -> None:
        bits = block.view(np.uint32)
        for i in range(len(source)):
            bits[i] = np.uint32(source[i]) << _HALF_WORD

    return load_float32 if source.dtype.bitwidth == 32 else load_bfloat16


@overload(store_block, inline="always")  # type: ignore[untyped-decorator]
def _compile_store(block: Any, target: Any) -> Any:
    def store_float32(block: Any, target: Any) -> None:
        for i in range(len(target)):
            target[i] = block[i]

    def store_bfloat16(block: Any, target: Any) -> None:
        bits = block.view(np.uint32)
        for i in range(len(target)):
            # Round to the nearest, ties to even: add just under half of the last place kept, and
            # one more where that place is odd.
            odd = (bits[i] >> _HALF_WORD) & _LOW_BIT
            target[i] = np.uint16((bits[i] + _ROUND + odd) >> _HALF_WORD)

    def store_spikes(block: Any, target: Any) -> None:
        for i in range(len(target)):
            target[i] = np.uint8(block[i])

    return {32: store_float32, 16: store_bfloat16, 8: store_spikes}[target.dtype.bitwidth]
