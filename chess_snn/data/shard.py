"""Shards: the games of one self-play task as one immutable Zip file of Zarr arrays.

The form of stored games: a file that is written once. Read ``write_shard`` and ``read_shard``. File
10 of 16 of the spine in docs/architecture.md.

Every column is a Zarr array of its own. State words are stored word by word (a transposing codec):
a word changes little from one position to the next, so each column of words shrinks to about a
byte a position. Every chunk is written, even an empty one, and carries zstd's checksum; Zarr
itself would read a missing chunk as zeros, so a shard is first compared with its manifest, and then
decoded from memory as it was compared (:mod:`chess_snn.data.arrays`).

Arrays have names of dimensions and descriptions, so that anyone who has Zarr or xarray can read a
shard::

    zarr.open("zip::games/iter-000012/shard-0003", mode="r")
    xarray.open_zarr("zip::games/iter-000012/shard-0003", consolidated=False)
"""

from pathlib import Path
from typing import Final

from chess_snn.data import archive
from chess_snn.data.arrays import Shape, decode_arrays, encode_arrays, positive_sizes
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
    check_records,
    from_columns,
    spec_faults,
    to_columns,
)
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.games.base import GameSpec
from chess_snn.types import Json

SHARD_FORMAT: Final = StoredFormat("shard", version=3)

_DECODING_ERRORS: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Errors that metadata and chunks raise that are not those of a shard."""


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
        UsageError: the disk is full, the place may not be written, or the games are too many for
            one shard; nothing is left behind.
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
    columns = to_columns(records)
    if (num_bytes := sum(column.nbytes for column in columns.values())) > archive.MOST_BYTES:
        raise UsageError(
            f"the games of {folder} have {num_bytes:,} bytes, and a shard has at most "
            f"{archive.MOST_BYTES:,}; set fewer games a shard: self_play.games_per_shard"
        )
    files = encode_arrays(columns, STORED_COLUMNS)
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
        records = from_columns(decode_arrays(files, _shapes(manifest)))
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


def _shapes(manifest: Manifest) -> dict[str, Shape]:
    """The shapes that the columns must have by the counts of the manifest."""
    counts = [manifest.meta[name] for name in ("num_games", "num_positions", "record_words")]
    sizes = dict(zip(("game", "position", "word"), positive_sizes(counts), strict=True))
    return {
        name: tuple(map(sizes.get, column.dimensions)) for name, column in STORED_COLUMNS.items()
    }
