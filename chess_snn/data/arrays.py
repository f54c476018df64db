"""Arrays as the files of a Zarr group, in memory: small chunks, each with zstd's checksum.

Zarr writes them, and anyone who has Zarr can read them. Here they are decoded without Zarr, which
takes over a millisecond for each array, and would run any codec that a file names.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import zstandard
from numpy.typing import NDArray

from chess_snn.data import archive
from chess_snn.data.records import StoredColumn
from chess_snn.later import zarr, zarr_codecs
from chess_snn.types import Json

if TYPE_CHECKING:
    from zarr.core.buffer import Buffer

_CHUNK_BYTES: Final = 2 << 20
_MOST_CHUNK_BYTES: Final = 8 * _CHUNK_BYTES
"""When read; a row more than ``_CHUNK_BYTES`` when written."""
_ZSTD_LEVEL: Final = 1
"""Level 3 is slower and, on word columns, no smaller."""

_DESCRIPTION: Final = (
    "Games that chess-snn played or imported, one after the other. The comment of the Zip file is "
    "the manifest, in JSON."
)
_METADATA: Final = "zarr.json"
_SEPARATOR: Final = "."
"""Between the numbers of a chunk's name, so that chunks are files and not nested folders."""
_AS_WRITTEN: Final[Json] = {
    "zarr_format": 3, "node_type": "array", "fill_value": 0,
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": _SEPARATOR}},
}
"""Metadata that every array has."""
_TRANSPOSED: Final[Json] = {"name": "transpose", "configuration": {"order": [1, 0]}}
_KINDS: Final = "iuf"
"""Integers with and without sign, and floats."""

Shape = tuple[int | None, ...]
"""Shape of an array; None is any size."""


def encode_arrays(
    columns: Mapping[str, NDArray[Any]], stored: Mapping[str, StoredColumn]
) -> dict[str, bytes]:
    """The files of a Zarr group with ``columns``, described by those of ``stored``.

    Zarr would write them to the disk itself, from several threads. When one write fails it does not
    wait for the others, and they go on in a folder that was just removed.
    """
    encoded: dict[str, Buffer] = {}
    group = zarr.create_group(
        store=zarr.storage.MemoryStore(encoded), zarr_format=3,
        attributes={"description": _DESCRIPTION},
    )
    for name, column in columns.items():
        _write_array(group, name, column, stored[name])
    return {name: content.to_bytes() for name, content in encoded.items()}


def decode_arrays(
    files: Mapping[str, bytes], shapes: Mapping[str, Shape]
) -> dict[str, NDArray[Any]]:
    """The arrays among ``files``, as :func:`encode_arrays` made them, by name; copies.

    Nothing is unpacked before all of them are known to have the ``shapes`` that they must have.

    Raises:
        ValueError: one is there, and not as it would have been made; or they are too large.
        KeyError, TypeError: something is missing, or of another type.
    """
    group = json.loads(files[_METADATA])
    if (group["zarr_format"], group["node_type"]) != (3, "group"):
        raise ValueError(f"{_METADATA} must be that of a group in Zarr's third format")
    layouts = {name: _read_layout(files, name, shape) for name, shape in shapes.items()}
    num_bytes = sum(math.prod(at.shape) * at.dtype.itemsize for at in layouts.values())
    if num_bytes > archive.MOST_BYTES:
        raise ValueError(
            f"its arrays have {num_bytes:,} bytes, and a shard at most {archive.MOST_BYTES:,}"
        )
    return {name: _decode_array(files, name, layout) for name, layout in layouts.items()}


@dataclass(frozen=True, slots=True)
class _Layout:
    """Division of an array into chunks."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    is_transposed: bool


def _read_layout(files: Mapping[str, bytes], name: str, expected_shape: Shape) -> _Layout:
    metadata = json.loads(files[f"{name}/{_METADATA}"])
    for key, expected in _AS_WRITTEN.items():
        if metadata[key] != expected:
            raise ValueError(f"{name}: {key} must be {expected!r}, found {metadata[key]!r}")
    if metadata.get("storage_transformers"):
        raise ValueError(f"{name} must have no storage transformers")
    dtype = np.dtype(metadata["data_type"])
    if dtype.kind not in _KINDS:
        raise ValueError(f"{name} must hold numbers, found {metadata['data_type']!r}")
    shape = positive_sizes(metadata["shape"])
    if len(shape) != len(expected_shape) or any(
        wanted not in (None, found) for wanted, found in zip(expected_shape, shape, strict=True)
    ):
        raise ValueError(f"{name} must have shape {expected_shape}, found {shape}")
    chunk_shape = positive_sizes(metadata["chunk_grid"]["configuration"]["chunk_shape"])
    if chunk_shape[1:] != shape[1:] or len(shape) > 2:
        raise ValueError(f"{name} of shape {shape} cannot have chunks of shape {chunk_shape}")
    is_transposed = _is_transposed(name, metadata["codecs"], dtype, len(shape))
    return _Layout(dtype, shape, chunk_shape, is_transposed)


def _decode_array(files: Mapping[str, bytes], name: str, layout: _Layout) -> NDArray[Any]:
    dtype, shape, chunk_shape = layout.dtype, layout.shape, layout.chunk_shape
    num_bytes = math.prod(chunk_shape) * dtype.itemsize
    if num_bytes > _MOST_CHUNK_BYTES:
        raise ValueError(f"{name} has chunks of {num_bytes} bytes, more than are written")
    column = np.empty(shape, dtype)
    for number, first in enumerate(range(0, shape[0], chunk_shape[0])):
        numbers = [str(number), *("0" for _ in shape[1:])]
        packed = files[f"{name}/{_SEPARATOR.join(['c', *numbers])}"]
        values = np.frombuffer(_unpack(name, packed, num_bytes), dtype.newbyteorder("<"))
        rows = (
            values.reshape(chunk_shape[::-1]).T if layout.is_transposed
            else values.reshape(chunk_shape)
        )
        column[first:first + chunk_shape[0]] = rows[: shape[0] - first]
    return column


def _write_array(
    group: zarr.Group, name: str, column: NDArray[Any], stored: StoredColumn
) -> None:
    row_bytes = column.itemsize * math.prod(column.shape[1:])
    num_chunks = math.ceil(len(column) * row_bytes / _CHUNK_BYTES)
    chunk_rows = math.ceil(len(column) / num_chunks)
    group.create_array(
        name,
        data=column,
        chunks=(chunk_rows, *column.shape[1:]),
        filters=[zarr_codecs.TransposeCodec(order=(1, 0))] if column.ndim == 2 else None,
        compressors=[zarr_codecs.ZstdCodec(level=_ZSTD_LEVEL, checksum=True)],
        chunk_key_encoding={"name": "default", "separator": _SEPARATOR},
        dimension_names=stored.dimensions,
        attributes={"description": stored.description},
        config={"write_empty_chunks": True},
    )


def positive_sizes(found: list[int]) -> tuple[int, ...]:
    """A shape: positive numbers, at least one."""
    if not found or not all(type(size) is int and size > 0 for size in found):
        raise ValueError(f"a shape must be a list of positive numbers, found {found!r}")
    return tuple(found)


def _is_transposed(
    name: str, codecs: list[Json], dtype: np.dtype[Any], num_dimensions: int
) -> bool:
    """Return whether words are stored column by column; any other codecs than ours are refused."""
    endian: Json = {"configuration": {"endian": "little"}} if dtype.itemsize > 1 else {}
    expected = [_TRANSPOSED] * (num_dimensions == 2) + [{"name": "bytes"} | endian]
    *found, last = codecs
    if found != expected or last["name"] != "zstd":
        raise ValueError(f"{name} has codecs {codecs!r}, which are not those of a shard")
    return num_dimensions == 2


def _unpack(name: str, packed: bytes, num_bytes: int) -> bytes:
    """A chunk of ``num_bytes``; zstd compares its checksum."""
    try:
        if zstandard.frame_content_size(packed) != num_bytes:
            raise ValueError(f"{name} has a chunk of another size than {num_bytes} bytes")
        return zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError as error:
        raise ValueError(f"{name} has a chunk that cannot be unpacked: {error}") from error
