"""Passes over the currents of a layer, a vector of channels in some rows at a time.

Intrinsics for the kernels of :mod:`chess_snn.nets.cpu.norm_neuron_kernels`. Arrays are [rows,
width], float32 or the bits of bfloat16, and all of one layout; an intrinsic takes ``LANES`` columns
of ``rows`` rows, from the place ``first`` on. What belongs to a channel is float32, and begins at
``column``. Numbers that are stored are used as rounded.
"""

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types

from chess_snn.nets.cpu.vector_code import (
    FLOAT,
    SHORT,
    Named,
    VectorCode,
    make_intrinsic,
    repeat,
)

LANES: Final = 16
"""Channels of a vector."""
_FLOATS, _SHORTS = ir.VectorType(FLOAT, LANES), ir.VectorType(SHORT, LANES)
_ZERO, _HALF = ir.Constant(_FLOATS, 0.0), ir.Constant(_FLOATS, 0.5)

State = list[Any]


class Pass(VectorCode):
    """Writes a pass."""

    def __init__(self, builder: Any, values: Named, kinds: Named) -> None:
        super().__init__(builder)
        self.builder, self.values, self._kinds = builder, values, kinds

    def has(self, name: str) -> bool:
        """Whether the array is not None."""
        return isinstance(self._kinds[name], types.Array)

    def over_rows(self, begun: State, step: Callable[[Any, State], State]) -> State:
        """The state after the ``step`` of each row, which is given the row's place."""

        def next_row(state: State) -> State:
            after = step(state[0], state[1:])
            return [self.builder.add(state[0], self.values["width"]), *after]

        return repeat(
            self.builder, self.values["rows"], [self.values["first"], *begun], next_row
        )[1:]

    def numbers(self, name: str, place: Any) -> Any:
        """float32 of an array."""
        if self._kinds[name].dtype == types.float32:
            return self.load(self.values[name], self.times(4, place), _FLOATS)
        return self.widened(self.load(self.values[name], self.times(2, place), _SHORTS))

    def put(self, name: str, place: Any, numbers: Any) -> Any:
        """Store numbers in an array, and return them as rounded."""
        if self._kinds[name].dtype == types.float32:
            self.store(numbers, self.values[name], self.times(4, place))
            return numbers
        bits = self.narrowed(numbers)
        self.store(bits, self.values[name], self.times(2, place))
        return self.widened(bits)

    def rounded_as(self, name: str, numbers: Any) -> Any:
        """Numbers as an array would keep them."""
        if self._kinds[name].dtype == types.float32:
            return numbers
        return self.widened(self.narrowed(numbers))

    def of_channels(self, name: str) -> Any:
        """Numbers of the channels."""
        return self.load(self.values[name], self.times(4, self.values["column"]), _FLOATS)

    def add_to_channels(self, name: str, numbers: Any) -> None:
        """Add to numbers of the channels."""
        total = self.builder.fadd(self.of_channels(name), numbers)
        self.store(total, self.values[name], self.times(4, self.values["column"]))

    def everywhere(self, name: str) -> Any:
        """A number in all lanes."""
        return self.broadcast(self.values[name], _FLOATS)

    def fused(self, a: Any, b: Any, c: Any) -> Any:
        """``a * b + c``."""
        return self.call("llvm.fmuladd.v16f32", _FLOATS, [a, b, c])

    def at_least(self, number: Any, bound: Any) -> Any:
        """The larger one; the bound where there is no number."""
        return self.builder.select(
            self.builder.fcmp_ordered(">", number, bound), number, bound
        )


def _intrinsic(
    arrays: tuple[str, ...], numbers: tuple[str, ...], write: Callable[[Pass], None]
) -> Any:
    """Make the intrinsic of a pass."""
    return make_intrinsic(
        arrays, numbers, ("first", "column", "rows", "width"),
        lambda builder, values, kinds: write(Pass(builder, values, kinds)),
    )


def _add_moments(code: Pass) -> None:
    begin, builder = code.of_channels("begin"), code.builder

    def add_row(place: Any, state: State) -> State:
        number = builder.fsub(code.numbers("branch", place), begin)
        return [builder.fadd(state[0], number), code.fused(number, number, state[1])]

    for name, total in zip(
        ("totals", "squares"), code.over_rows([_ZERO, _ZERO], add_row), strict=True
    ):
        code.add_to_channels(name, total)


add_moments = _intrinsic(("branch", "begin", "totals", "squares"), (), _add_moments)
"""Add a branch, counted from ``begin``, and its squares to ``totals`` and ``squares``."""


def _normalise(code: Pass) -> None:
    builder = code.builder
    scale, shift, per_spike, most = (
        code.of_channels("scale"), code.of_channels("shift"),
        code.everywhere("per_spike"), code.everywhere("most_spikes"),
    )
    is_whole = builder.fcmp_ordered(">", code.values["most_spikes"], ir.Constant(FLOAT, 0.0))

    def fire_row(place: Any, _state: State) -> State:
        current = code.fused(code.numbers("branch", place), scale, shift)
        if code.has("shortcut"):
            current = builder.fadd(
                code.numbers("shortcut", place), code.rounded_as("current", current)
            )
        current = code.put("current", place, current)
        count = code.at_least(code.fused(current, per_spike, _HALF), _ZERO)
        count = builder.select(builder.fcmp_ordered("<", count, most), count, most)
        count = code.call("llvm.trunc.v16f32", _FLOATS, [count])
        code.put("spikes", place, builder.select(is_whole, count, code.at_least(current, _ZERO)))
        return []

    code.over_rows([], fire_row)


normalise = _intrinsic(
    ("branch", "shortcut", "scale", "shift", "current", "spikes"), ("per_spike", "most_spikes"),
    _normalise,
)
"""Fill ``current`` with ``branch * scale + shift``, plus a shortcut that is not None, and
``spikes`` with the whole part of ``current * per_spike + 1/2``, from 0 to ``most_spikes``; where
this is 0, with ReLU of ``current``."""


def _sum_gradients(code: Pass) -> None:
    builder = code.builder
    scale, shift = code.of_channels("scale"), code.of_channels("shift")
    low, high, slope = (code.everywhere(name) for name in ("low", "high", "slope"))

    def add_row(place: Any, state: State) -> State:
        current = code.numbers("current", place)
        inside = builder.and_(
            builder.fcmp_ordered(">=", current, low), builder.fcmp_ordered("<=", current, high)
        )
        grad = builder.fmul(code.numbers("grad_spikes", place), slope)
        grad = builder.select(inside, grad, _ZERO)
        if code.has("grad_current"):
            grad = builder.fadd(code.rounded_as("grad_sum", grad), code.numbers(
                "grad_current", place
            ))
        grad = code.put("grad_sum", place, grad)
        normalised = code.fused(code.numbers("branch", place), scale, shift)
        return [builder.fadd(state[0], grad), code.fused(grad, normalised, state[1])]

    for name, total in zip(
        ("grads", "products"), code.over_rows([_ZERO, _ZERO], add_row), strict=True
    ):
        code.add_to_channels(name, total)


sum_gradients = _intrinsic(
    ("grad_spikes", "grad_current", "branch", "current", "scale", "shift", "grad_sum", "grads",
     "products"),
    ("low", "high", "slope"),
    _sum_gradients,
)
"""Fill ``grad_sum`` with the gradient of ``current``: that of the spikes times ``slope`` where the
current is from ``low`` to ``high``, plus ``grad_current``, if it is not None. Add it to ``grads``,
and its product with ``branch * scale + shift`` to ``products``."""


def _differentiate(code: Pass) -> None:
    factor, slope, offset = (code.of_channels(name) for name in ("factor", "slope", "offset"))

    def change_row(place: Any, _state: State) -> State:
        part = code.fused(code.numbers("branch", place), slope, offset)
        code.put("grad_branch", place, code.fused(code.numbers("grad_sum", place), factor, part))
        return []

    code.over_rows([], change_row)


differentiate = _intrinsic(
    ("grad_sum", "branch", "factor", "slope", "offset", "grad_branch"), (), _differentiate
)
"""Fill ``grad_branch`` with ``grad_sum * factor + branch * slope + offset``."""
