"""The passes of :mod:`chess_snn.nets.gpu.norm_neuron_triton`, in Triton's language.

Memory is ``[T, R, C]``: ticks, rows (positions and squares), channels. A program takes a tile of
``ROWS`` x ``COLUMNS`` neurons through all their ticks with the membranes in registers. Numbers are
float32 between the read and the write. For the branch y, the output of a convolution::

    x = (y - mean) * scale + bias       scale = weight / sqrt(variance + EPSILON)

and, in a layer that ``KEEPS`` its currents, x plus the shortcut as rounded to the precision it is
kept in. x is what the neurons get, by the equations of :mod:`chess_snn.nets.model.neuron`; with
``LEVELS`` > 0 by those of :mod:`chess_snn.nets.model.integer_neuron`, in one tick.

The branch has as many ticks as the neurons (``MOVES``), or one for all of them. Both passes of the
backward direction compute the charges again. All sums are written as ``tl.fma``: the compiler may
not round them differently from one pass to the next, so the spikes are those of the forward pass.
"""

import triton
import triton.language as tl

from chess_snn.nets.gpu.conv_neuron_triton_kernels import levels_reached


@triton.jit
def sum_branch(
    branch, partial, num_rows, CHANNELS: tl.constexpr, TICKS: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Sums over the rows of each program and all ticks of the branch, ``partial`` [programs, 2, C].

    They are of distances from the first row, and of their squares: a variance is not lost where the
    mean is far from 0 (Chan, Golub & LeVeque 1983, §2).
    """
    column = _columns(COLUMNS)
    first = _of_channels(branch, column, CHANNELS)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    squares = tl.zeros((ROWS, COLUMNS), tl.float32)
    tile = tl.program_id(0)
    while tile < tl.cdiv(num_rows, ROWS):
        place, inside, stride = _tile(tile, num_rows, column, CHANNELS, ROWS)
        for tick in tl.static_range(TICKS):
            distance = tl.where(inside, _load(branch + tick * stride + place, inside) - first, 0.0)
            sums += distance
            squares = tl.fma(distance, distance, squares)
        tile += tl.num_programs(0)
    _store_sums(partial, sums, squares, column, CHANNELS)


@triton.jit
def find_moments(
    branch, partial, mean, variance, running_mean, running_variance, num_rows, num_partial,
    MOMENTUM: tl.constexpr, CHANNELS: tl.constexpr, TICKS: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Mean and variance (biased) of each channel from :func:`sum_branch`; running ones follow."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    known = column < CHANNELS
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    squares = tl.zeros((ROWS, COLUMNS), tl.float32)
    start = tl.program_id(0) * 0
    while start < num_partial:
        row = start + tl.arange(0, ROWS)[:, None]
        place = row * 2 * CHANNELS + column[None, :]
        inside = (row < num_partial) & known[None, :]
        sums += _load(partial + place, inside)
        squares += _load(partial + CHANNELS + place, inside)
        start += ROWS
    count = tl.zeros((COLUMNS,), tl.float32) + num_rows * TICKS
    distance = tl.sum(sums, 0) / count
    found = tl.maximum(tl.sum(squares, 0) / count - distance * distance, 0.0)
    centre = _load(branch + column, known) + distance
    tl.store(mean + column, centre, mask=known)
    tl.store(variance + column, found, mask=known)
    unbiased = found * (count / tl.maximum(count - 1.0, 1.0))
    _follow(running_mean + column, centre, known, MOMENTUM)
    _follow(running_variance + column, unbiased, known, MOMENTUM)


@triton.jit
def normalise_and_fire(
    branch, shortcut, current, spikes, mean, variance, weight, bias, num_rows,
    CHANNELS: tl.constexpr, MOVES: tl.constexpr, KEEPS: tl.constexpr,
    HAS_SHORTCUT: tl.constexpr, SHORTCUT_MOVES: tl.constexpr, EPSILON: tl.constexpr,
    DECAY: tl.constexpr, THRESHOLD: tl.constexpr, LEVELS: tl.constexpr, TICKS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):
    """Spikes [T, R, C]; where it ``KEEPS`` them, the currents [T or 1, R, C] too."""
    column = _columns(COLUMNS)
    place, inside, stride = _tile(tl.program_id(0), num_rows, column, CHANNELS, ROWS)
    centre, _deviations, scale = _moments(mean, variance, weight, column, CHANNELS, EPSILON)
    offset = _of_channels(bias, column, CHANNELS)
    membrane = tl.zeros((ROWS, COLUMNS), tl.float32)
    x = membrane
    for tick in tl.static_range(TICKS):
        if MOVES or tick == 0:
            x = _normalised(branch + tick * stride + place, inside, centre, scale, offset)
            if HAS_SHORTCUT:
                x += _load(shortcut + SHORTCUT_MOVES * tick * stride + place, inside)
            if KEEPS:
                x = _rounded(x, current)
                tl.store(current + tick * stride + place, x, mask=inside)
        charge = tl.fma(membrane, DECAY, x)
        membrane = _after(charge, THRESHOLD)
        tl.store(spikes + tick * stride + place, _fired(charge, THRESHOLD, LEVELS), mask=inside)


@triton.jit
def sum_gradients(
    grad_spikes, grad_current, branch, current, grad_sum, partial, mean, variance, weight, bias,
    num_rows,
    CHANNELS: tl.constexpr, MOVES: tl.constexpr, KEEPS: tl.constexpr,
    HAS_GRAD_CURRENT: tl.constexpr, EPSILON: tl.constexpr, DECAY: tl.constexpr,
    THRESHOLD: tl.constexpr, LEVELS: tl.constexpr, HALF_ALPHA: tl.constexpr,
    STEEPNESS: tl.constexpr, TICKS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):
    """The first pass backward: sums over the rows of each program, ``partial`` [programs, 2, C].

    They are of g, the gradient of the normalised branch, and of g times the branch in standard
    deviations: the gradients of bias and weight. Where currents are kept, g is that of the currents
    too, and ``grad_sum`` [T or 1, R, C] is filled with it.
    """
    column = _columns(COLUMNS)
    centre, deviations, scale = _moments(mean, variance, weight, column, CHANNELS, EPSILON)
    offset = _of_channels(bias, column, CHANNELS)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    products = tl.zeros((ROWS, COLUMNS), tl.float32)
    tile = tl.program_id(0)
    while tile < tl.cdiv(num_rows, ROWS):
        place, inside, stride = _tile(tile, num_rows, column, CHANNELS, ROWS)
        charges = _charges(
            branch, current, place, inside, stride, centre, scale, offset,
            MOVES, KEEPS, DECAY, THRESHOLD, TICKS, ROWS, COLUMNS,
        )
        grad_charge = tl.zeros((ROWS, COLUMNS), tl.float32)
        over_ticks = tl.zeros((ROWS, COLUMNS), tl.float32)
        for tick in tl.static_range(TICKS - 1, -1, -1):
            grad_charge = _grad_charge(
                charges[tick], grad_charge, _load(grad_spikes + tick * stride + place, inside),
                DECAY, THRESHOLD, LEVELS, HALF_ALPHA, STEEPNESS,
            )
            over_ticks += grad_charge
            if MOVES or tick == 0:
                grad = grad_charge if MOVES else over_ticks
                if HAS_GRAD_CURRENT:
                    grad += _load(grad_current + tick * stride + place, inside)
                if KEEPS:
                    grad = _rounded(grad, grad_sum)
                    tl.store(grad_sum + tick * stride + place, grad, mask=inside)
                distance = (_load(branch + tick * stride + place, inside) - centre) * deviations
                sums += grad
                products = tl.fma(grad, distance, products)
        tile += tl.num_programs(0)
    _store_sums(partial, sums, products, column, CHANNELS)


@triton.jit
def differentiate(
    grad_spikes, grad_sum, branch, grad_branch, means, mean, variance, weight, bias, num_rows,
    CHANNELS: tl.constexpr, MOVES: tl.constexpr, KEEPS: tl.constexpr, EPSILON: tl.constexpr,
    DECAY: tl.constexpr, THRESHOLD: tl.constexpr, LEVELS: tl.constexpr, HALF_ALPHA: tl.constexpr,
    STEEPNESS: tl.constexpr, TICKS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):
    """The second pass backward: ``grad_branch`` [T or 1, R, C].

    ``means`` [2, C] are over all rows and ticks of what the first pass has summed. g of the first
    pass is read where it was kept, and computed again where it was not.
    """
    column = _columns(COLUMNS)
    place, inside, stride = _tile(tl.program_id(0), num_rows, column, CHANNELS, ROWS)
    centre, deviations, scale = _moments(mean, variance, weight, column, CHANNELS, EPSILON)
    mean_grad = _of_channels(means, column, CHANNELS)
    mean_product = _of_channels(means + CHANNELS, column, CHANNELS)
    if not KEEPS:
        charges = _charges(
            branch, branch, place, inside, stride, centre, scale,
            _of_channels(bias, column, CHANNELS), MOVES, KEEPS, DECAY, THRESHOLD, TICKS,
            ROWS, COLUMNS,
        )
    grad = tl.zeros((ROWS, COLUMNS), tl.float32)
    for tick in tl.static_range(TICKS - 1, -1, -1):
        if MOVES or tick == 0:
            if KEEPS:
                grad = _load(grad_sum + tick * stride + place, inside)
            else:
                grad = _grad_charge(
                    charges[tick], grad, _load(grad_spikes + tick * stride + place, inside),
                    DECAY, THRESHOLD, LEVELS, HALF_ALPHA, STEEPNESS,
                )
            distance = (_load(branch + tick * stride + place, inside) - centre) * deviations
            result = scale * (grad - mean_grad - distance * mean_product)
            tl.store(grad_branch + tick * stride + place, result, mask=inside)


@triton.jit
def _columns(COLUMNS: tl.constexpr):
    """The channels of this program, [1, COLUMNS]."""
    return tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]


@triton.jit
def _tile(tile, num_rows, column, CHANNELS: tl.constexpr, ROWS: tl.constexpr):
    """Places in a tick, whether they exist, and numbers of a tick."""
    # 64 bits: a large batch of a large network has more than 2^31 numbers.
    zero = tl.program_id(0).to(tl.int64) * 0
    row = (zero + tile) * ROWS + tl.arange(0, ROWS)[:, None]
    inside = (row < num_rows) & (column < CHANNELS)
    return row * CHANNELS + column, inside, (zero + num_rows) * CHANNELS


@triton.jit
def _store_sums(partial, one, other, column, CHANNELS: tl.constexpr):
    """Write the sums over the rows of two tiles to this program's place in [programs, 2, C]."""
    row = partial + tl.program_id(0).to(tl.int64) * 2 * CHANNELS + column
    tl.store(row, tl.sum(one, 0)[None, :], mask=column < CHANNELS)
    tl.store(row + CHANNELS, tl.sum(other, 0)[None, :], mask=column < CHANNELS)


@triton.jit
def _follow(running, newest, inside, MOMENTUM: tl.constexpr):
    """Move running statistics towards the newest."""
    before = _load(running, inside)
    tl.store(running, before + MOMENTUM * (newest - before), mask=inside)


@triton.jit
def _moments(
    mean, variance, weight, column, CHANNELS: tl.constexpr, EPSILON: tl.constexpr
):
    """Mean of each column, 1 / standard deviation, and that times the weight."""
    deviations = tl.rsqrt(_of_channels(variance, column, CHANNELS) + EPSILON)
    scale = deviations * _of_channels(weight, column, CHANNELS)
    return _of_channels(mean, column, CHANNELS), deviations, scale


@triton.jit
def _of_channels(numbers, column, CHANNELS: tl.constexpr):
    return _load(numbers + column, column < CHANNELS)


@triton.jit
def _normalised(place, inside, centre, scale, offset):
    return tl.fma(_load(place, inside) - centre, scale, offset)


@triton.jit
def _charges(
    branch, current, place, inside, stride, centre, scale, offset, MOVES: tl.constexpr,
    KEEPS: tl.constexpr, DECAY: tl.constexpr, THRESHOLD: tl.constexpr, TICKS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):
    """The charge of each tick, as in the forward pass."""
    membrane = tl.zeros((ROWS, COLUMNS), tl.float32)
    x = membrane
    charges = ()
    for tick in tl.static_range(TICKS):
        if MOVES or tick == 0:
            if KEEPS:
                x = _load(current + tick * stride + place, inside)
            else:
                x = _normalised(branch + tick * stride + place, inside, centre, scale, offset)
        charge = tl.fma(membrane, DECAY, x)
        membrane = _after(charge, THRESHOLD)
        charges = charges + (charge,)  # noqa: RUF005
    return charges


@triton.jit
def _fired(charge, THRESHOLD: tl.constexpr, LEVELS: tl.constexpr):
    if LEVELS == 0:
        return tl.where(charge >= THRESHOLD, 1.0, 0.0)
    return levels_reached(charge, THRESHOLD, LEVELS)


@triton.jit
def _after(charge, THRESHOLD: tl.constexpr):
    """The membrane: a hard reset."""
    return tl.where(charge >= THRESHOLD, 0.0, charge)


@triton.jit
def _grad_charge(
    charge, grad_next, grad_spike, DECAY: tl.constexpr, THRESHOLD: tl.constexpr,
    LEVELS: tl.constexpr, HALF_ALPHA: tl.constexpr, STEEPNESS: tl.constexpr,
):
    """The gradient of a charge, from those of the next tick's and of its spike."""
    if LEVELS > 0:
        is_inside = (charge >= 0.0) & (charge <= THRESHOLD * LEVELS)
        return tl.where(is_inside, grad_spike / THRESHOLD, 0.0)
    scaled = STEEPNESS * (charge - THRESHOLD)
    slope = HALF_ALPHA / (1.0 + scaled * scaled)
    return slope * grad_spike + DECAY * tl.where(charge >= THRESHOLD, 0.0, grad_next)


@triton.jit
def _load(place, inside):
    return tl.load(place, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def _rounded(numbers, like):
    """Float32 numbers as ``like`` will hold them."""
    return numbers.to(like.dtype.element_ty).to(tl.float32)
