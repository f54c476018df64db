"""Committed folders in an object store.

A folder is there when its MANIFEST.json is: files are put first, the manifest last, and only if
there is none yet. A Zip file that stands for a folder is one object. Everything is compared with
its digests on the way in and on the way back.
"""

import json
import os
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

from chess_snn.data.commit import commit_copy, copy_folder, utc_now
from chess_snn.data.manifest import (
    MANIFEST_NAME,
    Manifest,
    StoredFile,
    describe_bytes,
    parse_archive,
    parse_manifest,
)
from chess_snn.errors import CorruptDataError, StorageError

if TYPE_CHECKING:
    from chess_snn.data.bucket import Bucket

_WRITER_FOLDER: Final = "writer"
_WRITER: Final = f"{_WRITER_FOLDER}/last.json"
"""Says who wrote last; putting it shows that one may. It is alone there, so that a look at what is
beside it tells in one answer whether one may list."""
_SIDE_BY_SIDE: Final = 8
"""Requests for the files of one folder."""


class ObjectStore:
    """The committed folders in a bucket."""

    def __init__(self, bucket: "Bucket") -> None:
        self.bucket = bucket

    def check(self) -> None:
        """See that one may write, read and list here.

        Raises:
            StorageError: permission is denied, or the store does not answer; gives the reason.
        """
        writer = {
            "host": socket.gethostname(), "pid": os.getpid(),
            "since": utc_now(),
        }
        self.bucket.put(_WRITER, json.dumps(writer).encode())
        listed = self.bucket.names(_WRITER_FOLDER)
        if self.bucket.get(_WRITER) is None or _WRITER not in listed:
            raise StorageError(
                f"{self.bucket.url} took {_WRITER} and does not show it; is it an S3 store?"
            )

    def committed(self, pattern: str) -> set[str]:
        """Names of the folders and Zip files that are there.

        Args:
            pattern: shell patterns for the parts of a name, such as ``checkpoints/gen-*``.
        """
        names = self.bucket.names(pattern.partition("/")[0])
        found = {name.removesuffix(f"/{MANIFEST_NAME}") for name in names}
        return {name for name in found if _matches(name, pattern)}

    def put_folder(self, name: str, folder: Path) -> int:
        """Commit a copy of the committed ``folder``; how many bytes were sent.

        Raises:
            CorruptDataError: ``folder`` is damaged; nothing of it is sent.
            StorageError: other files are there under this name, or the store refuses or is away.
        """
        copy = copy_folder(folder)
        if isinstance(copy, bytes):
            return self._commit_archive(name, copy)
        return self._commit(name, copy)

    def put_files(self, name: str, kind: str, files: Mapping[str, bytes]) -> int:
        """Commit ``files``, by path, as a folder that is on no disk; how many bytes were sent.

        Raises:
            StorageError: as :meth:`put_folder`.
        """
        described = {path: describe_bytes(content) for path, content in files.items()}
        created = utc_now()
        manifest = Manifest(kind, created, {}, described)
        return self._commit(name, {MANIFEST_NAME: manifest.to_text().encode(), **files})

    def get_manifest(self, name: str) -> Manifest:
        """Of the folder ``name``, itself verified.

        Raises:
            CorruptDataError: it is missing or damaged.
        """
        return parse_manifest(self._manifest_bytes(name), self._place(name, MANIFEST_NAME))

    def get_files(self, name: str) -> dict[str, bytes]:
        """All files of the folder ``name``, MANIFEST.json too; every digest is checked.

        Raises:
            CorruptDataError: a file is missing or damaged; it is named.
        """
        content = self._manifest_bytes(name)
        files = parse_manifest(content, self._place(name, MANIFEST_NAME)).files
        with ThreadPoolExecutor(_SIDE_BY_SIDE) as threads:
            contents = threads.map(
                lambda path: self._get_checked(f"{name}/{path}", files[path]), files
            )
            return {MANIFEST_NAME: content} | dict(zip(files, contents, strict=True))

    def get_folder(self, name: str, target: Path) -> Manifest:
        """Commit the folder ``name`` on the disk as ``target``.

        Raises:
            CorruptDataError: as :meth:`get_files`.
            UsageError: the disk is full or may not be written.
        """
        content = self.bucket.get(name)
        if content is None:
            return commit_copy(target, self.get_files(name))
        parse_archive(content, f"{self.bucket.url}/{name}")
        return commit_copy(target, content)

    def _commit_archive(self, name: str, content: bytes) -> int:
        if self.bucket.put_new(name, content):
            return len(content)
        there = parse_archive(self.bucket.get(name) or b"", f"{self.bucket.url}/{name}")
        if there.files != parse_archive(content, name).files:
            raise self._is_taken(name)
        return 0

    def _commit(self, name: str, copy: Mapping[str, bytes]) -> int:
        manifest = copy[MANIFEST_NAME]
        if self._has_same(name, manifest):
            return 0
        with ThreadPoolExecutor(_SIDE_BY_SIDE) as threads:
            puts = threads.map(
                lambda path: self.bucket.put(f"{name}/{path}", copy[path]),
                copy.keys() - {MANIFEST_NAME},
            )
            list(puts)  # raises what one of them raised
        if not self.bucket.put_new(f"{name}/{MANIFEST_NAME}", manifest):
            # Another writer was faster, or the answer to our own put was lost.
            self._has_same(name, manifest)
        return sum(map(len, copy.values()))

    def _has_same(self, name: str, manifest: bytes) -> bool:
        """Whether the folder is there.

        Raises:
            StorageError: it is, with other files.
        """
        content = self.bucket.get(f"{name}/{MANIFEST_NAME}")
        if content is None:
            return False
        there = parse_manifest(content, self._place(name, MANIFEST_NAME))
        if there.files != parse_manifest(manifest, name).files:
            raise self._is_taken(name)
        return True

    def _is_taken(self, name: str) -> StorageError:
        return StorageError(
            f"{self.bucket.url}/{name} holds other files than are to be put there: another "
            "campaign, or another run of this one, writes to it; choose another "
            "storage.object_store"
        )

    def _manifest_bytes(self, name: str) -> bytes:
        content = self.bucket.get(f"{name}/{MANIFEST_NAME}")
        if content is None:
            raise CorruptDataError(f"{self._place(name, MANIFEST_NAME)} is missing")
        return content

    def _get_checked(self, name: str, expected: StoredFile) -> bytes:
        content = self.bucket.get(name)
        if content is None:
            raise CorruptDataError(f"{self.bucket.url}/{name} is missing; its manifest lists it")
        if (found := describe_bytes(content)) != expected:
            raise CorruptDataError(
                f"{self.bucket.url}/{name} must have SHA-256 {expected.sha256[:12]}…, found "
                f"{found.sha256[:12]}…; restore an earlier version of it, if the bucket keeps them"
            )
        return content

    def _place(self, name: str, path: str) -> str:
        return f"{self.bucket.url}/{name}/{path}"


def _matches(name: str, pattern: str) -> bool:
    """Whether ``name`` matches ``pattern`` part by part."""
    parts, patterns = name.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))
