"""A part of a campaign folder on the disk of a worker that does not see the campaign's own.

A job names the inputs and outputs of making one artifact. The worker fetches the inputs into its
cache, under the paths that they have in the campaign, so that the work is the same; the campaign
commits the outputs. Inputs are kept for the next job, up to a limit; those used longest ago go
first. A cache belongs to one process, and may vanish.
"""

import errno
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from chess_snn.campaign.artifacts import table
from chess_snn.campaign.artifacts.artifact import Artifact, Input
from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder
from chess_snn.campaign.store.notes import dropped_names
from chess_snn.data import (
    MANIFEST_NAME,
    CommittedCopy,
    StoredFile,
    commit_copy,
    copy_folder,
    create_text,
    read_manifest,
)
from chess_snn.data.manifest import describe_bytes, describe_file, is_archive
from chess_snn.errors import CampaignError, DamagedFolderError

_FILE = ".json"
"""Ends the names of single files."""
_NOTES = (table.NOTE, table.REMOVAL)
_KEPT_DIGESTS = 1 << 16
"""Of manifests."""


@dataclass(frozen=True, slots=True)
class InputFolder:
    """A committed folder, or some of its files."""

    path: str
    """Relative to the campaign folder, with ``/`` between parts."""
    manifest: StoredFile
    """Its manifest, which identifies the content of the whole folder; of a Zip file, the file."""
    is_file: bool = False
    """Whether it is a Zip file that stands for a folder."""
    names: tuple[str, ...] | None = None
    """Files that are read, by path within it; None: all."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is read to make one artifact, and what is left."""

    folders: tuple[InputFolder, ...]
    files: tuple[str, ...]
    """Single files that are read, relative to the campaign folder."""
    outputs: tuple[str, ...]
    """Committed folders and single files (``.json``) that are there when it is done; a ``*`` stands
    for several that are not known before. The artifact itself is last."""


def job_of(folder: CampaignFolder, artifact: Artifact, *arguments: Any) -> Job:
    """The job of making one artifact; ``arguments`` as for :attr:`Artifact.make`.

    Raises:
        DamagedFolderError: an input is missing, or its manifest is corrupt.
    """
    assert artifact.inputs is not None
    inputs = list(artifact.inputs(folder, *arguments))
    single = [entry.path for entry in inputs if entry.path.suffix == _FILE]
    # Notes say which shards a replay window goes without.
    notes = (stored.path(folder) for kind in _NOTES for stored in table.all_stored(folder, kind))
    return Job(
        tuple(input_folder(folder, entry) for entry in inputs if entry.path.suffix != _FILE),
        (CONFIG_FILE, *map(folder.name_of, [*single, *notes])),
        artifact.outputs(*arguments),
    )


def input_folder(folder: CampaignFolder, entry: Input) -> InputFolder:
    """A committed folder as it is now.

    Raises:
        DamagedFolderError: it is missing, or its manifest is corrupt.
    """
    is_file = is_archive(entry.path)
    manifest = entry.path if is_file else entry.path / MANIFEST_NAME
    if not manifest.exists():
        read_manifest(entry.path)  # raises what is wrong
    facts = manifest.stat()
    described = _described(manifest, facts.st_ino, facts.st_mtime_ns)
    return InputFolder(folder.name_of(entry.path), described, is_file, entry.files)


@lru_cache(maxsize=_KEPT_DIGESTS)
def _described(path: Path, inode: int, mtime_ns: int) -> StoredFile:
    """A file with that inode and time; one that was made again has others."""
    del inode, mtime_ns
    return describe_file(path)


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file of the campaign that a cache lacks."""

    path: str
    """Relative to the campaign folder, with ``/`` between parts."""
    content: StoredFile


Fetch = Callable[[Sequence[WantedFile]], Iterable[bytes]]
"""Fetches files from the campaign, in their order."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job left in a cache, on its way to the campaign."""

    folders: Mapping[str, CommittedCopy]
    """By path relative to the campaign folder."""
    files: Mapping[str, str]
    """Text of single files, likewise."""


@dataclass(frozen=True, slots=True)
class _Kept:
    content: InputFolder
    num_bytes: int


class WorkerCache:
    """The part of one campaign that this process has."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        """An empty one.

        Args:
            path: is made, and belongs to the cache.
            limit_bytes: beyond this, everything but the inputs of the present job is deleted.
        """
        self.path = path
        self._limit_bytes = limit_bytes
        self._kept: dict[str, _Kept] = {}
        """By path; what was used last is last."""

    def load(
        self, folders: Sequence[InputFolder], files: Mapping[str, bytes], fetch: Fetch
    ) -> None:
        """Have ``folders`` complete and ``files`` written; what is here already is not fetched.

        Raises:
            DamagedFolderError: what came is not what its manifest lists; names the folder here.
        """
        absent = [folder for folder in folders if not self._has(folder)]
        for folder in absent:
            kept = self._kept.get(folder.path)
            if kept is None or kept.content.manifest != folder.manifest:
                self._forget(folder.path)  # another had this place, or did not come whole
        self._fetch(
            (
                (folder, "" if folder.is_file else MANIFEST_NAME, folder.manifest)
                for folder in absent
            ),
            fetch,
        )
        self._fetch(
            (
                (folder, name, content)
                for folder in absent for name, content in self._wanted(folder)
            ),
            fetch,
        )
        for folder in folders:
            kept = self._kept.pop(folder.path, None)
            if folder in absent or kept is None:
                contents = [content for _, content in self._wanted(folder)] or [folder.manifest]
                kept = _Kept(folder, sum(content.num_bytes for content in contents))
            self._kept[folder.path] = kept
        for name, text in files.items():
            self._write(name, text)
        in_use = {folder.path for folder in folders}
        self._forget_dropped(in_use)
        self._trim(in_use)

    def collect(self, outputs: Iterable[str]) -> Outcome:
        """What a job left, every digest checked; :meth:`discard` removes it."""
        folders = {name: copy_folder(self.path / name) for name in outputs if not _is_file(name)}
        files = {
            path.relative_to(self.path).as_posix(): path.read_text(encoding="utf-8")
            for name in outputs if _is_file(name) for path in self._files(name)
        }
        return Outcome(folders, files)

    def discard(self, outputs: Iterable[str]) -> None:
        """Remove what a job left: the campaign has it, or it will be made again."""
        for name in outputs:
            if not _is_file(name):
                self._forget(name)
                continue
            for path in self._files(name):
                path.unlink(missing_ok=True)

    def _files(self, name: str) -> list[Path]:
        """The file, or all that a ``*`` stands for."""
        return sorted(self.path.glob(name)) if "*" in name else [self.path / name]

    def _has(self, folder: InputFolder) -> bool:
        kept = self._kept.get(folder.path)
        if kept is None or kept.content.manifest != folder.manifest:
            return False
        return kept.content.names in (None, folder.names)

    def _wanted(self, folder: InputFolder) -> Iterator[tuple[str, StoredFile]]:
        """The files to fetch after the manifest; a Zip file comes with it."""
        if folder.is_file:
            return iter(())
        files = read_manifest(self.path / folder.path).files
        names = files if folder.names is None else folder.names
        return ((name, files[name]) for name in names)

    def _fetch(
        self, wanted: Iterable[tuple[InputFolder, str, StoredFile]], fetch: Fetch
    ) -> None:
        lacking = [
            (folder, WantedFile(Path(folder.path, name).as_posix(), content))
            for folder, name, content in wanted if not (self.path / folder.path / name).is_file()
        ]
        contents = fetch([file for _, file in lacking])
        for (folder, file), content in zip(lacking, contents, strict=True):
            if describe_bytes(content) != file.content:
                raise DamagedFolderError(
                    f"{file.path} of the campaign is not what its manifest lists ({len(content)} "
                    f"bytes of {file.content.num_bytes}, or others); restore it from a copy, or "
                    "delete its folder so that it is made again",
                    self.path / folder.path,
                )
            self._write(file.path, content)

    def _write(self, name: str, content: bytes) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.partial")
        partial.write_bytes(content)
        partial.replace(path)

    def _forget_dropped(self, in_use: set[str]) -> None:
        """A job would read shards that the campaign has dropped, if they were here."""
        if not (self.path / table.NOTE.top).is_dir():  # as in nearly every campaign
            return
        for path in dropped_names(CampaignFolder.open(self.path)) & self._kept.keys() - in_use:
            self._forget(path)

    def _trim(self, in_use: set[str]) -> None:
        total = sum(kept.num_bytes for kept in self._kept.values())
        for path, kept in list(self._kept.items()):
            if total > self._limit_bytes and path not in in_use:
                self._forget(path)
                total -= kept.num_bytes

    def _forget(self, path: str) -> None:
        self._kept.pop(path, None)
        place = self.path / path
        if place.is_file():
            place.unlink()
        shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError):  # others are beside it, or it was never there
            place.parent.rmdir()


def take_in(folder: CampaignFolder, outcome: Outcome) -> None:
    """Commit what a job left in a cache; what is there already stays as it is.

    Raises:
        CorruptDataError: it did not arrive whole.
    """
    for name, copy in outcome.folders.items():
        commit_copy(folder.path / name, copy)
    for name, text in outcome.files.items():
        create_text(folder.path / name, text)


def read_shown(folder: CampaignFolder, path: str, first: int, num_bytes: int) -> bytes:
    """Part of a file that a worker asks for; empty if it is gone or cannot be read.

    A worker compares it with a manifest, so that an empty one is corrupt like any other.

    Raises:
        CampaignError: workers may not see it, or this user may not read it.
    """
    target = (folder.path / path).resolve()
    tops = {artifact.top for artifact in table.backed_up(is_folder=True)}
    shown = [(folder.path / top).resolve() for top in tops]
    if not any(target.is_relative_to(root) for root in shown):
        raise CampaignError(f"{path} is not among the files of a campaign that workers may read")
    try:
        with target.open("rb") as file:
            file.seek(first)
            return file.read(num_bytes)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.EIO}:
            return b""
        raise CampaignError(f"cannot read {target}: {error.strerror}") from error


def _is_file(name: str) -> bool:
    """Otherwise it is a committed folder."""
    return name.endswith(_FILE)
