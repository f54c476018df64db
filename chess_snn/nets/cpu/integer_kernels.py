"""Compiled passes over a layer of integer neurons, for the CPU.

The equation is that of :mod:`chess_snn.nets.model.integer_neuron`; memory and types are as in
:mod:`chess_snn.nets.cpu.neuron_kernels`, with one tick: arrays are ``[1, n]``. The signatures are
those of that module, with (``threshold``, ``levels``) in the place of (``decay``, ``threshold``).
"""

import numpy as np

from chess_snn.jit import kernel
from chess_snn.nets.cpu.neuron_kernels import BLOCK, load_block, store_block
from chess_snn.types import Float32Array

_ZERO, _ONE, _HALF = np.float32(0), np.float32(1), np.float32(0.5)


@kernel
def fire(
    current: np.ndarray, spikes: np.ndarray, threshold: np.float32, levels: int
) -> None:
    """Spikes [1, n], from 0 to ``levels``, of ``current`` [1, n]; they may share memory."""
    num_neurons = spikes.shape[1]
    charge = np.empty(BLOCK, np.float32)
    fired = np.empty(BLOCK, np.float32)
    for lo in range(0, num_neurons, BLOCK):
        hi = min(lo + BLOCK, num_neurons)
        load_block(current[0, lo:hi], charge)
        _count(charge, fired, hi - lo, threshold, levels)
        store_block(fired, spikes[0, lo:hi])


@kernel
def add_and_fire(
    shortcut: np.ndarray, branch: np.ndarray, spikes: np.ndarray,
    threshold: np.float32, levels: int,
) -> None:
    """``branch`` [1, n] += ``shortcut`` [1, n], and the spikes [1, n] of the sum."""
    num_neurons = branch.shape[1]
    total = np.empty(BLOCK, np.float32)
    charge = np.empty(BLOCK, np.float32)
    fired = np.empty(BLOCK, np.float32)
    for lo in range(0, num_neurons, BLOCK):
        hi = min(lo + BLOCK, num_neurons)
        load_block(shortcut[0, lo:hi], total)
        load_block(branch[0, lo:hi], charge)
        for i in range(hi - lo):
            total[i] += charge[i]
        store_block(total, branch[0, lo:hi])
        # Read again: neurons see the sum as rounded to the precision it is kept in.
        load_block(branch[0, lo:hi], charge)
        _count(charge, fired, hi - lo, threshold, levels)
        store_block(fired, spikes[0, lo:hi])


@kernel
def backward(
    grad_spikes: np.ndarray, current: np.ndarray, grad_currents: np.ndarray,
    threshold: np.float32, levels: int,
) -> None:
    """Gradient [1, n] of the currents: a rectangle between no spike and ``levels`` spikes."""
    num_neurons = current.shape[1]
    charge = np.empty(BLOCK, np.float32)
    grad = np.empty(BLOCK, np.float32)
    most, slope = threshold * np.float32(levels), _ONE / threshold
    for lo in range(0, num_neurons, BLOCK):
        hi = min(lo + BLOCK, num_neurons)
        load_block(current[0, lo:hi], charge)
        load_block(grad_spikes[0, lo:hi], grad)
        for i in range(hi - lo):
            inside = (charge[i] >= _ZERO) & (charge[i] <= most)
            grad[i] = grad[i] * slope if inside else _ZERO
        store_block(grad, grad_currents[0, lo:hi])


@kernel
def _count(
    charge: Float32Array, fired: Float32Array, num_neurons: int, threshold: np.float32, levels: int
) -> None:
    """Fill the start of ``fired`` with how many thresholds each charge reaches.

    The quotient may be off by one where it is rounded, so its neighbours' thresholds are asked.
    """
    most, per_spike = np.float32(levels), _ONE / threshold
    for i in range(num_neurons):
        count = np.floor(charge[i] * per_spike + _HALF)
        count = count if count > _ZERO else _ZERO
        count = count if count < most else most
        above = charge[i] >= (count + _HALF) * threshold
        below = charge[i] < (count - _HALF) * threshold
        count += _ONE if above else _ZERO
        count -= _ONE if below else _ZERO
        count = count if count > _ZERO else _ZERO
        fired[i] = count if count < most else most
