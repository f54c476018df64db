"""Keep freed memory in the process.

A network's activations are allocated and freed in every call. glibc gives such large blocks back
to the kernel at once, and the next call faults every page in again: 18,000 page faults for 256
positions of `small`, and the kernel's lock makes threads wait for each other. Told to keep what is
freed, it has none, at the price of memory that stays at its highest mark.
"""

import ctypes
import sys
from functools import cache
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_TOP_PAD: Final = -2
_M_MMAP_THRESHOLD: Final = -3
"""Names of glibc's ``mallopt(3)``."""

_KEEP_BYTES: Final = 1 << 30
_GROW_BYTES: Final = 1 << 24
_LARGEST_HEAP_BLOCK_BYTES: Final = 1 << 25
"""The most that glibc accepts on 64-bit machines."""


@cache
def keep_freed_memory() -> bool:
    """Set it once a process; whether this system has it (Linux with glibc)."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    wanted = (
        (_M_TRIM_THRESHOLD, _KEEP_BYTES),
        (_M_TOP_PAD, _GROW_BYTES),
        (_M_MMAP_THRESHOLD, _LARGEST_HEAP_BLOCK_BYTES),
    )
    accepted = [mallopt(name, value) for name, value in wanted]
    return all(accepted)
