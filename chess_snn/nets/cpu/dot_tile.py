"""One tile of a layer of integer neurons in vector registers, by the processor's dot products.

LLVM does not turn loops into these instructions, so :func:`fire_tile`, for kernels of
:mod:`chess_snn.jit`, emits them itself. The sums of a tile, 4 squares by some vectors of outputs,
become spikes at once, and currents are written only where a shortcut carries them.

- VNNI, of AVX-512 or of AVX, and ARM's ``sdot`` multiply four inputs of a square with the weights
  of each output of a vector and add them to their sums, in one instruction. All sums stay in
  registers.
- AVX2 adds products by twos in 16 bits. Spikes are few, so many such sums fit
  (:func:`most_products`) before they are added up in 32 bits, and that too is exact. Those of 16
  bits stay in registers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from llvmlite import binding, ir
from numba import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

TILE_SQUARES: Final = 4
"""Squares of one row of the board: with so many sums, no product waits for the one before."""
INPUTS_OF_PRODUCT: Final = 4
"""Multiplied and added in one lane."""


@dataclass(frozen=True, slots=True)
class DotProduct:
    """The instruction of a processor, and the tile that its registers hold."""

    feature: str
    """LLVM's name of the processor feature."""
    lanes: int
    """Outputs of a vector, a sum of 32 bits each."""
    vectors: int
    """Vectors of outputs in a tile."""
    instruction: str
    """Name of LLVM's intrinsic."""
    takes_bytes: bool = True
    """Whether the intrinsic takes vectors of bytes; else of 32 bits."""
    sums_pairs: bool = False
    """Whether it only adds two products, in 16 bits."""

    @property
    def tile_outputs(self) -> int:
        """Outputs of a tile."""
        return self.lanes * self.vectors


VNNI: Final = DotProduct("avx512vnni", 16, 2, "llvm.x86.avx512.vpdpbusd.512", takes_bytes=False)
AVX_VNNI: Final = DotProduct("avxvnni", 8, 2, "llvm.x86.avx512.vpdpbusd.256", takes_bytes=False)
AVX2: Final = DotProduct("avx2", 8, 2, "llvm.x86.avx2.pmadd.ub.sw", sums_pairs=True)
SDOT: Final = DotProduct("dotprod", 4, 4, "llvm.aarch64.neon.sdot.v4i32.v16i8")
DOT_PRODUCTS: Final = VNNI, AVX_VNNI, AVX2, SDOT
"""All that are supported; of those that a processor has, the first is the best."""


def find_dot_product(triple: str, processor: str, features: str) -> DotProduct | None:
    """The best one of a processor that LLVM compiles for, by the names that LLVM has for it.

    ARM's is looked for in compiled code: LLVM knows it of processors by their name, and does not
    list it among the features of this machine.
    """
    has = {feature.removeprefix("+") for feature in features.split(",")}
    if triple.startswith(("aarch64", "arm64")):
        target = binding.Target.from_triple(triple)
        machine = target.create_target_machine(cpu=processor, features=features, opt=2)
        if "sdot" in machine.emit_assembly(binding.parse_assembly(_SUM_OF_PRODUCTS)):
            has.add(SDOT.feature)
    return next((each for each in DOT_PRODUCTS if each.feature in has), None)


_SUM_OF_PRODUCTS: Final = """
define i32 @sum(<16 x i8> %a, <16 x i8> %b) {
  %long_a = sext <16 x i8> %a to <16 x i32>
  %long_b = sext <16 x i8> %b to <16 x i32>
  %products = mul <16 x i32> %long_a, %long_b
  %sum = call i32 @llvm.vector.reduce.add.v16i32(<16 x i32> %products)
  ret i32 %sum
}
declare i32 @llvm.vector.reduce.add.v16i32(<16 x i32>)
"""

DOT_PRODUCT: Final = find_dot_product(*cpu_target.target_context.codegen().magic_tuple())
"""This processor's; None where no tile can be compiled."""
_OF_TILE: Final = DOT_PRODUCT or AVX2
TILE_OUTPUTS: Final = _OF_TILE.tile_outputs

_BYTE, _SHORT, _INT, _LONG = (ir.IntType(bits) for bits in (8, 16, 32, 64))


def most_products(most_spikes: int, product: DotProduct = _OF_TILE) -> int:
    """How many products of up to ``most_spikes`` and 8-bit weights one lane adds up exactly."""
    largest, inputs = (2**15 - 1, 2) if product.sums_pairs else (2**31 - 1, INPUTS_OF_PRODUCT)
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
        argument = dict(zip(ARGUMENTS, values, strict=True))
        for name, kind in zip(ARGUMENTS, signature.args, strict=True):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, argument[name])
                argument[name] = builder.bitcast(array.data, _BYTE.as_pointer())
        Tile(builder, argument, _OF_TILE).write(carries=isinstance(currents, types.Array))
        return context.get_dummy_value()

    return signature, codegen


ARGUMENTS: Final = (
    "inputs", "first_input", "channels_in", "row_bytes", "kernel_rows", "parts", "products",
    "weights", "first_weight", "scales", "biases", "output", "currents", "first_current", "spikes",
    "first_spike", "channels_out", "per_spike", "most_spikes",
)


class Tile:
    """Writes one tile at a builder's place."""

    def __init__(self, builder: Any, argument: dict[str, Any], product: DotProduct) -> None:
        """``argument`` has LLVM's values by :data:`ARGUMENTS`; arrays are pointers to bytes."""
        self._builder, self._argument, self._product = builder, argument, product
        self._vector_bytes = INPUTS_OF_PRODUCT * product.lanes
        self._ints, self._floats, self._bytes = (
            ir.VectorType(kind, product.lanes) for kind in (_INT, ir.FloatType(), _BYTE)
        )
        self._inputs = ir.VectorType(_BYTE, self._vector_bytes)
        self._pairs = ir.VectorType(_SHORT, 2 * product.lanes)

    def write(self, carries: bool) -> None:
        """Make currents and spikes of the sums, and store them."""
        builder, argument, sums = self._builder, self._argument, self._sums()
        floats = self._floats
        per_spike, most_spikes = (
            self._broadcast(argument[name], floats) for name in ("per_spike", "most_spikes")
        )
        for v in range(self._product.vectors):
            first = _long(self._product.lanes * v)
            output = builder.add(argument["output"], first)
            scale, bias = (
                self._load(argument[name], self._float_bytes(output), floats)
                for name in ("scales", "biases")
            )
            for square in range(TILE_SQUARES):
                offset = builder.add(builder.mul(argument["channels_out"], _long(square)), first)
                total = builder.sitofp(sums[square * self._product.vectors + v], floats)
                current = self._rounded(builder.fadd(builder.fmul(total, scale), bias))
                if carries:
                    place = self._float_bytes(builder.add(argument["first_current"], offset))
                    shortcut = self._load(argument["currents"], place, floats)
                    current = self._rounded(builder.fadd(shortcut, current))
                    self._store(current, argument["currents"], place)
                count = builder.fadd(builder.fmul(current, per_spike), ir.Constant(floats, 0.5))
                for sign, bound in ((">", ir.Constant(floats, 0.0)), ("<", most_spikes)):
                    count = builder.select(builder.fcmp_ordered(sign, count, bound), count, bound)
                self._store(
                    builder.trunc(builder.fptosi(count, self._ints), self._bytes),
                    argument["spikes"], builder.add(argument["first_spike"], offset),
                )

    def _sums(self) -> list[Any]:
        """The sums of the tile, of each square those of its outputs."""
        builder, argument, vectors = self._builder, self._argument, self._product.vectors

        def add_products(state: list[Any]) -> list[Any]:
            inputs, weights, *sums = state
            rows = [
                self._load(weights, _long(self._vector_bytes * v), self._ints)
                for v in range(vectors)
            ]
            for square in range(TILE_SQUARES):
                offset = builder.mul(argument["channels_in"], _long(square))
                four = self._broadcast(self._load(inputs, offset, _INT), self._ints)
                for v in range(vectors):
                    k = square * vectors + v
                    sums[k] = self._add_product(sums[k], four, rows[v])
            return [
                builder.gep(inputs, [_long(INPUTS_OF_PRODUCT)]),
                builder.gep(weights, [_long(vectors * self._vector_bytes)]), *sums,
            ]

        def add_part(state: list[Any]) -> list[Any]:
            inputs, weights, *sums = state
            sums_pairs = self._product.sums_pairs
            begun = [ir.Constant(self._pairs, 0)] * len(sums) if sums_pairs else sums
            inputs, weights, *added = _repeat(
                builder, argument["products"], [inputs, weights, *begun], add_products
            )
            if sums_pairs:
                added = [self._add_pairs(*both) for both in zip(sums, added, strict=True)]
            return [inputs, weights, *added]

        def add_row(state: list[Any]) -> list[Any]:
            _, *others = _repeat(builder, argument["parts"], state, add_part)
            return [builder.gep(state[0], [argument["row_bytes"]]), *others]

        first = [
            builder.gep(argument["inputs"], [argument["first_input"]]),
            builder.gep(argument["weights"], [argument["first_weight"]]),
            *[ir.Constant(self._ints, 0)] * (TILE_SQUARES * vectors),
        ]
        return _repeat(builder, argument["kernel_rows"], first, add_row)[2:]

    def _add_product(self, sums: Any, inputs: Any, weights: Any) -> Any:
        """Add a product of four inputs to ``sums``, one of a lane; with AVX2 one of each half."""
        instruction = self._product.instruction
        inputs_and_weights = [inputs, weights]
        if self._product.takes_bytes:
            inputs_and_weights = [self._builder.bitcast(v, self._inputs) for v in (inputs, weights)]
        if self._product.sums_pairs:
            pairs = self._call(instruction, self._pairs, inputs_and_weights)
            return self._builder.add(sums, pairs)
        return self._call(instruction, self._ints, [sums, *inputs_and_weights])

    def _add_pairs(self, sums: Any, pairs: Any) -> Any:
        ones = ir.Constant(self._pairs, 1)
        added = self._call("llvm.x86.avx2.pmadd.wd", self._ints, [pairs, ones])
        return self._builder.add(sums, added)

    def _call(self, instruction: str, result: Any, values: list[Any]) -> Any:
        module = self._builder.module
        kind = ir.FunctionType(result, [value.type for value in values])
        known = module.globals.get(instruction)
        return self._builder.call(known or ir.Function(module, kind, instruction), values)

    def _rounded(self, floats: Any) -> Any:
        """Round to bfloat16, from halfway to the even number, and return float32."""
        builder, ints = self._builder, self._ints
        bits = builder.bitcast(floats, ints)
        is_odd = builder.and_(builder.lshr(bits, ir.Constant(ints, 16)), ir.Constant(ints, 1))
        bits = builder.add(builder.add(bits, is_odd), ir.Constant(ints, 0x7FFF))
        return builder.bitcast(builder.and_(bits, ir.Constant(ints, -0x10000)), self._floats)

    def _broadcast(self, number: Any, kind: Any) -> Any:
        undefined = ir.Constant(kind, ir.Undefined)
        alone = self._builder.insert_element(undefined, number, ir.Constant(_INT, 0))
        return self._builder.shuffle_vector(alone, undefined, ir.Constant(self._ints, 0))

    def _load(self, memory: Any, offset: Any, kind: Any) -> Any:
        place = self._builder.bitcast(self._builder.gep(memory, [offset]), kind.as_pointer())
        return self._builder.load(place, align=1)

    def _store(self, value: Any, memory: Any, offset: Any) -> None:
        place = self._builder.gep(memory, [offset])
        self._builder.store(
            value, self._builder.bitcast(place, value.type.as_pointer()), align=1
        )

    def _float_bytes(self, number: Any) -> Any:
        return self._builder.mul(number, _long(4))


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


def _long(number: int) -> Any:
    return ir.Constant(_LONG, number)
