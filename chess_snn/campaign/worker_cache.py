"""Stages on a worker that does not see the campaign folder: files in, artifacts out.

The campaign names the committed files that a stage reads, each with its digest, and works out the
values that depend on anything else. The worker fetches the files that it does not have yet, runs
the stage in a folder where they have the paths that they have in the campaign, and returns what the
stage left there; the campaign commits it. What was fetched is kept for later jobs, up to a limit.
"""

import errno
import shutil
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from chess_snn.campaign.artifacts import table
from chess_snn.campaign.artifacts.artifact import Artifact, Input
from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder
from chess_snn.campaign.store.typed_json import FileMark, file_mark
from chess_snn.data import (
    MANIFEST_NAME,
    CommittedCopy,
    StoredFile,
    commit_copy,
    copy_folder,
    create_text,
    read_manifest,
)
from chess_snn.data.manifest import describe_bytes, describe_file
from chess_snn.errors import CampaignError, DamagedFolderError

_KEPT_DIGESTS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of the campaign that a stage reads."""

    path: str
    """Relative to the campaign folder, with ``/`` between parts."""
    artifact: str
    """The path of what it is part of."""
    content: StoredFile


@dataclass(frozen=True, slots=True)
class Job:
    """What a stage reads to make one artifact."""

    files: tuple[InputFile, ...]
    values: tuple[Any, ...]
    """The stage's last argument, if it takes one."""


Fetch = Callable[[InputFile], bytes]
"""Fetches a file from the campaign."""

Outputs = Mapping[str, CommittedCopy | str]
"""Copies of committed folders, and the text of single files, by path in the campaign."""


def job_of(folder: CampaignFolder, artifact: Artifact, *arguments: Any) -> Job:
    """The job of making one artifact; ``arguments`` as for :attr:`Artifact.make`.

    Raises:
        DamagedFolderError: an input is missing, or its manifest is corrupt.
    """
    assert artifact.inputs is not None
    inputs = [Input(folder.path / CONFIG_FILE), *artifact.inputs(folder, *arguments)]
    return Job(
        tuple(file for entry in inputs for file in _files_of(folder, entry)),
        () if artifact.values is None else (artifact.values(folder, *arguments),),
    )


def _files_of(folder: CampaignFolder, entry: Input) -> Iterator[InputFile]:
    name = folder.name_of(entry.path)
    if entry.path.is_file():
        yield InputFile(name, name, _describe(entry.path, file_mark(entry.path)))
        return
    files, manifest = read_manifest(entry.path).files, entry.path / MANIFEST_NAME
    yield InputFile(f"{name}/{MANIFEST_NAME}", name, _describe(manifest, file_mark(manifest)))
    for file in entry.files or files:
        yield InputFile(f"{name}/{file}", name, files[file])


@lru_cache(maxsize=_KEPT_DIGESTS)
def _describe(path: Path, mark: FileMark) -> StoredFile:
    del mark  # part of the key: a file that was made again has another
    return describe_file(path)


def read_input(folder: CampaignFolder, file: InputFile) -> bytes:
    """The content of ``file`` in the campaign.

    Raises:
        DamagedFolderError: it is gone, or something else.
        CampaignError: this user may not read it.
    """
    path, content = folder.path / file.path, b""
    try:
        content = path.read_bytes()
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.EIO}:
            raise CampaignError(f"cannot read {path}: {error.strerror}") from error
    if describe_bytes(content) != file.content:
        raise DamagedFolderError(
            f"{path} is not what its manifest lists ({len(content)} bytes of "
            f"{file.content.num_bytes}, or others); restore it from a copy, or delete its folder "
            "so that it is made again",
            folder.path / file.artifact,
        )
    return content


@contextmanager
def job_folder(
    cache: Path, campaign: Path, files: Sequence[InputFile], fetch: Fetch
) -> Iterator[Path]:
    """A folder with ``files`` under their paths in the campaign, for the length of the block.

    Files that are in ``cache`` are not fetched; it belongs to this process, which has one such
    folder at a time. ``campaign`` is the campaign's folder, elsewhere.

    Raises:
        DamagedFolderError: the block found damage in the folder; names the artifact in
            ``campaign``.
    """
    folder = cache / "campaign"
    folder.mkdir(parents=True)
    try:
        for file in files:
            content, path = cache / file.content.sha256, folder / file.path
            if not content.exists():
                keep(content, fetch(file))
            content.touch()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.hardlink_to(content)
        yield folder
    except DamagedFolderError as error:
        if error.folder is None or not error.folder.is_relative_to(folder):
            raise
        for file in files:
            if folder / file.artifact == error.folder:  # should it be this disk that rots
                (cache / file.content.sha256).unlink(missing_ok=True)
        raise DamagedFolderError(
            str(error), campaign / error.folder.relative_to(folder)
        ) from error
    finally:
        shutil.rmtree(folder)


def keep(path: Path, content: bytes) -> None:
    """Write a file of a cache, in a folder that exists: whole, or not at all."""
    partial = path.with_suffix(f".{uuid.uuid4().hex}")
    partial.write_bytes(content)
    partial.replace(path)


def read_kept(path: Path) -> bytes | None:
    """The file of a cache whose name is its digest; None if it is not there, or was damaged."""
    content = path.read_bytes() if path.exists() else b""
    if describe_bytes(content).sha256 == path.name:
        return content
    path.unlink(missing_ok=True)
    return None


def trim(cache: Path, limit_bytes: int, in_use: Collection[str] = ()) -> None:
    """Delete what was used longest ago of ``cache``, but for ``in_use``, while it is too much."""
    facts = {path: path.stat() for path in cache.iterdir() if path.is_file()}
    excess = sum(fact.st_size for fact in facts.values()) - limit_bytes
    for path in sorted(facts, key=lambda path: facts[path].st_mtime_ns):
        if excess > 0 and path.name not in in_use:
            path.unlink()
            excess -= facts[path].st_size


def read_outputs(place: Path, files: Sequence[InputFile]) -> Outputs:
    """All artifacts in ``place`` that are not among ``files``, every digest checked."""
    folder, given = CampaignFolder.open(place), {file.artifact for file in files}
    left = {
        stored.name: stored for artifact in table.ARTIFACTS
        for stored in table.all_stored(folder, artifact) if stored.name not in given
    }
    # In this order the report of a ladder test comes after its matches, as it must be committed.
    return {
        name: copy_folder(place / name) if left[name].artifact.is_folder
        else (place / name).read_text(encoding="utf-8")
        for name in sorted(left)
    }


def commit_outputs(folder: CampaignFolder, outputs: Outputs) -> None:
    """Commit what a stage left on a worker; what is there already stays as it is.

    Raises:
        CorruptDataError: it did not arrive whole.
    """
    for name, content in outputs.items():
        if isinstance(content, str):
            create_text(folder.path / name, content)
        else:
            commit_copy(folder.path / name, content)
