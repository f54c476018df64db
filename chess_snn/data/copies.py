"""Copies of committed folders: in memory, on their way from one disk to another; or on one disk.

::

    copy = copy_folder(folder)           # every byte compared with the manifest
    commit_copy(elsewhere, copy)         # and again; there whole and on the disk, or not at all
    link_folder(folder, beside)          # the same files under another name, where that is possible
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chess_snn.data.commit import staged_folder
from chess_snn.data.files import make_folder
from chess_snn.data.manifest import (
    MANIFEST_NAME,
    Manifest,
    is_committed,
    read_folder,
    read_manifest,
    verify_folder,
)
from chess_snn.errors import CorruptDataError


@dataclass(frozen=True, slots=True)
class FolderCopy:
    """All bytes of a committed folder."""

    manifest: bytes
    """Of MANIFEST.json."""
    files: Mapping[str, bytes]
    """By path relative to the folder, as the manifest lists them."""

    @property
    def num_bytes(self) -> int:
        """Of everything."""
        return len(self.manifest) + sum(map(len, self.files.values()))


def copy_folder(folder: Path) -> FolderCopy:
    """The content of the committed ``folder``.

    Raises:
        CorruptDataError: it is not what was committed.
    """
    manifest = (folder / MANIFEST_NAME).read_bytes() if is_committed(folder) else b""
    return FolderCopy(manifest, read_folder(folder)[1])


def commit_copy(target: Path, copy: FolderCopy) -> Manifest:
    """Commit ``copy`` as ``target``; where that is committed already, it stays as it is.

    Returns:
        The manifest of ``target``.

    Raises:
        CorruptDataError: what arrived is not what the manifest lists, or ``target`` exists, and not
            as a committed folder.
        UsageError: the disk is full or the place may not be written; nothing is left behind.
    """
    if is_committed(target):
        return read_manifest(target)
    with staged_folder(target) as stage:
        for name, content in ((MANIFEST_NAME, copy.manifest), *copy.files.items()):
            path = (stage.path / name).resolve()
            if not path.is_relative_to(stage.path.resolve()):
                raise CorruptDataError(f"the copy of {target} holds {name!r}, which leaves it")
            make_folder(path.parent)
            path.write_bytes(content)
        try:
            manifest = verify_folder(stage.path)
        except CorruptDataError as error:
            raise CorruptDataError(f"the copy of {target} did not arrive whole: {error}") from error
        return stage.commit_copy(manifest)


def link_folder(source: Path, target: Path) -> Manifest:
    """Commit the folder ``source`` as ``target`` too, by hard links; by copies on another disk.

    Links cost neither room nor time, and the files are one: damage to a file is damage to both.
    What is linked is not read; copies are compared with the manifest. Where ``target`` is committed
    already, it stays as it is.

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
    with staged_folder(target) as stage:
        is_linked = True
        for name in (MANIFEST_NAME, *manifest.files):
            path = stage.path / name
            make_folder(path.parent)
            is_linked &= _link(source / name, path)
        if not is_linked:
            verify_folder(stage.path)
        return stage.commit_copy(manifest, is_on_disk=is_linked)


def _link(source: Path, target: Path) -> bool:
    """Make ``target`` the file ``source``, or a copy of it; whether it is a link."""
    if not source.is_file():
        raise CorruptDataError(f"{source} is missing, and its manifest lists it; restore it")
    try:
        os.link(source, target)
    except OSError:  # another disk, or one without links
        shutil.copyfile(source, target)
        return False
    return True
