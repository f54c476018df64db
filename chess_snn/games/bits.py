"""Bit instructions for the kernels that :mod:`chess_snn.jit` compiles.

numba knows neither trailing-zero count, nor population count, nor byte swap; each is one LLVM
instruction.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, cast

import numpy as np

from chess_snn.jit import LazyKernel

ONE: Final = np.uint64(1)
ZERO: Final = np.uint64(0)

_WordFunction = Callable[[np.uint64], np.uint64]


def _word_intrinsic(emit: Callable[[Any, Any], Any]) -> _WordFunction:
    """A ``uint64 -> uint64`` function made of the one instruction that ``emit`` builds."""

    def define(_typing_context: Any, _word: Any) -> Any:
        def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return emit(builder, args[0])

        uint64 = import_module("numba.types").uint64
        return uint64(uint64), codegen

    return cast(
        _WordFunction,
        LazyKernel(define, lambda define: import_module("numba.extending").intrinsic(define)),
    )


count_trailing_zeros: Final = _word_intrinsic(
    lambda builder, word: builder.cttz(word, import_module("llvmlite.ir").IntType(1)(0))
)
"""Lowest set bit, i.e. the first square of a set; 64 for the empty set."""

population_count: Final = _word_intrinsic(lambda builder, word: builder.ctpop(word))
"""Number of squares in a set."""

swap_bytes: Final = _word_intrinsic(lambda builder, word: builder.bswap(word))
"""The board flipped vertically: rank 1 becomes rank 8."""

