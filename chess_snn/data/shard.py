"""Shards: the games of one self-play task as one immutable Zip file of Zarr arrays.

Every column is a Zarr array of its own. State words are stored word by word (a transposing codec):
a word changes little from one position to the next, so each column of words shrinks to about a
byte a position. Every chunk is written, even an empty one, and carries zstd's checksum; Zarr
itself would read a missing chunk as zeros, so a shard is first compared with its manifest, and then
decoded from memory as it was compared. Version 2 was a folder of the same files, which is read as
well.

Zarr writes the arrays, in memory, with names of dimensions and descriptions, so that anyone who has
Zarr or xarray can read them::

    zarr.open("zip::games/iter-000012/shard-0003", mode="r")
    xarray.open_zarr("zip::games/iter-000012/shard-0003", consolidated=False)

Here arrays are decoded without Zarr, which takes over a millisecond for each of the twelve arrays
of a shard, and would run any codec that a file names.
"""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import zarr
import zstandard
from numpy.typing import NDArray
from zarr.codecs import TransposeCodec, ZstdCodec
from zarr.core.buffer import Buffer
from zarr.storage import MemoryStore

from chess_snn.data.commit import adopt, commit_archive
from chess_snn.data.files import RESTORE_OR_DELETE
from chess_snn.data.formats import StoredFormat
from chess_snn.data.manifest import (
    Manifest,
    check_kind,
    is_committed,
    read_folder,
    verify_folder,
)
from chess_snn.data.records import (
    STORED_COLUMNS,
    GameRecords,
    StoredColumn,
    check_records,
    from_columns,
    spec_faults,
    to_columns,
)
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.games.base import GameSpec
from chess_snn.types import Json

SHARD_FORMAT: Final = StoredFormat("shard", version=3, upgrades={2: dict})
"""Of both versions, the manifests say the same."""

_DECODING_ERRORS: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What metadata and chunks raise that are not those of a shard."""

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
"""What is the same in the metadata of every array."""
_TRANSPOSED: Final[Json] = {"name": "transpose", "configuration": {"order": [1, 0]}}
_KINDS: Final = "iuf"
"""Integers with and without sign, and floats."""


def write_shard(folder: Path, records: GameRecords, meta: Json) -> Manifest:
    """Commit ``records`` as the shard ``folder``; done once, even if several processes try.

    Args:
        folder: the shard's final place; its parents are created.
        records: at least one game.
        meta: JSON values to note in the manifest; must name the ``"game"``. Added to it:
            ``num_games``, ``num_positions``, ``record_words`` and ``shard_version``.

    Returns:
        The manifest on the disk: another writer's, where ``folder`` was committed before.

    Raises:
        UsageError: the disk is full or the place may not be written; nothing is left behind.
        CorruptDataError: ``folder`` exists and is not a committed folder.
        ValueError: ``records`` or ``meta`` are not what they must be.
    """
    if "game" not in meta:
        raise ValueError("a shard's meta must name its game")
    check_records(records)
    if is_committed(folder):
        return adopt(folder)
    counts = {
        "num_games": records.num_games,
        "num_positions": records.num_positions,
        "record_words": records.states.shape[1],
        "shard_version": SHARD_FORMAT.version,
    }
    files = encode_arrays(to_columns(records), STORED_COLUMNS)
    return commit_archive(folder, files, kind=SHARD_FORMAT.name, meta=meta | counts)


def read_shard(folder: Path) -> tuple[GameRecords, Manifest]:
    """The games of the committed shard ``folder``, and its manifest.

    Raises:
        DamagedFolderError: naming the file that is not what was committed.
        UnknownVersionError: it is not a shard, or of a version that is not read.
        CorruptDataError: all digests are right, and yet a column is not that of a shard.
    """
    manifest, files = read_folder(folder)
    _check_kind(folder, manifest)
    try:
        records = from_columns(decode_arrays(files, STORED_COLUMNS))
        _check_counts(records, manifest)
    except _DECODING_ERRORS as error:
        raise CorruptDataError(
            f"{folder} cannot be decoded: {error}; {RESTORE_OR_DELETE}"
        ) from error
    return records, manifest


def read_shard_of(spec: GameSpec, folder: Path) -> tuple[GameRecords, Manifest]:
    """The games of the committed shard ``folder``, which are of the game ``spec``; its manifest.

    Raises:
        CorruptDataError: as :func:`read_shard`; or a code is none of the game's, and would index
            out of range in a network or a table; or a value is none of the game's.
        UsageError: it is of another game.
    """
    records, manifest = read_shard(folder)
    found = (manifest.meta.get("game"), records.states.shape[1])
    if found != (spec.name, spec.record_words):
        raise UsageError(
            f"shard {folder} holds {found[0]} records of {found[1]} words, and {spec.name} records "
            f"of {spec.record_words} words are wanted; leave it out"
        )
    for fault in spec_faults(spec, records):
        raise CorruptDataError(f"shard {folder}: {fault}; {RESTORE_OR_DELETE}")
    return records, manifest


def check_shard(folder: Path) -> Manifest:
    """The manifest of the committed shard ``folder``, whose files are read, but not decoded.

    Raises:
        DamagedFolderError: naming the file that is not what was committed.
        UnknownVersionError: as :func:`read_shard`.
    """
    manifest = verify_folder(folder)
    _check_kind(folder, manifest)
    return manifest


def _check_kind(folder: Path, manifest: Manifest) -> None:
    check_kind(folder, manifest, SHARD_FORMAT, manifest.meta.get("shard_version"))


def _check_counts(records: GameRecords, manifest: Manifest) -> None:
    for name, found in {
        "num_games": records.num_games,
        "num_positions": records.num_positions,
        "record_words": records.states.shape[1],
    }.items():
        if manifest.meta.get(name) != found:
            raise ValueError(f"{name} must be {manifest.meta.get(name)}, found {found}")


def encode_arrays(
    columns: Mapping[str, NDArray[Any]], stored: Mapping[str, StoredColumn]
) -> dict[str, bytes]:
    """The files of a Zarr group with ``columns``, described by those of ``stored``.

    Zarr would write them to the disk itself, from several threads. When one write fails it does not
    wait for the others, and they go on in a folder that was just removed.
    """
    encoded: dict[str, Buffer] = {}
    group = zarr.create_group(
        store=MemoryStore(encoded), zarr_format=3, attributes={"description": _DESCRIPTION}
    )
    for name, column in columns.items():
        _write_array(group, name, column, stored[name])
    return {name: content.to_bytes() for name, content in encoded.items()}


def decode_arrays(
    files: Mapping[str, bytes], names: Iterable[str]
) -> dict[str, NDArray[Any]]:
    """The arrays ``names`` among ``files``, as :func:`encode_arrays` made them; copies.

    Raises:
        ValueError: one is there, and not as it would have been made.
        KeyError, TypeError: something is missing, or of another type.
    """
    group = json.loads(files[_METADATA])
    if (group["zarr_format"], group["node_type"]) != (3, "group"):
        raise ValueError(f"{_METADATA} must be that of a group in Zarr's third format")
    return {name: _decode_array(files, name) for name in names}


def _decode_array(files: Mapping[str, bytes], name: str) -> NDArray[Any]:
    metadata = json.loads(files[f"{name}/{_METADATA}"])
    for key, expected in _AS_WRITTEN.items():
        if metadata[key] != expected:
            raise ValueError(f"{name}: {key} must be {expected!r}, found {metadata[key]!r}")
    if metadata.get("storage_transformers"):
        raise ValueError(f"{name} must have no storage transformers")
    dtype = np.dtype(metadata["data_type"])
    if dtype.kind not in _KINDS:
        raise ValueError(f"{name} must hold numbers, found {metadata['data_type']!r}")
    shape = _sizes(metadata["shape"])
    chunk_shape = _sizes(metadata["chunk_grid"]["configuration"]["chunk_shape"])
    if chunk_shape[1:] != shape[1:] or len(shape) > 2:
        raise ValueError(f"{name} of shape {shape} cannot have chunks of shape {chunk_shape}")
    is_transposed = _is_transposed(name, metadata["codecs"], dtype, len(shape))
    num_bytes = math.prod(chunk_shape) * dtype.itemsize
    if num_bytes > _MOST_CHUNK_BYTES:
        raise ValueError(f"{name} has chunks of {num_bytes} bytes, more than are written")
    rows = []
    for number in range(math.ceil(shape[0] / chunk_shape[0])):
        numbers = [str(number), *("0" for _ in shape[1:])]
        packed = files[f"{name}/{_SEPARATOR.join(['c', *numbers])}"]
        values = np.frombuffer(_unpack(name, packed, num_bytes), dtype.newbyteorder("<"))
        rows.append(
            values.reshape(chunk_shape[::-1]).T if is_transposed else values.reshape(chunk_shape)
        )
    column = np.concatenate(rows)[: shape[0]]
    return np.ascontiguousarray(column, dtype)


def _write_array(
    group: zarr.Group, name: str, column: NDArray[Any], stored: StoredColumn
) -> None:
    row_bytes = column.itemsize * math.prod(column.shape[1:])
    num_chunks = math.ceil(len(column) * row_bytes / _CHUNK_BYTES)
    chunk_rows = math.ceil(len(column) / num_chunks)
    array = group.create_array(
        name,
        shape=column.shape,
        dtype=column.dtype,
        chunks=(chunk_rows, *column.shape[1:]),
        filters=[TransposeCodec(order=(1, 0))] if column.ndim == 2 else None,
        compressors=[ZstdCodec(level=_ZSTD_LEVEL, checksum=True)],
        chunk_key_encoding={"name": "default", "separator": _SEPARATOR},
        dimension_names=stored.dimensions,
        attributes={"description": stored.description},
        config={"write_empty_chunks": True},
    )
    array[...] = column


def _sizes(found: list[int]) -> tuple[int, ...]:
    """A shape: positive numbers, at least one."""
    if not found or not all(type(size) is int and size > 0 for size in found):
        raise ValueError(f"a shape must be a list of positive numbers, found {found!r}")
    return tuple(found)


def _is_transposed(
    name: str, codecs: list[Json], dtype: np.dtype[Any], num_dimensions: int
) -> bool:
    """Whether words are stored column by column; any other codecs than ours are refused."""
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
