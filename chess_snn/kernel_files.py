"""Compiled kernels on the disk, each file with a digest of all that is before it.

numba keeps machine code in pickles, and runs what it reads. Unpickling passes over the digest at a
file's end. A file without its digest is removed, and the kernel compiled again.
"""

import hashlib
import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from numba.core.caching import FunctionCache, IndexDataCacheFile

_DIGEST_SIZE: Final = 32

_logger = logging.getLogger(__name__)


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
