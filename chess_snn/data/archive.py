"""A Zip file that holds the files of a folder uncompressed, and a text in its comment.

Zarr reads the arrays of such a file, and every Zip program lists it::

    zarr.open("zip::games/iter-000012/shard-0003", mode="r")

The text is the manifest (:mod:`chess_snn.data.manifest`). It is added after the Zip file is written
and describes the file as it was before, so its digest covers all other bytes. A member of the Zip
file would not do: Zarr warns about files that it does not know.
"""

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from typing import Final

MOST_COMMENT_BYTES: Final = (1 << 16) - 1
"""The Zip format has two bytes for the length of the comment."""

MOST_BYTES: Final = 1 << 29
"""Limit of a Zip file, and of the arrays in it, unpacked: some 2 million positions. A small file
could hold more than a machine has memory for."""

_END_MARK: Final = b"PK\x05\x06"
"""Begins the last record of a Zip file. It cannot occur in JSON, which escapes control codes."""
_END_BYTES: Final = 22
"""Length of the last record, without the comment after it."""
_LENGTH: Final = struct.Struct("<H")
"""The length of the comment, which ends the last record."""
NO_COMMENT: Final = _LENGTH.pack(0)
"""The last bytes of a Zip file without a comment."""
TAIL_BYTES: Final = _END_BYTES + MOST_COMMENT_BYTES
"""The last record and its comment are within this many bytes of the file's end."""
_MODE: Final = 0o644 << 16
"""File permissions, where the Zip format has them."""

_ZIP_ERRORS: Final = (
    zipfile.BadZipFile, RuntimeError, ValueError, EOFError, OverflowError, struct.error,
)
"""Raised by :mod:`zipfile` for content that is not a Zip file of ours."""


def pack(files: Mapping[str, bytes]) -> bytes:
    """A Zip file with ``files`` by name; the same files give the same bytes.

    Raises:
        ValueError: they are too large.
    """
    buffer = io.BytesIO()
    try:
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
            for name in sorted(files):
                member = zipfile.ZipInfo(name)  # dated 1980
                member.external_attr = _MODE
                archive.writestr(member, files[name])
    except zipfile.LargeZipFile as error:
        raise ValueError(f"too large for a Zip file: {error}") from error
    if buffer.tell() + MOST_COMMENT_BYTES > MOST_BYTES:
        raise ValueError(f"a Zip file must have at most {MOST_BYTES:,} bytes")
    return buffer.getvalue()


def with_comment(zipped: bytes, comment: bytes) -> bytes:
    """A Zip file from :func:`pack`, with ``comment``; only its last two bytes differ from before.

    Raises:
        ValueError: ``comment`` is too long.
    """
    if len(comment) > MOST_COMMENT_BYTES:
        raise ValueError(
            f"the manifest must have at most {MOST_COMMENT_BYTES} bytes, found {len(comment)}"
        )
    return zipped[: -len(NO_COMMENT)] + _LENGTH.pack(len(comment)) + comment


def split(content: bytes) -> tuple[memoryview, bytes]:
    """A Zip file, or its last ``TAIL_BYTES``: the part before the comment, and the comment.

    The first part ends before the length of the comment: two bytes short of :func:`pack`'s output.

    Raises:
        ValueError: ``content`` does not end in the comment of a Zip file.
    """
    start = content.rfind(_END_MARK)
    end = start + _END_BYTES
    if start < 0 or end > len(content):
        raise ValueError("it does not end as a Zip file does")
    (length,) = _LENGTH.unpack_from(content, end - _LENGTH.size)
    if end + length != len(content):
        raise ValueError(
            f"{length} bytes must follow the end of the Zip file, found {len(content) - end}"
        )
    return memoryview(content)[: end - _LENGTH.size], content[end:]


def unpack(content: bytes) -> dict[str, bytes]:
    """The files in a Zip file, by name.

    Raises:
        ValueError: it is damaged, or not as :func:`pack` makes it.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            _check(members, len(content))
            return {member.filename: archive.read(member) for member in members}
    except _ZIP_ERRORS as error:
        raise ValueError(f"it is not a Zip file of a shard: {error}") from error


def _check(members: Sequence[zipfile.ZipInfo], num_bytes: int) -> None:
    """Check that ``members`` are uncompressed, differ by name and fit in ``num_bytes``.

    Members that share bytes could fill the memory from a small file.

    Raises:
        ValueError: they are not.
    """
    names = set()
    for member in members:
        name = member.filename
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits:
            raise ValueError(f"{name!r} must be stored without compression or encryption")
        if member.file_size != member.compress_size:
            raise ValueError(
                f"{name!r} has two sizes: {member.file_size} and {member.compress_size} bytes"
            )
        if name in names:
            raise ValueError(f"{name!r} is there twice")
        names.add(name)
    if (total := sum(member.file_size for member in members)) > num_bytes:
        raise ValueError(f"its files have {total} bytes, and the Zip file {num_bytes}")
