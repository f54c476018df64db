"""Kernels that are wrong on purpose, each in one way, and their table."""

import triton
import triton.language as tl
from kernel_variants import Variant


@triton.jit
def hold_too_much(numbers, sums, num_rows, WIDTH: tl.constexpr):
    """Keeps more numbers than a thread has registers."""
    columns = tl.arange(0, WIDTH)
    first = tl.load(numbers + columns)
    total = first
    for row in range(num_rows):
        total = total * first + tl.load(numbers + row * WIDTH + columns)
    tl.store(sums + columns, total + first)


@triton.jit
def copy_every_third(numbers, copies, WIDTH: tl.constexpr):
    """Loads cannot be vectors."""
    columns = tl.arange(0, WIDTH)
    tl.store(copies + columns, tl.load(numbers + 3 * columns))


@triton.jit
def copy(numbers, copies, WIDTH: tl.constexpr, UNKNOWN: tl.constexpr):
    """Nothing is wrong unless a limit or a constant is."""
    columns = tl.arange(0, WIDTH)
    tl.store(copies + columns, tl.load(numbers + columns))


def _variant(name, most_registers=64, **constants):
    return Variant(
        f"bad_kernels.{name}", constants, most_registers, pointer="*fp32", architectures=(90,)
    )


VARIANTS = [
    _variant("hold_too_much", most_registers=255, WIDTH=32768),
    _variant("copy_every_third", WIDTH=1024),
    _variant("copy", most_registers=8, WIDTH=1024, UNKNOWN=0),
    _variant("copy", WIDTH=1000, UNKNOWN=0),
    _variant("copy", WIDTH=1024, UNKNOWN=0),
]
