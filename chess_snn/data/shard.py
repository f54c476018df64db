"""Shards: the games of one self-play task as one immutable Zarr group with a manifest.

Every column is a Zarr array of its own. State words are stored word by word (a transposing codec):
a word changes little from one position to the next, so each column of words shrinks to about an
octet a position. Every chunk is written, even an empty one, and carries zstd's checksum; Zarr
itself would read a missing chunk as zeros, so a shard is read only after its files were compared
with its manifest.
"""

import math
from pathlib import Path
from typing import Any, Final

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import TransposeCodec, ZstdCodec
from zarr.core.buffer import Buffer
from zarr.storage import MemoryStore

from chess_snn.data.commit import staged_folder
from chess_snn.data.manifest import Manifest, is_committed, read_manifest, verify_folder
from chess_snn.data.records import GameRecords
from chess_snn.data.schema import STORED_DTYPES, check_records, from_columns, to_columns
from chess_snn.errors import CorruptDataError
from chess_snn.types import Json

SHARD_KIND: Final = "shard"
SHARD_VERSION: Final = 2

_CHUNK_BYTES: Final = 2 << 20
_ZSTD_LEVEL: Final = 1
"""Level 3 is slower and, on word columns, no smaller."""

_DECODING_ERRORS: Final = (OSError, ValueError, KeyError, TypeError, RuntimeError)
"""What Zarr and its codecs raise on damaged metadata and chunks."""


def write_shard(folder: Path, records: GameRecords, meta: Json) -> Manifest:
    """Commit ``records`` as the shard ``folder``; done once, whoever else tries.

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
        return read_manifest(folder)
    files = _encode(records)
    with staged_folder(folder) as stage:
        for name, content in files.items():
            path = stage.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        counts = {
            "num_games": records.num_games,
            "num_positions": records.num_positions,
            "record_words": records.states.shape[1],
            "shard_version": SHARD_VERSION,
        }
        return stage.commit(kind=SHARD_KIND, meta=meta | counts)


def read_shard(folder: Path) -> tuple[GameRecords, Manifest]:
    """The games of the committed shard ``folder``, and its manifest.

    Raises:
        CorruptDataError: naming the file or column that is not what was committed.
    """
    manifest = check_shard(folder)
    try:
        group = zarr.open_group(store=str(folder), mode="r", zarr_format=3)
        records = from_columns({name: _read_column(group, name) for name in STORED_DTYPES})
        _check_counts(records, manifest)
    except _DECODING_ERRORS as error:
        raise CorruptDataError(
            f"{folder} cannot be decoded: {error}; restore it from a copy, or delete it so that "
            "it is made again"
        ) from error
    return records, manifest


def check_shard(folder: Path) -> Manifest:
    """The manifest of the committed shard ``folder``, whose files are read, but not decoded.

    Raises:
        CorruptDataError: naming the file that is not what was committed.
    """
    manifest = verify_folder(folder)
    version = manifest.meta.get("shard_version")
    if manifest.kind != SHARD_KIND or version != SHARD_VERSION:
        raise CorruptDataError(
            f"{folder} must be a {SHARD_KIND} of version {SHARD_VERSION}, found {manifest.kind!r} "
            f"of version {version!r}; open it with the program that wrote it"
        )
    return manifest


def _encode(records: GameRecords) -> dict[str, bytes]:
    """The files of a shard by their names, encoded in memory.

    Zarr would write them to the disk itself, from several threads. When one write fails it does not
    wait for the others, and they go on in a folder that was just removed.
    """
    encoded: dict[str, Buffer] = {}
    group = zarr.create_group(store=MemoryStore(encoded), zarr_format=3)
    for name, column in to_columns(records).items():
        _write_column(group, name, column)
    return {name: content.to_bytes() for name, content in encoded.items()}


def _write_column(group: zarr.Group, name: str, column: NDArray[Any]) -> None:
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
        chunk_key_encoding={"name": "default", "separator": "."},  # files, not nested folders
        config={"write_empty_chunks": True},
    )
    array[...] = column


def _read_column(group: zarr.Group, name: str) -> NDArray[Any]:
    array = group[name]
    if not isinstance(array, zarr.Array):
        raise TypeError(f"{name} must be an array, found a group")
    return np.ascontiguousarray(array[...])


def _check_counts(records: GameRecords, manifest: Manifest) -> None:
    for name, found in {
        "num_games": records.num_games,
        "num_positions": records.num_positions,
        "record_words": records.states.shape[1],
    }.items():
        if manifest.meta.get(name) != found:
            raise ValueError(f"{name} must be {manifest.meta.get(name)}, found {found}")
