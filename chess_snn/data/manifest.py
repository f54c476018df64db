"""MANIFEST.json: what a committed folder holds, byte for byte.

A folder exists for this package when its manifest does. The manifest lists every file with its
size and SHA-256, says what the folder is (``kind``) and what its maker noted (``meta``), and
carries a digest of itself, so that no edit of it goes unnoticed. In every version of the format the
digest is of all other keys: whether a manifest is intact is known before what it means.

Instead of a folder there may be one Zip file with the manifest in its comment
(:mod:`chess_snn.data.archive`). Functions of this module that take a committed folder take such a
file too, and no other code asks which of the two it is.
"""

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from chess_snn.data import archive
from chess_snn.data.files import parse_json, read_json, walk
from chess_snn.data.formats import StoredFormat, is_own_digest, with_digest
from chess_snn.errors import CorruptDataError, DamagedFolderError, UnknownVersionError
from chess_snn.types import Json

MANIFEST_NAME = "MANIFEST.json"
ARCHIVE_NAME = "archive.zip"
"""Name of a Zip file in its own manifest, as it was before the manifest was added."""
FORMAT = StoredFormat("chess-snn/manifest", version=1)

_KEYS = {"schema", "version", "kind", "created", "meta", "files", "digest"}
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file as it was committed."""

    num_bytes: int
    sha256: str
    """64 hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of a committed folder."""

    kind: str
    """Kind of the folder, e.g. ``"shard"`` or ``"checkpoint"``."""
    created: str
    """When it was committed: ISO 8601, UTC; for people, never for ordering."""
    meta: Json
    """Notes of its maker: JSON values only."""
    files: Mapping[str, StoredFile]
    """Every file but the manifest, by path relative to the folder, with ``/`` between parts; of a
    Zip file ``ARCHIVE_NAME`` alone."""

    @property
    def num_bytes(self) -> int:
        """Bytes of all listed files."""
        return sum(file.num_bytes for file in self.files.values())

    @property
    def sha256s(self) -> dict[str, str]:
        """Digest of every listed file, by its name."""
        return {name: file.sha256 for name, file in self.files.items()}

    def to_text(self) -> str:
        """The manifest as it stands in the file."""
        body: Json = {
            "schema": FORMAT.name,
            "version": FORMAT.version,
            "kind": self.kind,
            "created": self.created,
            "meta": self.meta,
            "files": {
                name: {"bytes": file.num_bytes, "sha256": file.sha256}
                for name, file in self.files.items()
            },
        }
        # No final line feed: a file cut by one byte is then no JSON any more.
        return json.dumps(with_digest(body), indent=1, allow_nan=False)


def is_archive(path: Path) -> bool:
    """Return whether a Zip file stands for the committed folder ``path``; it may be damaged."""
    return path.is_file()


def is_committed(folder: Path) -> bool:
    """Return whether ``folder`` was committed; says nothing about damage since.

    A file appears under its final name only when it is committed.
    """
    return (folder / MANIFEST_NAME).is_file() or is_archive(folder)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of ``folder``, itself verified; the files it lists are not read.

    Raises:
        DamagedFolderError: it is missing, malformed or edited, or lists a path outside the folder.
        UnknownVersionError: it is intact, and of a version that is not read.
    """
    if is_archive(folder):
        with _reading(folder, folder), folder.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - archive.TAIL_BYTES))
            tail = file.read()
        return _split(folder, tail)[1]
    if not os.path.lexists(folder):
        raise _damaged(folder, folder, "missing")
    path = folder / MANIFEST_NAME
    try:
        body = read_json(path)
    except CorruptDataError as error:
        raise DamagedFolderError(str(error), folder) from error
    return _parse(folder, path, body)


def _split(path: Path, content: bytes) -> tuple[memoryview, Manifest]:
    """The Zip file in ``content``, or the end of it, and the manifest in its comment."""
    try:
        zipped, comment = archive.split(content)
    except ValueError as error:
        raise _damaged(path, path, str(error)) from error
    try:
        body = parse_json(comment, str(path))
    except CorruptDataError as error:
        raise DamagedFolderError(str(error), path) from error
    manifest = _parse(path, path, body)
    if manifest.files.keys() != {ARCHIVE_NAME}:
        raise _damaged(
            path, path, f"must list {ARCHIVE_NAME} alone, found {sorted(manifest.files)}"
        )
    return zipped, manifest


def _parse(folder: Path, path: Path, body: Json) -> Manifest:
    """The content of a manifest of the committed ``folder``."""
    if body.get("schema") != FORMAT.name:
        raise _damaged(
            folder, path, f"schema must be {FORMAT.name!r}, found {body.get('schema')!r}"
        )
    if not is_own_digest(body):
        raise _damaged(folder, path, "its digest is not that of its content")
    FORMAT.check(body.get("version"), path)
    if body.keys() != _KEYS:
        raise _damaged(
            folder, path, f"keys {sorted(body.keys() ^ _KEYS)} are missing or unknown"
        )
    kind, created, meta, files = (body[key] for key in ("kind", "created", "meta", "files"))
    well_typed = isinstance(kind, str) and isinstance(created, str) and isinstance(meta, dict)
    if not well_typed or not isinstance(files, dict):
        raise _damaged(
            folder, path, "kind, created, meta and files must be two texts and two objects"
        )
    entries = {name: _parse_file(folder, path, name, entry) for name, entry in files.items()}
    return Manifest(kind, created, meta, entries)


def verify_folder(folder: Path) -> Manifest:
    """The manifest of the committed ``folder``, whose files are exactly those that it lists.

    Every file is read, and its SHA-256 compared.

    Raises:
        DamagedFolderError: a file is missing, extra, of another size, or of other content; the
            first one is named.
        UnknownVersionError: as :func:`read_manifest`.
    """
    if is_archive(folder):
        return read_archive(folder)[0]
    manifest = _read_complete(folder)
    _verify_files(folder, manifest, manifest.files)
    return manifest


def verify_files(folder: Path, names: Iterable[str]) -> Manifest:
    """The manifest of the committed ``folder``, after a look at those of its files in ``names``.

    Each is read, and its SHA-256 compared; the others may be missing.

    Raises:
        DamagedFolderError: one is missing, not in the manifest, or damaged.
        UnknownVersionError: as :func:`read_manifest`.
    """
    manifest = read_manifest(folder)
    _verify_files(folder, manifest, names)
    return manifest


def _verify_files(folder: Path, manifest: Manifest, names: Iterable[str]) -> None:
    for name in names:
        path, expected = folder / name, manifest.files.get(name)
        if expected is None:
            raise _damaged(folder, folder / MANIFEST_NAME, f"does not list {name}")
        with _reading(folder, path):
            _compare_size(folder, path, expected)
            _compare(folder, path, describe_file(path), expected)


def read_folder(folder: Path) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest of the committed ``folder``, and its files by name, verified.

    For a Zip file, they are its members. What is returned is what was compared: nothing can come
    between the check and the use of it.

    Raises:
        DamagedFolderError, UnknownVersionError: as :func:`verify_folder`.
    """
    if is_archive(folder):
        manifest, content = read_archive(folder)
        try:
            return manifest, archive.unpack(content)
        except ValueError as error:
            raise _damaged(folder, folder, str(error)) from error
    manifest = _read_complete(folder)
    files = {}
    for name, expected in manifest.files.items():
        with _reading(folder, folder / name):
            _compare_size(folder, folder / name, expected)
            content = (folder / name).read_bytes()
        _compare(folder, folder / name, describe_bytes(content), expected)
        files[name] = content
    return manifest, files


def read_archive(path: Path) -> tuple[Manifest, bytes]:
    """The manifest of the committed Zip file ``path``, and all of its bytes, verified.

    Raises:
        DamagedFolderError, UnknownVersionError: as :func:`verify_folder`.
    """
    with _reading(path, path), path.open("rb") as file:
        num_bytes = os.fstat(file.fileno()).st_size
        if num_bytes > archive.MOST_BYTES:
            raise _damaged(path, path, f"has {num_bytes:,} bytes, more than are written")
        content = file.read()
    zipped, manifest = _split(path, content)
    sha256 = hashlib.sha256(zipped)
    sha256.update(archive.NO_COMMENT)
    found = StoredFile(len(zipped) + len(archive.NO_COMMENT), sha256.hexdigest())
    _compare(path, path, found, manifest.files[ARCHIVE_NAME])
    return manifest, content


def check_kind(folder: Path, manifest: Manifest, stored: StoredFormat, version: object) -> None:
    """See that the committed ``folder`` is a ``stored``, of a ``version`` that is read.

    Raises:
        UnknownVersionError: ``folder`` is another kind of folder, or of another version.
    """
    if manifest.kind != stored.name:
        raise UnknownVersionError(
            f"{folder} must be a {stored.name}, found a {manifest.kind!r}; give another folder"
        )
    stored.check(version, folder)


def describe_file(path: Path) -> StoredFile:
    """Size and SHA-256 of the file at ``path``."""
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return StoredFile(file.tell(), sha256)


def describe_bytes(content: bytes) -> StoredFile:
    """Size and SHA-256 of a file's content."""
    return StoredFile(len(content), hashlib.sha256(content).hexdigest())


def _read_complete(folder: Path) -> Manifest:
    """The manifest of a folder in which no file is missing and none is extra."""
    manifest = read_manifest(folder)
    with _reading(folder, folder):
        found = _list_files(folder)
    if missing := sorted(manifest.files.keys() - found):
        raise _damaged(folder, folder / missing[0], "listed in the manifest, but missing")
    if extra := sorted(found - manifest.files.keys() - {MANIFEST_NAME}):
        raise _damaged(folder, folder / extra[0], "not listed in the manifest")
    return manifest


@contextmanager
def _reading(folder: Path, path: Path) -> Iterator[None]:
    """Take what is gone since it was listed, or what the disk cannot give, for damage."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.EIO}:
            raise
        raise _damaged(folder, path, f"cannot be read ({error.strerror})") from error


def _compare_size(folder: Path, path: Path, expected: StoredFile) -> None:
    """A file of another size need not be read, and a sparse one can be larger than the memory."""
    _compare(folder, path, StoredFile(path.stat().st_size, expected.sha256), expected)


def _compare(folder: Path, path: Path, found: StoredFile, expected: StoredFile) -> None:
    if found.num_bytes != expected.num_bytes:
        raise _damaged(
            folder, path, f"must have {expected.num_bytes} bytes, found {found.num_bytes}"
        )
    if found.sha256 != expected.sha256:
        raise _damaged(
            folder, path,
            f"must have SHA-256 {expected.sha256[:12]}…, found {found.sha256[:12]}…",
        )


def _list_files(folder: Path) -> set[str]:
    names: set[str] = set()
    for parent, folders, files in walk(folder):
        for name in [*folders, *files]:
            path = Path(parent, name)
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise _damaged(folder, path, "neither a plain file nor a folder")
        names.update(Path(parent, name).relative_to(folder).as_posix() for name in files)
    return names


def _parse_file(folder: Path, path: Path, name: str, entry: object) -> StoredFile:
    parts = PurePosixPath(name).parts
    stays_inside = "/".join(parts) == name and ".." not in parts and "\0" not in name
    if not stays_inside or not parts or name == MANIFEST_NAME:
        raise _damaged(folder, path, f"lists {name!r}, which is not a path inside the folder")
    match entry:
        case {"bytes": int(num_bytes), "sha256": str(sha256), **others} if not others:
            if num_bytes >= 0 and _SHA256.fullmatch(sha256):
                return StoredFile(num_bytes, sha256)
    raise _damaged(
        folder, path, f"the entry of {name!r} must be {{bytes, sha256}}, found {entry!r}"
    )


def _damaged(folder: Path, path: Path, fault: str) -> DamagedFolderError:
    what = "it" if path == folder else "its folder"
    hint = f"restore it from a copy, or delete {what} so that it is made again"
    return DamagedFolderError(f"{path}: {fault}; {hint}", folder)


def stored_bytes(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; what others remove meanwhile is 0.

    For a committed folder its manifest knows: one file to read instead of many to look at, which
    on a cold disk makes the difference.
    """
    try:
        facts = path.lstat()
        if not stat.S_ISDIR(facts.st_mode):
            return facts.st_size
        with suppress(CorruptDataError):  # then its files are read
            manifest = read_manifest(path)
            return manifest.num_bytes + (path / MANIFEST_NAME).lstat().st_size
        return sum(map(stored_bytes, path.iterdir()))
    except FileNotFoundError:
        return 0
