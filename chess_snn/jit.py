"""The decorators for compiled kernels, and where their machine code is cached.

numba's file cache does not notice an edit in *another* file that a kernel calls, so the cache
folder is keyed on a digest of every kernel source in the package: an edit anywhere opens a new
folder instead of running stale code. :mod:`chess_snn.kernel_files` checks what is in it.

The folder is in :func:`chess_snn.caches.cache_root`. A ``NUMBA_CACHE_DIR`` set by the user wins.
"""

import functools
import importlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numpy as np

from chess_snn.caches import cache_root
from chess_snn.sources import sources_digest

_Kernel = TypeVar("_Kernel", bound=Callable[..., object])
_LOADING: Final = threading.RLock()


@functools.cache
def _numba() -> Any:
    """numba, with its cache folder set."""
    numba = importlib.import_module("numba")
    if not os.environ.get("NUMBA_CACHE_DIR"):
        # numba picks a cache folder when a function is decorated, so this must run before any is.
        numba.config.CACHE_DIR = str(cache_root() / "kernels" / _kernels_key(numba.__version__))
    return numba


def _kernels_key(version: str) -> str:
    """Digest numba, and every source that has kernels: all that name this module, and itself."""
    return f"{version}-{sources_digest(lambda text: b'chess_snn.jit' in text)}"


def kernel_folder() -> Path:
    """The folder that keeps the compiled kernels of these sources."""
    return Path(_numba().config.CACHE_DIR)


int64: Final = cast("Callable[[int], int]", np.int64)
"""Makes integers that a kernel passes to another. Where a variable begins as a bare 0, numba
compiles the other kernel for the literal 0 too; where one is int32 and one int64, for each."""


class LazyKernel:
    """A function that numba makes of another when it is called, or when a kernel that calls it is.

    To load numba takes half a second. Kernels see the function that numba made: it asks an object
    that it does not know for its ``_numba_type_``.
    """

    def __init__(self, function: Callable[..., object], make: Callable[[Any], Any]) -> None:
        functools.update_wrapper(self, function)
        self._function, self._make = function, make
        self._made: Any = None

    def made(self) -> Any:
        """The function that numba made."""
        with _LOADING:
            if self._made is None:
                self._made = self._make(self._function)
            return self._made

    def __call__(self, *arguments: object) -> Any:
        """Call what numba made."""
        return (self._made or self.made())(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made(), name)

    def __deepcopy__(self, _memo: object) -> "LazyKernel":
        return self  # numba copies statements that name it

    @property
    def _numba_type_(self) -> Any:
        context = importlib.import_module("numba.core.registry").cpu_target.typing_context
        made = self.made()
        context.refresh()  # an intrinsic is known by then
        return context.resolve_value_type(made)


def kernel(function: _Kernel) -> _Kernel:
    """Compile ``function`` on first call, release the GIL while it runs, cache it on disk.

    Inside a kernel use ``np.uint64`` constants only: numba turns ``uint64 + 1`` into ``int64`` and
    mixes of ``uint64`` and ``int64`` into ``float64``.
    """
    return cast("_Kernel", LazyKernel(function, _compiled))


def lean_kernel(function: _Kernel) -> _Kernel:
    """Compile as :func:`kernel` does, but count no references; ``function`` makes no arrays.

    numba counts references to every array that a function takes, also as part of a tuple, with two
    locked instructions a call. In functions that take many arrays, most of the time went there.
    Assigning a row to a row needs the counts too: see :func:`copy_row`.
    """
    return cast("_Kernel", LazyKernel(function, functools.partial(_compiled, _nrt=False)))


def _compiled(function: Callable[..., object], **options: bool) -> Any:
    compiled = _numba().njit(nogil=True, cache=True, **options)(function)
    importlib.import_module("chess_snn.kernel_files").check_files_of(compiled)
    return compiled


@lean_kernel
def copy_row(source: np.ndarray, target: np.ndarray) -> None:
    """Copy a row to the beginning of another. numba takes 2 s to compile ``target[:] = source``."""
    for i in range(len(source)):
        target[i] = source[i]
