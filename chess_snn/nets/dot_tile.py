"""One tile of a layer of integer neurons in vector registers, by the processor's dot products.

LLVM does not turn loops into these instructions, so :func:`fire_tile`, for kernels of
:mod:`chess_snn.jit`, emits them itself. The sums of a tile, 4 squares by two vectors of outputs,
become spikes at once, and currents are written only where a shortcut carries them.

- AVX-512 VNNI multiplies four inputs of a square with the weights of 16 outputs and adds them to
  their sums, in one instruction. All sums stay in registers.
- AVX2 takes 8 outputs and adds products by twos in 16 bits. Spikes are few, so many such sums fit
  (:func:`most_products`) before they are added up in 32 bits, and that too is exact. Those of 16
  bits stay in registers.
"""

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

TILE_SQUARES: Final = 4
"""Of one row of the board: with so many sums, no product waits for the one before."""
INPUTS_OF_PRODUCT: Final = 4
"""Multiplied and added in one lane."""


def _has(feature: str) -> bool:
    """Whether numba compiles for a processor that has the instructions."""
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return f"+{feature}" in features.split(",")


HAS_VNNI: Final = _has("avx512vnni")
HAS_DOT_PRODUCTS: Final = HAS_VNNI or _has("avx2")

LANES: Final = 16 if HAS_VNNI else 8
_VECTORS: Final = 2
TILE_OUTPUTS: Final = _VECTORS * LANES
_VECTOR_BYTES: Final = INPUTS_OF_PRODUCT * LANES

_BYTE, _SHORT, _INT, _LONG = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_INTS = ir.VectorType(_INT, LANES)
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_BYTES = ir.VectorType(_BYTE, LANES)
_INPUTS = ir.VectorType(_BYTE, _VECTOR_BYTES)
_PAIRS = ir.VectorType(_SHORT, 2 * LANES)


def most_products(most_spikes: int) -> int:
    """How many products of up to ``most_spikes`` and 8-bit weights one lane adds up exactly."""
    largest, inputs = (2**31 - 1, INPUTS_OF_PRODUCT) if HAS_VNNI else (2**15 - 1, 2)
    return largest // (inputs * 127 * most_spikes)


@intrinsic  # type: ignore[untyped-decorator]
def fire_tile(
    _typing: Any, inputs: Any, first_input: Any, channels_in: Any, row_bytes: Any,
    kernel_rows: Any, parts: Any, products: Any, weights: Any, first_weight: Any, scales: Any,
    biases: Any, output: Any, currents: Any, first_current: Any, spikes: Any, first_spike: Any,
    channels_out: Any, per_spike: Any, most_spikes: Any,
) -> Any:
    """Convolve a tile and let its neurons fire.

    The sums are exact. A sum times its scale plus its bias is rounded to bfloat16, as is its total
    with a shortcut. A neuron fires the whole part of ``current * per_spike + 1/2``, from 0 to
    ``most_spikes``.

    Arrays are contiguous, and ``first_...`` are places in them.

    Args:
        inputs: uint8, squares by channels.
        first_input: of the window of the tile's first square; the next squares' follow.
        channels_in: of a square of the inputs, a multiple of ``INPUTS_OF_PRODUCT``.
        row_bytes: from one row of the window to the next, as inputs.
        kernel_rows: of the window.
        parts: of a row of the window.
        products: of a part, for each output; at most :func:`most_products`.
        weights: int8[kernel_rows, parts, products, outputs, inputs].
        first_weight: of the tile.
        scales: float32, of a step of the weights of an output.
        biases: float32, of an output.
        output: the tile's first, in ``scales`` and ``biases``.
        currents: float32, squares by channels: those of the shortcut, to which the tile's own are
            added; None for a layer without.
        first_current: of the tile.
        spikes: uint8, squares by channels, filled.
        first_spike: of the tile.
        channels_out: of a square of ``currents`` and ``spikes``.
        per_spike: float32.
        most_spikes: float32.
    """
    integer = types.int64
    signature = types.void(
        inputs, *[integer] * 6, weights, integer, scales, biases, integer, currents, integer,
        spikes, integer, integer, types.float32, types.float32,
    )

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        argument = dict(zip(_ARGUMENTS, values, strict=True))
        for name, kind in zip(_ARGUMENTS, signature.args, strict=True):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, argument[name])
                argument[name] = builder.bitcast(array.data, _BYTE.as_pointer())
        sums = _sums(builder, argument)
        _finish(builder, argument, sums, carries=isinstance(currents, types.Array))
        return context.get_dummy_value()

    return signature, codegen


_ARGUMENTS: Final = (
    "inputs", "first_input", "channels_in", "row_bytes", "kernel_rows", "parts", "products",
    "weights", "first_weight", "scales", "biases", "output", "currents", "first_current", "spikes",
    "first_spike", "channels_out", "per_spike", "most_spikes",
)


def _sums(builder: Any, argument: dict[str, Any]) -> list[Any]:
    """The sums of the tile, of each square those of its outputs."""

    def add_products(state: list[Any]) -> list[Any]:
        inputs, weights, *sums = state
        rows = [_load(builder, weights, _long(_VECTOR_BYTES * v), _INTS) for v in range(_VECTORS)]
        for square in range(TILE_SQUARES):
            offset = builder.mul(argument["channels_in"], _long(square))
            four = _broadcast(builder, _load(builder, inputs, offset, _INT), _INTS)
            for v in range(_VECTORS):
                k = square * _VECTORS + v
                sums[k] = _add_product(builder, sums[k], four, rows[v])
        return [
            builder.gep(inputs, [_long(INPUTS_OF_PRODUCT)]),
            builder.gep(weights, [_long(_VECTORS * _VECTOR_BYTES)]), *sums,
        ]

    def add_part(state: list[Any]) -> list[Any]:
        inputs, weights, *sums = state
        begun = sums if HAS_VNNI else [ir.Constant(_PAIRS, 0)] * len(sums)
        inputs, weights, *added = _repeat(
            builder, argument["products"], [inputs, weights, *begun], add_products
        )
        if not HAS_VNNI:
            added = [_add_pairs(builder, *both) for both in zip(sums, added, strict=True)]
        return [inputs, weights, *added]

    def add_row(state: list[Any]) -> list[Any]:
        _, *others = _repeat(builder, argument["parts"], state, add_part)
        return [builder.gep(state[0], [argument["row_bytes"]]), *others]

    first = [
        builder.gep(argument["inputs"], [argument["first_input"]]),
        builder.gep(argument["weights"], [argument["first_weight"]]),
        *[ir.Constant(_INTS, 0)] * (TILE_SQUARES * _VECTORS),
    ]
    return _repeat(builder, argument["kernel_rows"], first, add_row)[2:]


def _add_product(builder: Any, sums: Any, inputs: Any, weights: Any) -> Any:
    """Add a product of four inputs to ``sums``, one of a lane; with AVX2 one of each half lane."""
    if HAS_VNNI:
        return _call(builder, "llvm.x86.avx512.vpdpbusd.512", _INTS, [sums, inputs, weights])
    both = [builder.bitcast(vector, _INPUTS) for vector in (inputs, weights)]
    return builder.add(sums, _call(builder, "llvm.x86.avx2.pmadd.ub.sw", _PAIRS, both))


def _add_pairs(builder: Any, sums: Any, pairs: Any) -> Any:
    ones = ir.Constant(_PAIRS, 1)
    return builder.add(sums, _call(builder, "llvm.x86.avx2.pmadd.wd", _INTS, [pairs, ones]))


def _call(builder: Any, instruction: str, result: Any, values: list[Any]) -> Any:
    kind = ir.FunctionType(result, [value.type for value in values])
    known = builder.module.globals.get(instruction)
    return builder.call(known or ir.Function(builder.module, kind, instruction), values)


def _finish(builder: Any, argument: dict[str, Any], sums: list[Any], carries: bool) -> None:
    """Make currents and spikes of the sums, and store them."""
    per_spike, most_spikes = (
        _broadcast(builder, argument[name], _FLOATS) for name in ("per_spike", "most_spikes")
    )
    for v in range(_VECTORS):
        output = builder.add(argument["output"], _long(LANES * v))
        scale, bias = (
            _load(builder, argument[name], _float_bytes(builder, output), _FLOATS)
            for name in ("scales", "biases")
        )
        for square in range(TILE_SQUARES):
            offset = builder.add(
                builder.mul(argument["channels_out"], _long(square)), _long(LANES * v)
            )
            total = builder.sitofp(sums[square * _VECTORS + v], _FLOATS)
            current = _rounded(builder, builder.fadd(builder.fmul(total, scale), bias))
            if carries:
                place = _float_bytes(builder, builder.add(argument["first_current"], offset))
                shortcut = _load(builder, argument["currents"], place, _FLOATS)
                current = _rounded(builder, builder.fadd(shortcut, current))
                _store(builder, current, argument["currents"], place)
            count = builder.fadd(builder.fmul(current, per_spike), ir.Constant(_FLOATS, 0.5))
            for sign, bound in ((">", ir.Constant(_FLOATS, 0.0)), ("<", most_spikes)):
                count = builder.select(builder.fcmp_ordered(sign, count, bound), count, bound)
            _store(
                builder, builder.trunc(builder.fptosi(count, _INTS), _BYTES), argument["spikes"],
                builder.add(argument["first_spike"], offset),
            )


def _rounded(builder: Any, floats: Any) -> Any:
    """To bfloat16, of numbers halfway to the even one, as float32."""
    bits = builder.bitcast(floats, _INTS)
    is_odd = builder.and_(builder.lshr(bits, ir.Constant(_INTS, 16)), ir.Constant(_INTS, 1))
    bits = builder.add(builder.add(bits, is_odd), ir.Constant(_INTS, 0x7FFF))
    return builder.bitcast(builder.and_(bits, ir.Constant(_INTS, -0x10000)), _FLOATS)


def _repeat(
    builder: Any, times: Any, state: list[Any], step: Callable[[list[Any]], list[Any]]
) -> list[Any]:
    """The state after ``times`` steps, at least one."""
    before = builder.block
    loop, behind = (builder.append_basic_block(name) for name in ("loop", "behind"))
    builder.branch(loop)
    builder.position_at_end(loop)
    begun = [_long(0), *state]
    phis = [builder.phi(value.type) for value in begun]
    for phi, value in zip(phis, begun, strict=True):
        phi.add_incoming(value, before)
    number = builder.add(phis[0], _long(1))
    after = step(phis[1:])
    for phi, value in zip(phis, [number, *after], strict=True):
        phi.add_incoming(value, builder.block)
    builder.cbranch(builder.icmp_signed("<", number, times), loop, behind)
    builder.position_at_end(behind)
    return after


def _broadcast(builder: Any, number: Any, kind: Any) -> Any:
    undefined = ir.Constant(kind, ir.Undefined)
    alone = builder.insert_element(undefined, number, ir.Constant(_INT, 0))
    return builder.shuffle_vector(alone, undefined, ir.Constant(_INTS, 0))


def _load(builder: Any, memory: Any, offset: Any, kind: Any) -> Any:
    place = builder.bitcast(builder.gep(memory, [offset]), kind.as_pointer())
    return builder.load(place, align=1)


def _store(builder: Any, value: Any, memory: Any, offset: Any) -> None:
    place = builder.bitcast(builder.gep(memory, [offset]), value.type.as_pointer())
    builder.store(value, place, align=1)


def _float_bytes(builder: Any, number: Any) -> Any:
    return builder.mul(number, _long(4))


def _long(number: int) -> Any:
    return ir.Constant(_LONG, number)
