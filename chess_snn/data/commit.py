"""The commit protocol: a folder appears under its name complete and on the disk, or not at all.

The reason why anything may be killed at any moment. Read ``staged_folder``, by which every artifact
is written. File 11 of 16 of the spine in docs/architecture.md.

Write into a temporary sibling, sync every file and folder, write MANIFEST.json last, sync it,
rename the sibling onto its target, sync the parent. A process killed at any instant leaves at most
a temporary folder, which no reader opens and :func:`chess_snn.data.sweep_temporaries` removes.
A Zip file that stands for a folder is committed in the same order.

Committed folders are copied, or linked::

    copy_folder(folder, elsewhere)       # every byte compared with the manifest
    link_folder(folder, beside)          # the same files under another name, where that is possible
"""

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from chess_snn.data import archive
from chess_snn.data.files import (
    make_folder,
    staged_file,
    sync_file,
    sync_folder,
    take_name,
    temporary_sibling,
    walk,
    write_synced,
    writing,
)
from chess_snn.data.manifest import (
    ARCHIVE_NAME,
    MANIFEST_NAME,
    Manifest,
    StoredFile,
    describe_bytes,
    describe_file,
    is_archive,
    is_committed,
    read_archive,
    read_manifest,
    verify_folder,
)
from chess_snn.errors import CorruptDataError
from chess_snn.failpoints import failpoint
from chess_snn.types import Json


class StagedFolder:
    """A folder in the making: write into :attr:`path`, then :meth:`commit` once."""

    def __init__(self, target: Path, path: Path) -> None:
        self.target = target
        self.path = path

    def commit(self, kind: str, meta: Json) -> Manifest:
        """Make the folder visible as its target, for good.

        Args:
            kind: what the folder is, e.g. ``"shard"``.
            meta: what to note in the manifest; JSON values only.

        Returns:
            The manifest of the target. Where another writer committed the same target first, that
            is the other's manifest, and this folder's content is discarded.

        Raises:
            CorruptDataError: the target exists, and not as a committed folder.
        """
        manifest = Manifest(kind, utc_now(), meta, _sync_tree(self.path))
        failpoint(f"{kind}.staged")
        write_synced(self.path / MANIFEST_NAME, [manifest.to_text().encode()])
        sync_folder(self.path)
        failpoint(f"{kind}.sealed")
        return self._put_in_place(manifest)

    def commit_copy(self, manifest: Manifest, *, is_on_disk: bool = False) -> Manifest:
        """Make the folder visible as :meth:`commit` does, under the manifest that lies in it.

        Args:
            manifest: that one, with which all files were compared.
            is_on_disk: the files are links to committed ones; only folders are synced.
        """
        if is_on_disk:
            for parent, _, _ in walk(self.path):
                sync_folder(Path(parent))
        else:
            _sync_tree(self.path)
        return self._put_in_place(manifest)

    def _put_in_place(self, manifest: Manifest) -> Manifest:
        try:
            self.path.rename(self.target)
        except OSError as error:
            if error.errno not in {errno.EEXIST, errno.ENOTEMPTY}:
                raise
            return adopt(self.target)
        failpoint(f"{manifest.kind}.renamed")
        sync_folder(self.target.parent)
        return manifest


def adopt(folder: Path) -> Manifest:
    """The manifest of what another writer committed; its name is on the disk then.

    The other may have been killed between the rename and the sync.

    Raises:
        DamagedFolderError: ``folder`` is not a committed folder.
    """
    manifest = read_manifest(folder)
    sync_folder(folder.parent)
    return manifest


@contextmanager
def staged_folder(target: Path) -> Iterator[StagedFolder]:
    """A temporary sibling of ``target`` to write into; leaving without a commit removes it.

    ::

        with staged_folder(target) as stage:
            (stage.path / "weights.bin").write_bytes(weights)
            manifest = stage.commit(kind="weights", meta={"generation": 3})

    Raises:
        UsageError: the disk is full or the place may not be written; nothing is left behind.
    """
    with writing(target):
        make_folder(target.parent)
        stage = StagedFolder(target, temporary_sibling(target))
        stage.path.mkdir()
        try:
            yield stage
        finally:
            # Gone after a commit. Where removal fails, the error on its way up says more.
            shutil.rmtree(stage.path, ignore_errors=True)


def _sync_tree(folder: Path) -> dict[str, StoredFile]:
    files = {}
    for parent, _, names in walk(folder):
        for name in sorted(names):
            path = Path(parent, name)
            files[path.relative_to(folder).as_posix()] = describe_file(path)
            sync_file(path)
        sync_folder(Path(parent))
    return files


def commit_archive(target: Path, files: Mapping[str, bytes], kind: str, meta: Json) -> Manifest:
    """Commit ``files``, by name, as the Zip file ``target``.

    Other arguments and the result are those of :meth:`StagedFolder.commit`.

    Raises:
        UsageError: the disk is full or the place may not be written; nothing is left behind.
        CorruptDataError: the target exists, and is not committed.
        ValueError: there are too many bytes, or ``meta`` is too long.
    """
    zipped = archive.pack(files)
    manifest = Manifest(kind, utc_now(), meta, {ARCHIVE_NAME: describe_bytes(zipped)})
    sealed = archive.with_comment(zipped, manifest.to_text().encode())
    with staged_file(target) as stage:
        with stage.open("xb") as file:
            file.write(zipped)
            _sync(file)
            failpoint(f"{kind}.staged")
            end = len(zipped) - len(archive.NO_COMMENT)
            file.seek(end)
            file.write(sealed[end:])
            _sync(file)
        failpoint(f"{kind}.sealed")
        return _put_file_in_place(stage, target, manifest)


def _put_file_in_place(stage: Path, target: Path, manifest: Manifest) -> Manifest:
    if not take_name(stage, target):
        return adopt(target)
    failpoint(f"{manifest.kind}.renamed")
    sync_folder(target.parent)
    return manifest


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def utc_now() -> str:
    """The time now as files keep it: ISO 8601, UTC, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def link_folder(source: Path, target: Path) -> Manifest:
    """Commit the folder ``source`` as ``target`` too, by hard links; by a copy on another disk.

    Links cost neither room nor time, and the files are one: damage to a file is damage to both.
    What is linked is not read. Where ``target`` is committed already, it stays as it is.

    Returns:
        The manifest of ``target``.

    Raises:
        CorruptDataError: ``source`` is not a committed folder, or a file of it is missing; or a
            copy is not what was committed.
        UsageError: the disk is full or the place may not be written; nothing is left behind.
    """
    manifest = read_manifest(source)
    if is_committed(target):
        return read_manifest(target)
    if is_archive(source):
        with staged_file(target) as file:
            if _link(source, file):
                return _put_file_in_place(file, target, manifest)
    else:
        with staged_folder(target) as stage:
            names = (MANIFEST_NAME, *manifest.files)
            if all(_link(source / name, stage.path / name) for name in names):
                return stage.commit_copy(manifest, is_on_disk=True)
    return copy_folder(source, target)


def copy_folder(source: Path, target: Path) -> Manifest:
    """Commit the folder ``source`` as ``target`` too, by a copy.

    Where ``target`` is committed already, it stays as it is.

    Returns:
        The manifest of ``target``.

    Raises:
        CorruptDataError: ``source`` or the copy is not what was committed, or ``target`` exists,
            and not as a committed folder.
        UsageError: the disk is full or the place may not be written; nothing is left behind.
    """
    if is_committed(target):
        return read_manifest(target)
    if is_archive(source):
        manifest, content = read_archive(source)
        with staged_file(target) as file:
            write_synced(file, [content])
            return _put_file_in_place(file, target, manifest)
    manifest = verify_folder(source)
    with staged_folder(target) as stage:
        for name in (MANIFEST_NAME, *manifest.files):
            make_folder((stage.path / name).parent)
            shutil.copyfile(source / name, stage.path / name)
        try:
            manifest = verify_folder(stage.path)
        except CorruptDataError as error:
            raise CorruptDataError(f"{source} was not copied whole to {target}: {error}") from error
        return stage.commit_copy(manifest)


def _link(source: Path, target: Path) -> bool:
    """Make ``target`` the file ``source``; False on another disk, or one without links."""
    if not source.is_file():
        raise CorruptDataError(f"{source} is missing, and its manifest lists it; restore it")
    make_folder(target.parent)
    try:
        os.link(source, target)
    except OSError:
        return False
    return True
