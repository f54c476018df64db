"""Parts of a 3x3 convolution by Winograd's method, in vector registers.

Tiles of 2x2 squares, F(2x2, 3x3) of Lavin and Gray, arXiv 1509.09308, section 4.1: with the
matrices B, G and A given there, and for a window d of 4x4 inputs, a kernel g and gradients e of 2x2
results::

    result = A' [(G g G') * (B' d B)] A        gradient of g = G' [(A e A') * (B' d B)] G

where * multiplies numbers of one position, which is 2.25 times fewer products than without. The
sums over channels, or over tiles for the gradient, are a product of matrices for each of the 16
positions. Spikes are whole numbers, so ``B' d B`` is exact in bfloat16.

The processor decides what numbers are: where it multiplies pairs of bfloat16, these, and pairs of
inputs, or of tiles, stand together as *units* of 4 bytes; else float32, of which each is a unit.

Kernels of :mod:`chess_snn.jit` call these intrinsics; places and distances in arrays are bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from llvmlite import ir

from chess_snn.nets.cpu.vector_code import (
    BFLOAT,
    FEATURES,
    FLOAT,
    HAS_BFLOAT,
    INT,
    SHORT,
    Named,
    VectorCode,
    long,
    make_intrinsic,
    repeat,
)

IN_PAIRS: Final = HAS_BFLOAT and "+amx-bf16" not in FEATURES
"""Whether numbers are bfloat16. With AMX, torch's convolutions in bfloat16 are faster."""
HAS_PRODUCTS: Final = IN_PAIRS or {"+avx2", "+fma"} <= FEATURES
"""Whether there are fast products of this processor."""
NUMBER: Final = np.uint16 if IN_PAIRS else np.float32
"""The type of numbers, in which bfloat16 has its bits."""
UNIT: Final = 2 if IN_PAIRS else 1
"""Numbers of a unit."""
NUMBER_BYTES: Final = 4 // UNIT

LANES: Final = 16
"""Numbers of a vector of float32: one register, or two of AVX2."""
PRODUCT_ROWS: Final = 8 if "+avx512f" in FEATURES else 4
PRODUCT_VECTORS: Final = 2 if IN_PAIRS else 1
"""Rows and vectors of a product of matrices whose sums stay in registers. Some processors with
AVX-512 take a vector as two of 256 bits."""
PRODUCT_COLUMNS: Final = PRODUCT_VECTORS * LANES
POSITIONS: Final = 16
"""Numbers of a transformed tile."""

_FLOATS, _INTS, _SHORTS = (ir.VectorType(kind, LANES) for kind in (FLOAT, INT, SHORT))
_UNITS = ir.VectorType(BFLOAT, 2 * LANES) if IN_PAIRS else _FLOATS
_INTERLEAVED = ir.Constant(
    ir.VectorType(INT, 2 * LANES),
    [ir.Constant(INT, k // 2 + LANES * (k % 2)) for k in range(2 * LANES)],
)

Vectors = list[Any]


def _inputs(builder: Any, d: Vectors) -> Vectors:
    """B' d."""
    return [
        builder.fsub(d[0], d[2]), builder.fadd(d[1], d[2]),
        builder.fsub(d[2], d[1]), builder.fsub(d[1], d[3]),
    ]


def _weights(builder: Any, g: Vectors) -> Vectors:
    """G g."""
    half = ir.Constant(_FLOATS, 0.5)
    outer, middle = builder.fmul(half, builder.fadd(g[0], g[2])), builder.fmul(half, g[1])
    return [g[0], builder.fadd(outer, middle), builder.fsub(outer, middle), g[2]]


def _results(builder: Any, m: Vectors) -> Vectors:
    """A' m."""
    return [
        builder.fadd(m[0], builder.fadd(m[1], m[2])),
        builder.fsub(builder.fsub(m[1], m[2]), m[3]),
    ]


def _gradients(builder: Any, e: Vectors) -> Vectors:
    """A e."""
    return [e[0], builder.fadd(e[0], e[1]), builder.fsub(e[0], e[1]), builder.fneg(e[1])]


def _weight_gradients(builder: Any, m: Vectors) -> Vectors:
    """G' m."""
    half = ir.Constant(_FLOATS, 0.5)
    total = builder.fmul(half, builder.fadd(m[1], m[2]))
    return [
        builder.fadd(m[0], total), builder.fmul(half, builder.fsub(m[1], m[2])),
        builder.fadd(total, m[3]),
    ]


@dataclass(frozen=True, slots=True)
class Transform:
    """A matrix that is multiplied with the columns and then with the rows of a tile."""

    columns: Callable[[Any, Vectors], Vectors]
    size: int
    """Rows and columns of a tile before."""
    from_float32: bool = not IN_PAIRS
    """Else from bfloat16."""
    to_float32: bool = not IN_PAIRS
    units: bool = False
    """Whether as many tiles are transformed as make units, in which their numbers are stored."""


class TransformCode(VectorCode):
    """Writes a transformation of a tile, one vector of channels wide."""

    def write(self, transform: Transform, values: Named) -> None:
        """``values`` are those of the intrinsic."""
        (source, target, first, row, column, next_tile, target_first, target_row,
         target_column) = values.values()
        builder = self._builder
        source, target = builder.gep(source, [first]), builder.gep(target, [target_first])
        results = []
        for number in range(UNIT if transform.units else 1):
            begin = builder.gep(source, [self.times(number, next_tile)])
            tile = [
                [
                    self._floats(begin, self._place(r, row, c, column), transform.from_float32)
                    for c in range(transform.size)
                ]
                for r in range(transform.size)
            ]
            results.append(self._transformed(transform, tile))
        for r, lines in enumerate(zip(*results, strict=True)):
            for c, numbers in enumerate(zip(*lines, strict=True)):
                place = self._place(r, target_row, c, target_column)
                self.store(self._stored(numbers, transform), target, place)

    def _place(self, row: int, row_bytes: Any, column: int, column_bytes: Any) -> Any:
        return self._builder.add(self.times(row, row_bytes), self.times(column, column_bytes))

    def _floats(self, memory: Any, place: Any, is_float32: bool) -> Any:
        if is_float32:
            return self.load(memory, place, _FLOATS)
        return self.widened(self.load(memory, place, _SHORTS))

    def _transformed(self, transform: Transform, tile: list[Vectors]) -> list[Vectors]:
        columns = [
            transform.columns(self._builder, list(column)) for column in zip(*tile, strict=True)
        ]
        return [
            transform.columns(self._builder, list(row)) for row in zip(*columns, strict=True)
        ]

    def _stored(self, numbers: tuple[Any, ...], transform: Transform) -> Any:
        if transform.to_float32:
            return numbers[0]
        rounded = [self.narrowed(number) for number in numbers]
        if not transform.units:
            return rounded[0]
        return self._builder.shuffle_vector(*rounded, _INTERLEAVED)


class ProductCode(VectorCode):
    """Writes a product of matrices, with its sums in registers."""

    def write(self, adds: bool, values: Named) -> None:
        """``values`` are those of the intrinsic; ``adds`` to the sums in memory."""
        (left, right, sums, left_first, left_row, left_step, right_first, right_step, sums_first,
         sums_row, steps) = values.values()
        builder = self._builder
        left, right, sums = (
            builder.gep(memory, [first])
            for memory, first in ((left, left_first), (right, right_first), (sums, sums_first))
        )
        vector_bytes = 4 * LANES
        places = [
            builder.add(self.times(row, sums_row), long(vector_bytes * v))
            for row in range(PRODUCT_ROWS) for v in range(PRODUCT_VECTORS)
        ]
        zero = ir.Constant(_FLOATS, 0.0)
        begun = [self.load(sums, place, _FLOATS) if adds else zero for place in places]

        def add_products(state: list[Any]) -> list[Any]:
            left, right, *totals = state
            columns = [
                self.load(right, long(vector_bytes * v), _UNITS) for v in range(PRODUCT_VECTORS)
            ]
            for row in range(PRODUCT_ROWS):
                unit = self.broadcast(self.load(left, self.times(row, left_row), INT), _INTS)
                unit = builder.bitcast(unit, _UNITS)
                for v, column in enumerate(columns):
                    k = row * PRODUCT_VECTORS + v
                    totals[k] = self._add_product(totals[k], unit, column)
            return [builder.gep(left, [left_step]), builder.gep(right, [right_step]), *totals]

        _, _, *totals = repeat(builder, steps, [left, right, *begun], add_products)
        for total, place in zip(totals, places, strict=True):
            self.store(total, sums, place)

    def _add_product(self, total: Any, unit: Any, column: Any) -> Any:
        if IN_PAIRS:
            instruction = "llvm.x86.avx512bf16.dpbf16ps.512"
            return self.call(instruction, _FLOATS, [total, unit, column])
        return self.call("llvm.fma.v16f32", _FLOATS, [unit, column, total])


def _transforming(transform: Transform) -> Any:
    """Make the intrinsic of a transform.

    Of the source it takes the place of a tile, and the bytes between rows, columns, and from one
    tile of a unit to the next; of the target the place, and the bytes between rows and columns of
    the transformed tile.
    """
    return make_intrinsic(
        ("source", "target"), (),
        ("first", "row", "column", "next_tile", "target_first", "target_row", "target_column"),
        lambda builder, values, _kinds: TransformCode(builder).write(transform, values),
    )


def _multiplying(adds: bool) -> Any:
    """Make the intrinsic of a product.

    Of the left matrix it takes the place, the bytes from row to row, and to the next unit; of the
    right one the place, and the bytes to the next unit; of the sums, float32, the place and the
    bytes from row to row; and the number of units.
    """
    return make_intrinsic(
        ("left", "right", "sums"), (),
        ("left_first", "left_row", "left_step", "right_first", "right_step", "sums_first",
         "sums_row", "steps"),
        lambda builder, values, _kinds: ProductCode(builder).write(adds, values),
    )


INPUTS: Final = Transform(_inputs, 4)
UNITS_OF_INPUTS: Final = Transform(_inputs, 4, units=True)
WEIGHTS: Final = Transform(_weights, 3, from_float32=True)
UNITS_OF_WEIGHTS: Final = Transform(_weights, 3, from_float32=True, units=True)
RESULTS: Final = Transform(_results, 4, from_float32=True)
UNITS_OF_GRADIENTS: Final = Transform(_gradients, 2, units=True)
WEIGHT_GRADIENTS: Final = Transform(
    _weight_gradients, 4, from_float32=True, to_float32=True
)

transform_inputs = _transforming(INPUTS)
transform_units_of_inputs = _transforming(UNITS_OF_INPUTS)
transform_weights = _transforming(WEIGHTS)
transform_units_of_weights = _transforming(UNITS_OF_WEIGHTS)
transform_results = _transforming(RESULTS)
transform_units_of_gradients = _transforming(UNITS_OF_GRADIENTS)
transform_weight_gradients = _transforming(WEIGHT_GRADIENTS)
multiply, multiply_and_add = _multiplying(adds=False), _multiplying(adds=True)
