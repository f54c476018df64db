"""Types used across the library; shapes of arrays stand beside each field's docstring."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

UInt64Array: TypeAlias = NDArray[np.uint64]
Int64Array: TypeAlias = NDArray[np.int64]
Int32Array: TypeAlias = NDArray[np.int32]
Int16Array: TypeAlias = NDArray[np.int16]
Int8Array: TypeAlias = NDArray[np.int8]
UInt8Array: TypeAlias = NDArray[np.uint8]
Float32Array: TypeAlias = NDArray[np.float32]
Float64Array: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

Json: TypeAlias = dict[str, Any]
"""A JSON object as Python sees it."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called often, while something takes long, with how much is done and how much there is in all."""

LogFn: TypeAlias = Callable[[str], None]
"""Called with a line for people."""


class Closeable(Protocol):
    """An object that is used in a ``with`` block, or closed; afterwards it cannot be used."""

    def close(self) -> None:
        """Let go of threads, processes and memory."""

    def __enter__(self) -> Self:
        """The object itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()
