"""The passes of :mod:`chess_snn.nets.gpu.neuron_triton`, in Triton's language.

The equations are those of :mod:`chess_snn.nets.model.neuron`. A program takes ``BLOCK`` neurons
through all their ticks with the membrane in registers. Pointers are to dense memory ``[T, n]``;
whether a tensor has one tick for all (``..._MOVES`` is false) is known when a kernel is compiled,
and so are all constants of the neuron. Numbers are float32 between the read and the write.

A bias of ``CHANNELS`` numbers is added to the currents first, ``SPACING`` apart in memory from one
channel to the next; 0 channels are no bias.
"""

import triton
import triton.language as tl


@triton.jit
def fire(
    current, spikes, bias, CHANNELS: tl.constexpr, SPACING: tl.constexpr, num_neurons,
    CURRENT_MOVES: tl.constexpr, DECAY: tl.constexpr, THRESHOLD: tl.constexpr,
    TICKS: tl.constexpr, BLOCK: tl.constexpr,
):
    """Spikes [T, n] of ``current`` [T or 1, n]; they may be the same memory."""
    neuron, inside, stride = _neurons_of_program(num_neurons, BLOCK)
    offset = _bias_of(bias, neuron, inside, CHANNELS, SPACING, BLOCK)
    membrane = tl.zeros((BLOCK,), tl.float32)
    for tick in tl.static_range(TICKS):
        x = _load(current + CURRENT_MOVES * tick * stride, neuron, inside) + offset
        charge = membrane * DECAY + x
        fired = charge >= THRESHOLD
        membrane = tl.where(fired, 0.0, charge)
        _store(spikes + tick * stride, neuron, inside, tl.where(fired, 1.0, 0.0))


@triton.jit
def add_and_fire(
    shortcut, branch, spikes, bias, CHANNELS: tl.constexpr, SPACING: tl.constexpr, num_neurons,
    SHORTCUT_MOVES: tl.constexpr, DECAY: tl.constexpr, THRESHOLD: tl.constexpr,
    TICKS: tl.constexpr, BLOCK: tl.constexpr,
):
    """``branch`` [T, n] += ``shortcut`` [T or 1, n] and bias; the spikes of the sum."""
    neuron, inside, stride = _neurons_of_program(num_neurons, BLOCK)
    offset = _bias_of(bias, neuron, inside, CHANNELS, SPACING, BLOCK)
    membrane = tl.zeros((BLOCK,), tl.float32)
    for tick in tl.static_range(TICKS):
        carried = _load(shortcut + SHORTCUT_MOVES * tick * stride, neuron, inside)
        added = _load(branch + tick * stride, neuron, inside) + offset
        # Neurons see the sum as rounded to the precision it is kept in.
        total = _rounded(carried + added, branch)
        _store(branch + tick * stride, neuron, inside, total)
        charge = membrane * DECAY + total
        fired = charge >= THRESHOLD
        membrane = tl.where(fired, 0.0, charge)
        _store(spikes + tick * stride, neuron, inside, tl.where(fired, 1.0, 0.0))


@triton.jit
def mean_rate(
    current, rate, bias, CHANNELS: tl.constexpr, SPACING: tl.constexpr, num_neurons,
    DECAY: tl.constexpr, THRESHOLD: tl.constexpr, TICKS: tl.constexpr, BLOCK: tl.constexpr,
):
    """Mean over the ticks of the spikes, float32[n]."""
    neuron, inside, stride = _neurons_of_program(num_neurons, BLOCK)
    offset = _bias_of(bias, neuron, inside, CHANNELS, SPACING, BLOCK)
    membrane = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for tick in tl.static_range(TICKS):
        x = _load(current + tick * stride, neuron, inside) + offset
        charge = membrane * DECAY + x
        fired = charge >= THRESHOLD
        membrane = tl.where(fired, 0.0, charge)
        count += tl.where(fired, 1.0, 0.0)
    _store(rate, neuron, inside, count / TICKS)


@triton.jit
def fire_and_keep_charge(
    current, spikes, charges, num_neurons, CURRENT_MOVES: tl.constexpr, DECAY: tl.constexpr,
    THRESHOLD: tl.constexpr, TICKS: tl.constexpr, BLOCK: tl.constexpr,
):
    """Fire as :func:`fire` does without bias; also store h for :func:`backward`."""
    neuron, inside, stride = _neurons_of_program(num_neurons, BLOCK)
    membrane = tl.zeros((BLOCK,), tl.float32)
    for tick in tl.static_range(TICKS):
        x = _load(current + CURRENT_MOVES * tick * stride, neuron, inside)
        charge = membrane * DECAY + x
        fired = charge >= THRESHOLD
        membrane = tl.where(fired, 0.0, charge)
        _store(charges + tick * stride, neuron, inside, charge)
        _store(spikes + tick * stride, neuron, inside, tl.where(fired, 1.0, 0.0))


@triton.jit
def backward(
    grad_spikes, charges, spikes, grad_currents, num_neurons, DECAY: tl.constexpr,
    THRESHOLD: tl.constexpr, HALF_ALPHA: tl.constexpr, STEEPNESS: tl.constexpr,
    TICKS: tl.constexpr, BLOCK: tl.constexpr,
):
    """Gradient [T, n] of the currents; ``STEEPNESS`` is pi / 2 * alpha."""
    neuron, inside, stride = _neurons_of_program(num_neurons, BLOCK)
    grad_charge = tl.zeros((BLOCK,), tl.float32)
    for past in tl.static_range(TICKS):
        tick = TICKS - 1 - past
        scaled = STEEPNESS * (_load(charges + tick * stride, neuron, inside) - THRESHOLD)
        slope = HALF_ALPHA / (1.0 + scaled * scaled)
        kept = 1.0 - _load(spikes + tick * stride, neuron, inside)
        grad_spike = _load(grad_spikes + tick * stride, neuron, inside)
        grad_charge = slope * grad_spike + grad_charge * DECAY * kept
        _store(grad_currents + tick * stride, neuron, inside, grad_charge)


@triton.jit
def _neurons_of_program(num_neurons, BLOCK: tl.constexpr):
    # 64 bits: a large batch of a large network has more than 2^31 numbers.
    program = tl.program_id(0).to(tl.int64)
    neuron = program * BLOCK + tl.arange(0, BLOCK)
    stride = program * 0 + num_neurons
    return neuron, neuron < num_neurons, stride


@triton.jit
def _bias_of(
    bias, neuron, inside, CHANNELS: tl.constexpr, SPACING: tl.constexpr, BLOCK: tl.constexpr
):
    if CHANNELS == 0:
        return tl.zeros((BLOCK,), tl.float32)
    return tl.load(bias + (neuron // SPACING) % CHANNELS, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def _load(tick, neuron, inside):
    return tl.load(tick + neuron, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def _store(tick, neuron, inside, numbers):
    tl.store(tick + neuron, numbers, mask=inside)


@triton.jit
def _rounded(numbers, like):
    """Float32 numbers as ``like`` will hold them."""
    return numbers.to(like.dtype.element_ty).to(tl.float32)
