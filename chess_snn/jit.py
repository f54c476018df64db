"""The decorators for compiled kernels, and where their machine code is cached.

numba's file cache does not notice an edit in *another* file that a kernel calls, so the cache
folder is keyed on a digest of every kernel source in the package: an edit anywhere opens a new
folder instead of running stale code.

A damaged file of it is compiled again (:mod:`chess_snn.kernel_files`).

The folder is in :func:`chess_snn.caches.cache_root`. A ``NUMBA_CACHE_DIR`` set by the user wins.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar, cast

import numba
import numpy as np

from chess_snn.caches import cache_root
from chess_snn.kernel_files import check_files_of
from chess_snn.sources import sources_digest

_Kernel = TypeVar("_Kernel", bound=Callable[..., object])


def _kernels_key() -> str:
    """Of numba, and of every source that has kernels: all that name this module, and itself."""
    package = Path(__file__).parent
    digest = sources_digest(package.parent, [package.name], lambda text: b"chess_snn.jit" in text)
    return f"{numba.__version__}-{digest}"


if not os.environ.get("NUMBA_CACHE_DIR"):
    # numba picks a cache folder when a function is decorated, so this must run before any is.
    numba.config.CACHE_DIR = str(cache_root() / "kernels" / _kernels_key())


def kernel_folder() -> Path:
    """The folder that keeps the compiled kernels of these sources."""
    return Path(numba.config.CACHE_DIR)


int64: Final = cast("Callable[[int], int]", np.int64)
"""Of integers that a kernel passes to another. Where a variable begins as a bare 0, numba compiles
the other kernel for the literal 0 too; where one is int32 and one int64, for each of them."""


def kernel(function: _Kernel) -> _Kernel:
    """Compile ``function`` on first call, release the GIL while it runs, cache it on disk.

    Inside a kernel use ``np.uint64`` constants only: numba turns ``uint64 + 1`` into ``int64`` and
    mixes of ``uint64`` and ``int64`` into ``float64``.
    """
    return _compiled(function)


def lean_kernel(function: _Kernel) -> _Kernel:
    """As :func:`kernel`, without counting references; ``function`` makes no arrays.

    numba counts references to every array that a function takes, also as part of a tuple, with two
    locked instructions a call. In functions that take many arrays, most of the time went there.
    Assigning a row to a row needs the counts too: see :func:`chess_snn.search.trees.copy_row`.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: _Kernel, **options: bool) -> _Kernel:
    compiled: _Kernel = numba.njit(nogil=True, cache=True, **options)(function)
    check_files_of(compiled)
    return compiled
