"""Shards: the games of one self-play task as one immutable Zarr group with a manifest.

Every column is a Zarr array of its own. State words are stored word by word (a transposing codec):
a word changes little from one position to the next, so each column of words shrinks to about an
octet a position. Every chunk is written, even an empty one, and carries zstd's checksum; Zarr
itself would read a missing chunk as zeros, so a shard's files are first compared with its manifest,
and then decoded from memory as they were compared.
"""

from pathlib import Path
from typing import Final

from chess_snn.data.commit import adopt, staged_folder
from chess_snn.data.formats import StoredFormat
from chess_snn.data.manifest import (
    Manifest,
    is_committed,
    read_folder,
    verify_folder,
)
from chess_snn.data.records import GameRecords
from chess_snn.data.schema import (
    add_later_columns,
    check_records,
    columns_of,
    from_columns,
    spec_faults,
    to_columns,
)
from chess_snn.data.zarr_arrays import decode_arrays, encode_arrays
from chess_snn.errors import CorruptDataError, UnknownVersionError, UsageError
from chess_snn.games.base import GameSpec
from chess_snn.types import Json

SHARD_KIND: Final = "shard"
SHARD_FORMAT: Final = StoredFormat("shard", version=2, upgrades={1: dict})
"""Version 1 had fewer columns; its manifest said the same."""

_DECODING_ERRORS: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What metadata and chunks raise that are not those of a shard."""


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
        return adopt(folder)
    files = encode_arrays(to_columns(records))
    with staged_folder(folder) as stage:
        for name, content in files.items():
            path = stage.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        counts = {
            "num_games": records.num_games,
            "num_positions": records.num_positions,
            "record_words": records.states.shape[1],
            "shard_version": SHARD_FORMAT.version,
        }
        return stage.commit(kind=SHARD_KIND, meta=meta | counts)


def read_shard(folder: Path) -> tuple[GameRecords, Manifest]:
    """The games of the committed shard ``folder``, and its manifest.

    Raises:
        DamagedFolderError: naming the file that is not what was committed.
        UnknownVersionError: it is no shard, or of a version that is not read.
        CorruptDataError: all digests are right, and yet a column is not that of a shard.
    """
    manifest, files = read_folder(folder)
    version = _check_kind(folder, manifest)
    try:
        columns = decode_arrays(files, columns_of(version))
        records = from_columns(add_later_columns(columns))
        _check_counts(records, manifest)
    except _DECODING_ERRORS as error:
        raise CorruptDataError(
            f"{folder} cannot be decoded: {error}; restore it from a copy, or delete it so that "
            "it is made again"
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
        raise CorruptDataError(
            f"shard {folder}: {fault}; restore it from a copy, or delete it so that it is made "
            "again"
        )
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


def _check_kind(folder: Path, manifest: Manifest) -> int:
    """The version of the shard that ``manifest`` is of."""
    if manifest.kind != SHARD_KIND:
        raise UnknownVersionError(
            f"{folder} must be a {SHARD_KIND}, found a {manifest.kind!r}; give another folder"
        )
    return SHARD_FORMAT.check(manifest.meta.get("shard_version"), folder)


def _check_counts(records: GameRecords, manifest: Manifest) -> None:
    for name, found in {
        "num_games": records.num_games,
        "num_positions": records.num_positions,
        "record_words": records.states.shape[1],
    }.items():
        if manifest.meta.get(name) != found:
            raise ValueError(f"{name} must be {manifest.meta.get(name)}, found {found}")
