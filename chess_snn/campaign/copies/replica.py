"""A part of a campaign folder on the disk of a worker that does not see the campaign's own.

Holds what stages need (:mod:`chess_snn.campaign.copies.needs`) under the paths that it has in the
campaign, so that a stage cannot tell the difference. What was brought for one stage is kept for the
next, up to a bound; what was used longest ago goes first. A replica belongs to one process, and may
vanish.
"""

import errno
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from chess_snn.campaign.copies.needs import NeededFolder
from chess_snn.campaign.store.folder import QUARANTINE, CampaignFolder
from chess_snn.campaign.store.quarantine import dropped_names
from chess_snn.data import (
    MANIFEST_NAME,
    CommittedCopy,
    StoredFile,
    commit_copy,
    copy_folder,
    create_text,
    read_manifest,
)
from chess_snn.data.manifest import describe_bytes
from chess_snn.errors import CampaignError, DamagedFolderError

_SHOWN = ("games", "checkpoints")
"""Folders of a campaign whose files workers may ask for."""


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file of the campaign that a replica lacks."""

    path: str
    """Relative to the campaign folder, with ``/`` between parts."""
    content: StoredFile


Fetch = Callable[[Sequence[WantedFile]], Iterable[bytes]]
"""Brings files from the campaign, in their order."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage left in a replica, on its way to the campaign."""

    folders: Mapping[str, CommittedCopy]
    """By path relative to the campaign folder."""
    files: Mapping[str, str]
    """Text of single files, likewise."""


@dataclass(frozen=True, slots=True)
class _Kept:
    needed: NeededFolder
    num_bytes: int


class Replica:
    """The part of one campaign that this process has."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        """An empty one.

        Args:
            path: is made, and belongs to the replica.
            limit_bytes: beyond this, what no stage needs at the moment is deleted.
        """
        self.path = path
        self._limit_bytes = limit_bytes
        self._kept: dict[str, _Kept] = {}
        """By path; what was used last is last."""

    def bring(
        self, folders: Sequence[NeededFolder], files: Mapping[str, bytes], fetch: Fetch
    ) -> None:
        """Have ``folders`` whole and ``files`` written; what is here already is not fetched.

        Raises:
            DamagedFolderError: what came is not what its manifest lists; names the folder here.
        """
        absent = [folder for folder in folders if not self._has(folder)]
        for folder in absent:
            kept = self._kept.get(folder.path)
            if kept is None or kept.needed.manifest != folder.manifest:
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

    def collect(self, leaves: Iterable[str]) -> Outcome:
        """What a stage left, every digest checked; :meth:`discard` removes it."""
        folders = {name: copy_folder(self.path / name) for name in leaves if not _is_file(name)}
        files = {
            path.relative_to(self.path).as_posix(): path.read_text(encoding="utf-8")
            for name in leaves if _is_file(name) for path in self._files(name)
        }
        return Outcome(folders, files)

    def discard(self, leaves: Iterable[str]) -> None:
        """Remove what a stage left: the campaign has it, or it is to be made again."""
        for name in leaves:
            if not _is_file(name):
                self._forget(name)
                continue
            for path in self._files(name):
                path.unlink(missing_ok=True)

    def _files(self, name: str) -> list[Path]:
        """The file, or all that a ``*`` stands for."""
        return sorted(self.path.glob(name)) if "*" in name else [self.path / name]

    def _has(self, folder: NeededFolder) -> bool:
        kept = self._kept.get(folder.path)
        if kept is None or kept.needed.manifest != folder.manifest:
            return False
        return kept.needed.names in (None, folder.names)

    def _wanted(self, folder: NeededFolder) -> Iterator[tuple[str, StoredFile]]:
        """The files to fetch after the manifest; a Zip file comes with it."""
        if folder.is_file:
            return iter(())
        files = read_manifest(self.path / folder.path).files
        names = files if folder.names is None else folder.names
        return ((name, files[name]) for name in names)

    def _fetch(
        self, wanted: Iterable[tuple[NeededFolder, str, StoredFile]], fetch: Fetch
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
        """A stage would take what windows go without, if it found it here."""
        if not (self.path / QUARANTINE).is_dir():  # as in nearly every campaign
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
    """Commit what a stage left in a replica; what is there already stays as it is.

    Raises:
        CorruptDataError: it did not arrive whole.
    """
    for name, copy in outcome.folders.items():
        commit_copy(folder.path / name, copy)
    for name, text in outcome.files.items():
        create_text(folder.path / name, text)


def read_shown(folder: CampaignFolder, path: str, first: int, num_bytes: int) -> bytes:
    """Part of a file that a worker asks for; nothing of one that is gone or cannot be read.

    A worker asks for what a manifest lists, and so takes nothing for damage, like other bytes.

    Raises:
        CampaignError: it is none of those that workers may see, or not for this user to read.
    """
    target = (folder.path / path).resolve()
    shown = [(folder.path / name).resolve() for name in _SHOWN]
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
    """Rather than a committed folder."""
    return name.endswith(".json")
