"""A convolution with its neurons as one pass, in Triton's language.

It is an implicit matrix product: a row is one square of one board, a column is one output channel,
and the sum is over taps (squares of the window) and input channels. A program takes ``ROWS`` rows
and ``COLUMNS`` columns through all ticks: it has one tile of sums for each tick, so that weights
are read once for all of them, and then takes the neurons through the ticks with the membrane in
registers. Currents are never in memory, but where a shortcut continues.

Memory is ``[ticks, rows, channels]``, and ``[columns, taps, channels]`` for weights. A tile may
begin and end anywhere on a board. All constants are known when the kernel is compiled.

Spikes and weights are 8-bit integers with 32-bit integer sums, of which one step is ``scale`` of
its column. A current is rounded to bfloat16, as if the convolution had written it. The neuron is
that of :mod:`chess_snn.nets.model.neuron`, or with ``LEVELS`` of
:mod:`chess_snn.nets.model.integer_neuron`.
"""

import triton
import triton.language as tl


@triton.jit
def convolve_and_fire(
    spikes, weight, scale, bias, shortcut, total, fired, num_rows,
    CHANNELS: tl.constexpr, OUTPUTS: tl.constexpr, SIDE: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    INPUT_MOVES: tl.constexpr, HAS_SHORTCUT: tl.constexpr, SHORTCUT_MOVES: tl.constexpr,
    KEEPS_TOTAL: tl.constexpr, IS_RATE: tl.constexpr,
    DECAY: tl.constexpr, THRESHOLD: tl.constexpr, LEVELS: tl.constexpr, TICKS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, STAGES: tl.constexpr,
):
    """Fill ``fired`` with the spikes of neurons behind a convolution of ``spikes``.

    ``fired`` is int8[T, n, OUTPUTS] as ``spikes`` [T or 1, n, CHANNELS]; with ``IS_RATE`` it is
    their mean over the ticks, float32[n, OUTPUTS]. ``total`` [T or 1, n, OUTPUTS], with
    ``KEEPS_TOTAL``, gets the currents with the shortcut [T or 1, n, OUTPUTS]; if that moves, the
    two may be the same memory.
    """
    COLUMN_TILES: tl.constexpr = (OUTPUTS + COLUMNS - 1) // COLUMNS
    first = (tl.program_id(0) // COLUMN_TILES).to(tl.int64) * ROWS
    row = tl.arange(0, ROWS)
    live = row < num_rows - first
    column = (tl.program_id(0) % COLUMN_TILES) * COLUMNS + tl.arange(0, COLUMNS)
    used = column < OUTPUTS
    sums = _convolve(
        spikes + first * CHANNELS, weight, num_rows, first, row, live, column, used,
        CHANNELS, SIDE, HEIGHT, WIDTH, TICKS if INPUT_MOVES else 1, ROWS, COLUMNS, DEPTH, STAGES,
    )
    offset = tl.load(bias + column, mask=used, other=0.0)[None, :]
    place = row[:, None] * OUTPUTS + column[None, :]
    written = live[:, None] & used[None, :]
    tick_stride = num_rows.to(tl.int64) * OUTPUTS
    membrane = tl.zeros((ROWS, COLUMNS), tl.float32)
    count = tl.zeros((ROWS, COLUMNS), tl.float32)
    current = membrane
    for tick in tl.static_range(TICKS):
        begin = first * OUTPUTS + tick * tick_stride
        if INPUT_MOVES or tick == 0:
            # Read anew for each tick: registers would not hold it, and spill. The compiler does not
            # know that the distance is 0.
            here = scale + tl.minimum(num_rows, 0) * tick
            step = tl.load(here + column, mask=used, other=0.0)[None, :]
            current = _rounded(sums[tick].to(tl.float32) * step + offset)
            if HAS_SHORTCUT:
                carried = shortcut + (begin if SHORTCUT_MOVES else first * OUTPUTS)
                current += tl.load(carried + place, mask=written, other=0.0).to(tl.float32)
                current = _rounded(current)
            if KEEPS_TOTAL:
                tl.store(total + begin + place, current, mask=written)
        if LEVELS > 0:
            now = levels_reached(current, THRESHOLD, LEVELS)
        else:
            charge = membrane * DECAY + current
            now = tl.where(charge >= THRESHOLD, 1.0, 0.0)
            membrane = tl.where(charge >= THRESHOLD, 0.0, charge)
        if IS_RATE:
            count += now
        else:
            spike = now.to(fired.dtype.element_ty)
            tl.store(fired + begin + place, spike, mask=written)
    if IS_RATE:
        tl.store(fired + first * OUTPUTS + place, count / TICKS, mask=written)


@triton.jit
def _convolve(
    spikes, weight, num_rows, first, row, live, column, used,
    CHANNELS: tl.constexpr, SIDE: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    TICKS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
    STAGES: tl.constexpr,
):
    """The sums of each tick, [ROWS, COLUMNS]; ``spikes`` points to the tile's first row."""
    TAPS: tl.constexpr = SIDE * SIDE
    DEPTH_TILES: tl.constexpr = (CHANNELS + DEPTH - 1) // DEPTH
    square = (first % (HEIGHT * WIDTH)).to(tl.int32) + row
    y, x = square // WIDTH % HEIGHT, square % WIDTH
    tick_stride = num_rows.to(tl.int64) * CHANNELS
    sums = ()
    for _ in tl.static_range(TICKS):
        sums += (tl.zeros((ROWS, COLUMNS), tl.int32),)
    for step in tl.range(0, TAPS * DEPTH_TILES, num_stages=STAGES):
        tap = step // DEPTH_TILES
        channel = step % DEPTH_TILES * DEPTH + tl.arange(0, DEPTH)
        down, right = tap // SIDE - SIDE // 2, tap % SIDE - SIDE // 2
        on_board = (y + down >= 0) & (y + down < HEIGHT) & (x + right >= 0) & (x + right < WIDTH)
        seen = (live & on_board)[:, None]
        known = used[None, :]
        if CHANNELS % DEPTH != 0:
            seen = seen & (channel < CHANNELS)[None, :]
            known = known & (channel < CHANNELS)[:, None]
        weights = tl.load(
            weight + column[None, :] * (TAPS * CHANNELS) + (tap * CHANNELS + channel)[:, None],
            mask=known, other=0,
        )
        source = (row + down * WIDTH + right)[:, None] * CHANNELS + channel[None, :]
        larger = ()
        for tick in tl.static_range(TICKS):
            fired = tl.load(spikes + tick * tick_stride + source, mask=seen, other=0)
            larger += (tl.dot(fired, weights, sums[tick], out_dtype=tl.int32),)
        sums = larger
    return sums


@triton.jit
def levels_reached(current, THRESHOLD: tl.constexpr, LEVELS: tl.constexpr):
    """How many thresholds (k - 1/2) theta each current reaches; each is rounded to float32."""
    threshold = tl.full((), THRESHOLD, tl.float32)
    if LEVELS <= 8:
        reached = tl.zeros_like(current)
        for level in tl.static_range(LEVELS):
            reached += tl.where(current >= threshold * (level + 0.5), 1.0, 0.0)
    else:
        # So many comparisons would spill registers. Rounding is off by one level at most.
        guess = tl.floor(current * (1.0 / THRESHOLD) + 0.5)
        guess = tl.minimum(tl.where(guess > 0, guess, 0.0), 1.0 * LEVELS)  # not a number: 0
        is_more = (guess < LEVELS) & (current >= threshold * (guess + 0.5))
        is_less = (guess > 0) & (current < threshold * (guess - 0.5))
        reached = tl.where(is_more, guess + 1.0, tl.where(is_less, guess - 1.0, guess))
    return reached


@triton.jit
def _rounded(numbers):
    """Float32 numbers as bfloat16 will hold them."""
    return numbers.to(tl.bfloat16).to(tl.float32)
