"""Writes vector instructions in LLVM's language, where LLVM does not turn loops into them.

For intrinsics that kernels of :mod:`chess_snn.jit` call: arrays are pointers to bytes here, and
places in them are bytes too.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

BYTE, SHORT, INT, LONG = (ir.IntType(bits) for bits in (8, 16, 32, 64))
FLOAT = ir.FloatType()

FEATURES: Final = frozenset(cpu_target.target_context.codegen().magic_tuple()[2].split(","))
"""LLVM's names of what this processor has, each behind a plus."""
HAS_BFLOAT: Final = "+avx512bf16" in FEATURES
"""Whether it rounds to bfloat16 and multiplies pairs of them."""


class _BFloat(ir.Type):  # type: ignore[misc]
    """LLVM's type of bfloat16, which llvmlite lacks."""

    def _to_string(self) -> str:
        return "bfloat"

    def as_pointer(self, addrspace: int = 0) -> Any:
        return ir.PointerType(self, addrspace)


BFLOAT = _BFloat()


Named = dict[str, Any]
"""LLVM's values, or numba's types, of arguments by their names."""


def make_intrinsic(
    arrays: tuple[str, ...], numbers: tuple[str, ...], places: tuple[str, ...],
    write: Callable[[Any, Named, Named], None],
) -> Any:
    """Make an intrinsic of three tuples: arrays, float32, and int64.

    ``write`` is called with a builder, values by these names, in which arrays are pointers to
    bytes, and the types of the arrays.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def run(_typing: Any, arrays_kind: Any, numbers_kind: Any, places_kind: Any) -> Any:
        kinds = dict(zip(arrays, arrays_kind, strict=True))
        signature = types.void(
            arrays_kind, numbers_kind, types.UniTuple(types.int64, len(places))
        )

        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            found: Named = {}
            groups = zip((arrays, numbers, places), signature.args, values, strict=True)
            for names, group, packed in groups:
                unpacked = cgutils.unpack_tuple(builder, packed, len(names))
                for name, kind, value in zip(names, group, unpacked, strict=True):
                    found[name] = _pointer(context, builder, kind, value)
            write(builder, found, kinds)
            return context.get_dummy_value()

        return signature, codegen

    return run


class VectorCode:
    """Writes instructions at a builder's place."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def load(self, memory: Any, offset: Any, kind: Any) -> Any:
        """Load a value of ``kind`` from anywhere."""
        place = self._builder.bitcast(self._builder.gep(memory, [offset]), kind.as_pointer())
        return self._builder.load(place, align=1)

    def store(self, value: Any, memory: Any, offset: Any) -> None:
        """Store a value anywhere."""
        place = self._builder.gep(memory, [offset])
        self._builder.store(
            value, self._builder.bitcast(place, value.type.as_pointer()), align=1
        )

    def broadcast(self, number: Any, kind: Any) -> Any:
        """A vector of ``kind`` that has ``number`` in each lane."""
        undefined = ir.Constant(kind, ir.Undefined)
        alone = self._builder.insert_element(undefined, number, ir.Constant(INT, 0))
        lanes = ir.Constant(ir.VectorType(INT, kind.count), 0)
        return self._builder.shuffle_vector(alone, undefined, lanes)

    def call(self, instruction: str, result: Any, values: Sequence[Any]) -> Any:
        """The result of an instruction, by the name that LLVM has for it."""
        module = self._builder.module
        kind = ir.FunctionType(result, [value.type for value in values])
        known = module.globals.get(instruction)
        return self._builder.call(known or ir.Function(module, kind, instruction), values)

    def rounded(self, floats: Any) -> Any:
        """Round to bfloat16, from halfway to the even number, and return float32."""
        builder, ints = self._builder, ir.VectorType(INT, floats.type.count)
        bits = builder.bitcast(floats, ints)
        is_odd = builder.and_(builder.lshr(bits, ir.Constant(ints, 16)), ir.Constant(ints, 1))
        bits = builder.add(builder.add(bits, is_odd), ir.Constant(ints, 0x7FFF))
        return builder.bitcast(builder.and_(bits, ir.Constant(ints, -0x10000)), floats.type)

    def narrowed(self, floats: Any) -> Any:
        """The bits of bfloat16, rounded."""
        builder, lanes = self._builder, floats.type.count
        shorts = ir.VectorType(SHORT, lanes)
        if HAS_BFLOAT:
            return builder.bitcast(builder.fptrunc(floats, ir.VectorType(BFLOAT, lanes)), shorts)
        ints = ir.VectorType(INT, lanes)
        bits = builder.bitcast(self.rounded(floats), ints)
        return builder.trunc(builder.lshr(bits, ir.Constant(ints, 16)), shorts)

    def widened(self, shorts: Any) -> Any:
        """float32 of the bits of bfloat16."""
        builder, lanes = self._builder, shorts.type.count
        ints = ir.VectorType(INT, lanes)
        bits = builder.shl(builder.zext(shorts, ints), ir.Constant(ints, 16))
        return builder.bitcast(bits, ir.VectorType(FLOAT, lanes))

    def times(self, number: int, step: Any) -> Any:
        """The product of a constant and an integer."""
        return self._builder.mul(long(number), step)


def repeat(
    builder: Any, times: Any, state: list[Any], step: Callable[[list[Any]], list[Any]]
) -> list[Any]:
    """The state after ``times`` steps, at least one."""
    before = builder.block
    loop, behind = (builder.append_basic_block(name) for name in ("loop", "behind"))
    builder.branch(loop)
    builder.position_at_end(loop)
    begun = [long(0), *state]
    phis = [builder.phi(value.type) for value in begun]
    for phi, value in zip(phis, begun, strict=True):
        phi.add_incoming(value, before)
    number = builder.add(phis[0], long(1))
    after = step(phis[1:])
    for phi, value in zip(phis, [number, *after], strict=True):
        phi.add_incoming(value, builder.block)
    builder.cbranch(builder.icmp_signed("<", number, times), loop, behind)
    builder.position_at_end(behind)
    return after


def long(number: int) -> Any:
    """A constant integer of 64 bits."""
    return ir.Constant(LONG, number)


def _pointer(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """An argument of an intrinsic, by its type, where arrays are pointers to bytes."""
    if not isinstance(kind, types.Array):
        return value
    array = context.make_array(kind)(context, builder, value)
    return builder.bitcast(array.data, BYTE.as_pointer())
