"""One tile of a layer of integer neurons in vector registers, by the processor's dot products.

LLVM does not turn loops into these instructions, so :data:`fire_tile`, for kernels of
:mod:`chess_snn.jit`, emits them itself. The sums of a tile, 4 squares by some vectors of outputs,
become spikes at once, and currents are written only where a shortcut carries them.

- VNNI, of AVX-512 or of AVX, and ARM's ``sdot`` multiply four inputs of a square with the weights
  of each output of a vector and add them to their sums, in one instruction. All sums stay in
  registers.
- AVX2 adds products by twos in 16 bits. Spikes are few, so many such sums fit
  (:func:`most_products`) before they are added up in 32 bits, and that too is exact. Those of 16
  bits stay in registers.
"""

from dataclasses import dataclass
from typing import Any, Final

from llvmlite import binding, ir
from numba import types
from numba.core.registry import cpu_target

from chess_snn.nets.cpu.vector_code import (
    BYTE,
    FLOAT,
    INT,
    SHORT,
    Named,
    VectorCode,
    long,
    make_intrinsic,
    repeat,
)

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


def most_products(most_spikes: int, product: DotProduct = _OF_TILE) -> int:
    """How many products of up to ``most_spikes`` and 8-bit weights one lane adds up exactly."""
    largest, inputs = (2**15 - 1, 2) if product.sums_pairs else (2**31 - 1, INPUTS_OF_PRODUCT)
    return largest // (inputs * 127 * most_spikes)


ARRAYS: Final = "inputs", "weights", "scales", "biases", "currents", "spikes"
"""Arguments of :data:`fire_tile`, contiguous:

- inputs: uint8, squares by channels.
- weights: int8[kernel_rows, parts, products, outputs, inputs].
- scales: float32, of a step of the weights of an output.
- biases: float32, of an output.
- currents: float32, squares by channels: those of the shortcut, to which the tile's own are added;
  None for a layer without.
- spikes: uint8, squares by channels, filled.
"""
NUMBERS: Final = "per_spike", "most_spikes"
PLACES: Final = (
    "first_input", "channels_in", "row_bytes", "kernel_rows", "parts", "products", "first_weight",
    "output", "first_current", "first_spike", "channels_out",
)
"""Further arguments, of which ``first_...`` are the tile's places in arrays:

- first_input: of the window of the tile's first square; the next squares' follow.
- channels_in: of a square of the inputs, a multiple of ``INPUTS_OF_PRODUCT``.
- row_bytes: from one row of the window to the next, as inputs.
- kernel_rows, parts: of the window, and of a row of it.
- products: of a part, for each output; at most :func:`most_products`.
- output: the tile's first, in ``scales`` and ``biases``.
- channels_out: of a square of ``currents`` and ``spikes``.
"""


class Tile(VectorCode):
    """Writes one tile at a builder's place."""

    def __init__(self, builder: Any, argument: Named, product: DotProduct) -> None:
        """``argument`` has LLVM's values by :data:`ARRAYS`, :data:`NUMBERS` and :data:`PLACES`.

        Arrays are pointers to bytes.
        """
        super().__init__(builder)
        self._argument, self._product = argument, product
        self._vector_bytes = INPUTS_OF_PRODUCT * product.lanes
        self._ints, self._floats, self._bytes = (
            ir.VectorType(kind, product.lanes) for kind in (INT, FLOAT, BYTE)
        )
        self._inputs = ir.VectorType(BYTE, self._vector_bytes)
        self._pairs = ir.VectorType(SHORT, 2 * product.lanes)

    def write(self, carries: bool) -> None:
        """Make currents and spikes of the sums, and store them."""
        builder, argument, sums = self._builder, self._argument, self._sums()
        floats = self._floats
        per_spike, most_spikes = (
            self.broadcast(argument[name], floats) for name in ("per_spike", "most_spikes")
        )
        for v in range(self._product.vectors):
            first = long(self._product.lanes * v)
            output = builder.add(argument["output"], first)
            scale, bias = (
                self.load(argument[name], self._float_bytes(output), floats)
                for name in ("scales", "biases")
            )
            for square in range(TILE_SQUARES):
                offset = builder.add(builder.mul(argument["channels_out"], long(square)), first)
                total = builder.sitofp(sums[square * self._product.vectors + v], floats)
                current = self.rounded(builder.fadd(builder.fmul(total, scale), bias))
                if carries:
                    place = self._float_bytes(builder.add(argument["first_current"], offset))
                    shortcut = self.load(argument["currents"], place, floats)
                    current = self.rounded(builder.fadd(shortcut, current))
                    self.store(current, argument["currents"], place)
                count = builder.fadd(builder.fmul(current, per_spike), ir.Constant(floats, 0.5))
                for sign, bound in ((">", ir.Constant(floats, 0.0)), ("<", most_spikes)):
                    count = builder.select(builder.fcmp_ordered(sign, count, bound), count, bound)
                self.store(
                    builder.trunc(builder.fptosi(count, self._ints), self._bytes),
                    argument["spikes"], builder.add(argument["first_spike"], offset),
                )

    def _sums(self) -> list[Any]:
        """The sums of the tile, of each square those of its outputs."""
        builder, argument, vectors = self._builder, self._argument, self._product.vectors

        def add_products(state: list[Any]) -> list[Any]:
            inputs, weights, *sums = state
            rows = [
                self.load(weights, long(self._vector_bytes * v), self._ints)
                for v in range(vectors)
            ]
            for square in range(TILE_SQUARES):
                offset = builder.mul(argument["channels_in"], long(square))
                four = self.broadcast(self.load(inputs, offset, INT), self._ints)
                for v in range(vectors):
                    k = square * vectors + v
                    sums[k] = self._add_product(sums[k], four, rows[v])
            return [
                builder.gep(inputs, [long(INPUTS_OF_PRODUCT)]),
                builder.gep(weights, [long(vectors * self._vector_bytes)]), *sums,
            ]

        def add_part(state: list[Any]) -> list[Any]:
            inputs, weights, *sums = state
            sums_pairs = self._product.sums_pairs
            begun = [ir.Constant(self._pairs, 0)] * len(sums) if sums_pairs else sums
            inputs, weights, *added = repeat(
                builder, argument["products"], [inputs, weights, *begun], add_products
            )
            if sums_pairs:
                added = [self._add_pairs(*both) for both in zip(sums, added, strict=True)]
            return [inputs, weights, *added]

        def add_row(state: list[Any]) -> list[Any]:
            _, *others = repeat(builder, argument["parts"], state, add_part)
            return [builder.gep(state[0], [argument["row_bytes"]]), *others]

        first = [
            builder.gep(argument["inputs"], [argument["first_input"]]),
            builder.gep(argument["weights"], [argument["first_weight"]]),
            *[ir.Constant(self._ints, 0)] * (TILE_SQUARES * vectors),
        ]
        return repeat(builder, argument["kernel_rows"], first, add_row)[2:]

    def _add_product(self, sums: Any, inputs: Any, weights: Any) -> Any:
        """Add a product of four inputs to ``sums``, one of a lane; with AVX2 one of each half."""
        instruction = self._product.instruction
        inputs_and_weights = [inputs, weights]
        if self._product.takes_bytes:
            inputs_and_weights = [self._builder.bitcast(v, self._inputs) for v in (inputs, weights)]
        if self._product.sums_pairs:
            pairs = self.call(instruction, self._pairs, inputs_and_weights)
            return self._builder.add(sums, pairs)
        return self.call(instruction, self._ints, [sums, *inputs_and_weights])

    def _add_pairs(self, sums: Any, pairs: Any) -> Any:
        ones = ir.Constant(self._pairs, 1)
        added = self.call("llvm.x86.avx2.pmadd.wd", self._ints, [pairs, ones])
        return self._builder.add(sums, added)

    def _float_bytes(self, number: Any) -> Any:
        return self._builder.mul(number, long(4))


def _write_tile(builder: Any, argument: Named, kinds: Named) -> None:
    Tile(builder, argument, _OF_TILE).write(isinstance(kinds["currents"], types.Array))


fire_tile = make_intrinsic(ARRAYS, NUMBERS, PLACES, _write_tile)
"""Convolve a tile and let its neurons fire.

The sums are exact. A sum times its scale plus its bias is rounded to bfloat16, as is its total with
a shortcut. A neuron fires the whole part of ``current * per_spike + 1/2``, from 0 to
``most_spikes``.
"""
