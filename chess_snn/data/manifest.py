"""MANIFEST.json: what a committed folder holds, byte for byte.

A folder exists for this package when its manifest does. The manifest lists every file with its
size and SHA-256, says what the folder is (``kind``) and what its maker noted (``meta``), and
carries a digest of itself, so that no edit of it goes unnoticed.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from chess_snn.data.files import parse_json, read_json
from chess_snn.errors import CorruptDataError
from chess_snn.types import Json

MANIFEST_NAME = "MANIFEST.json"
SCHEMA_NAME = "chess-snn/manifest"
SCHEMA_VERSION = 1

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
    """What a committed folder holds."""

    kind: str
    """What the folder is, e.g. ``"shard"`` or ``"checkpoint"``."""
    created: str
    """When it was committed: ISO 8601, UTC; for people, never for ordering."""
    meta: Json
    """What its maker noted: JSON values only."""
    files: Mapping[str, StoredFile]
    """Every file but the manifest, by path relative to the folder, with ``/`` between parts."""

    @property
    def num_bytes(self) -> int:
        """Bytes of all listed files."""
        return sum(file.num_bytes for file in self.files.values())

    def to_text(self) -> str:
        """The manifest as it stands in the file."""
        body: Json = {
            "schema": SCHEMA_NAME,
            "version": SCHEMA_VERSION,
            "kind": self.kind,
            "created": self.created,
            "meta": self.meta,
            "files": {
                name: {"bytes": file.num_bytes, "sha256": file.sha256}
                for name, file in self.files.items()
            },
        }
        # No final line feed: a file cut by one byte is then no JSON any more.
        return json.dumps(body | {"digest": _digest(body)}, indent=1, allow_nan=False)


def is_committed(folder: Path) -> bool:
    """Whether ``folder`` was committed; says nothing about damage since."""
    return (folder / MANIFEST_NAME).is_file()


def read_manifest(folder: Path) -> Manifest:
    """The manifest of ``folder``, itself verified; the files it lists are not looked at.

    Raises:
        CorruptDataError: it is missing, malformed, edited, of an unknown version, or lists a path
            that leaves the folder.
    """
    path = folder / MANIFEST_NAME
    return _parse(path, read_json(path))


def parse_manifest(content: bytes, place: str) -> Manifest:
    """The manifest in ``content``, the file at ``place``, verified as by :func:`read_manifest`.

    Raises:
        CorruptDataError: as :func:`read_manifest`.
    """
    return _parse(Path(place), parse_json(content, place))


def _parse(path: Path, body: Json) -> Manifest:
    if body.get("schema") != SCHEMA_NAME:
        raise _damaged(path, f"schema must be {SCHEMA_NAME!r}, found {body.get('schema')!r}")
    if body.get("version") != SCHEMA_VERSION:
        raise CorruptDataError(
            f"{path}: {SCHEMA_NAME} version {body.get('version')!r} is unknown, this program reads "
            f"version {SCHEMA_VERSION}; open it with the program that wrote it"
        )
    if body.keys() != _KEYS:
        raise _damaged(path, f"keys {sorted(body.keys() ^ _KEYS)} are missing or unknown")
    claimed = body.pop("digest")
    if claimed != (actual := _digest(body)):
        raise _damaged(path, f"its digest must be {claimed!r}, found {actual!r}")
    kind, created, meta, files = (body[key] for key in ("kind", "created", "meta", "files"))
    well_typed = isinstance(kind, str) and isinstance(created, str) and isinstance(meta, dict)
    if not well_typed or not isinstance(files, dict):
        raise _damaged(path, "kind, created, meta and files must be two texts and two objects")
    entries = {name: _parse_file(path, name, entry) for name, entry in files.items()}
    return Manifest(kind, created, meta, entries)


def verify_folder(folder: Path) -> Manifest:
    """The manifest of the committed ``folder``, whose files are exactly those that it lists.

    Every file is read, and its SHA-256 compared.

    Raises:
        CorruptDataError: a file is missing, extra, of another size, or of other content; the first
            one is named.
    """
    manifest = read_manifest(folder)
    found = _list_files(folder)
    if missing := sorted(manifest.files.keys() - found):
        raise _damaged(folder / missing[0], "listed in the manifest, but missing")
    if extra := sorted(found - manifest.files.keys() - {MANIFEST_NAME}):
        raise _damaged(folder / extra[0], "not listed in the manifest")
    for name, expected in manifest.files.items():
        _verify_file(folder / name, expected)
    return manifest


def verify_files(folder: Path, names: Collection[str]) -> Manifest:
    """The manifest of the committed ``folder``, after a look at those of its files in ``names``.

    Each is read, and its SHA-256 compared; the others may be missing.

    Raises:
        CorruptDataError: one is missing, not in the manifest, or damaged.
    """
    manifest = read_manifest(folder)
    for name in names:
        if name not in manifest.files:
            raise _damaged(folder / MANIFEST_NAME, f"does not list {name}")
        if not (folder / name).is_file():
            raise _damaged(folder / name, "listed in the manifest, but missing")
        _verify_file(folder / name, manifest.files[name])
    return manifest


def describe_file(path: Path) -> StoredFile:
    """Size and SHA-256 of the file at ``path``."""
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return StoredFile(file.tell(), sha256)


def describe_bytes(content: bytes) -> StoredFile:
    """Size and SHA-256 of a file's content."""
    return StoredFile(len(content), hashlib.sha256(content).hexdigest())


def _verify_file(path: Path, expected: StoredFile) -> None:
    num_bytes = path.stat().st_size
    if num_bytes != expected.num_bytes:
        raise _damaged(path, f"must have {expected.num_bytes} bytes, found {num_bytes}")
    if (sha256 := describe_file(path).sha256) != expected.sha256:
        raise _damaged(path, f"must have SHA-256 {expected.sha256[:12]}…, found {sha256[:12]}…")


def _list_files(folder: Path) -> set[str]:
    names = set()
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise _damaged(path, "neither a plain file nor a folder")
        if path.is_file():
            names.add(path.relative_to(folder).as_posix())
    return names


def _parse_file(path: Path, name: str, entry: object) -> StoredFile:
    parts = PurePosixPath(name).parts
    stays_inside = "/".join(parts) == name and ".." not in parts and "\0" not in name
    if not stays_inside or not parts or name == MANIFEST_NAME:
        raise _damaged(path, f"lists {name!r}, which is not a path inside the folder")
    match entry:
        case {"bytes": int(num_bytes), "sha256": str(sha256), **others} if not others:
            if num_bytes >= 0 and _SHA256.fullmatch(sha256):
                return StoredFile(num_bytes, sha256)
    raise _damaged(path, f"the entry of {name!r} must be {{bytes, sha256}}, found {entry!r}")


def _digest(body: Json) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _damaged(path: Path, fault: str) -> CorruptDataError:
    way_out = "restore it from a copy, or delete its folder so that it is made again"
    return CorruptDataError(f"{path}: {fault}; {way_out}")
