"""The decorators for compiled kernels, and where their machine code is cached.

numba's file cache does not notice an edit in *another* file that a kernel calls, so the cache
folder is keyed on a digest of every kernel source in the package: an edit anywhere opens a new
folder instead of running stale code.

numba keeps machine code in pickles, and runs what it reads. So each file ends with a digest of all
that is before it, which unpickling passes over. A file without its digest is removed, and the
kernel compiled again.

The folder is in :func:`chess_snn.caches.cache_root`. A ``NUMBA_CACHE_DIR`` set by the user wins.
"""

import hashlib
import io
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile

from chess_snn.caches import cache_root
from chess_snn.sources import sources_digest

_DIGEST_SIZE: Final = 32

_logger = logging.getLogger(__name__)

_Kernel = TypeVar("_Kernel", bound=Callable[..., object])


def _kernels_key() -> str:
    """Digest numba, and every source that has kernels: all that name this module, and itself."""
    return f"{numba.__version__}-{sources_digest(lambda text: b'chess_snn.jit' in text)}"


if not os.environ.get("NUMBA_CACHE_DIR"):
    # numba picks a cache folder when a function is decorated, so this must run before any is.
    numba.config.CACHE_DIR = str(cache_root() / "kernels" / _kernels_key())


def kernel_folder() -> Path:
    """The folder that keeps the compiled kernels of these sources."""
    return Path(numba.config.CACHE_DIR)


int64: Final = cast("Callable[[int], int]", np.int64)
"""Makes integers that a kernel passes to another. Where a variable begins as a bare 0, numba
compiles the other kernel for the literal 0 too; where one is int32 and one int64, for each."""


def kernel(function: _Kernel) -> _Kernel:
    """Compile ``function`` on first call, release the GIL while it runs, cache it on disk.

    Inside a kernel use ``np.uint64`` constants only: numba turns ``uint64 + 1`` into ``int64`` and
    mixes of ``uint64`` and ``int64`` into ``float64``.
    """
    return _compiled(function)


def lean_kernel(function: _Kernel) -> _Kernel:
    """Compile as :func:`kernel` does, but count no references; ``function`` makes no arrays.

    numba counts references to every array that a function takes, also as part of a tuple, with two
    locked instructions a call. In functions that take many arrays, most of the time went there.
    Assigning a row to a row needs the counts too: see :func:`chess_snn.search.trees.copy_row`.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: _Kernel, **options: bool) -> _Kernel:
    compiled: _Kernel = numba.njit(nogil=True, cache=True, **options)(function)
    check_files_of(compiled)
    return compiled


def check_files_of(compiled: Any) -> None:
    """Have numba check the files of a kernel that was just decorated."""
    cache = getattr(compiled, "_cache", None)
    if isinstance(cache, FunctionCache):  # not where numba is switched off
        cache._cache_file = _CheckedFiles(cache._cache_file)


def damaged_files(folder: Path) -> list[Path]:
    """Files of kernels in ``folder`` that would be removed when they are needed."""
    return [path for path in sorted(folder.glob("*/*.nb[ci]")) if not _is_whole(path)]


class _CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """The files of one function: an index, and one for each of its signatures."""

    has_warned = False

    def __init__(self, unchecked: IndexDataCacheFile) -> None:
        self.__dict__ = vars(unchecked)

    def _load_index(self) -> Any:
        self._remove_if_damaged(self._index_path)
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        self._remove_if_damaged(self._data_path(name))
        return super()._load_data(name)  # where there is no file, the kernel is compiled

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        with super()._open_for_write(filepath) as file:
            body = io.BytesIO()
            yield body
            file.write(body.getvalue() + _digest(body.getvalue()))

    @staticmethod
    def _remove_if_damaged(path: str) -> None:
        if _is_whole(Path(path)):
            return
        Path(path).unlink(missing_ok=True)
        if not _CheckedFiles.has_warned:
            _CheckedFiles.has_warned = True
            _logger.warning("%s has no valid digest: such kernels are compiled again", path)


def _is_whole(path: Path) -> bool:
    """Whether a file ends with its digest; also if there is none."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return True
    return content[-_DIGEST_SIZE:] == _digest(content[:-_DIGEST_SIZE])


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()
