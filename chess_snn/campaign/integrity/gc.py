"""Removal of what a campaign can do without: found first, and removed only on demand.

:mod:`chess_snn.campaign.artifacts.retention` decides what may go.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn.campaign.artifacts import table
from chess_snn.campaign.integrity.preflight import check_settings
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.notes import Removed, note_removal
from chess_snn.data import is_committed, read_manifest, sweep_temporaries
from chess_snn.data.files import dead_temporaries, remove
from chess_snn.data.manifest import stored_bytes
from chess_snn.errors import CorruptDataError
from chess_snn.types import Progress

LEFTOVERS: Final = "leftovers"
_WITHOUT_NOTE: Final = (LEFTOVERS, "quarantine")


@dataclass(frozen=True, slots=True)
class Disposable:
    """A file or folder that may go."""

    sort: str
    path: Path
    num_bytes: int
    why: str


def sorts() -> tuple[str, ...]:
    """Sorts of what may go, for ``--keep``."""
    found = (artifact.sort for artifact in table.ARTIFACTS if artifact.sort)
    return tuple(dict.fromkeys(found))


def find_disposable(folder: CampaignFolder, keep: Collection[str] = ()) -> list[Disposable]:
    """Everything in ``folder`` that may go, except the sorts to ``keep``; nothing is changed.

    Raises:
        CampaignError: a setting was changed, so that something else could be needed.
        CorruptDataError: a receipt or plan is corrupt, so that it is unknown what is needed.
    """
    check_settings(folder)
    found = [
        Disposable(artifact.sort, path, stored_bytes(path), why)
        for artifact in table.ARTIFACTS if artifact.sort not in keep
        for path, why in artifact.disposable(folder)
    ]
    if LEFTOVERS not in keep:
        found += [
            Disposable(LEFTOVERS, path, stored_bytes(path), "left by a process that died")
            for parent in _parents(folder) for path in dead_temporaries(parent)
        ]
    order = sorts()
    return _without_parts(sorted(found, key=lambda entry: order.index(entry.sort)))


def _without_parts(found: Sequence[Disposable]) -> list[Disposable]:
    """``found`` without what is inside another of them, or there already."""
    whole: dict[Path, Disposable] = {}
    for entry in found:
        whole.setdefault(entry.path, entry)
    return [entry for path, entry in whole.items() if whole.keys().isdisjoint(path.parents)]


def dispose(
    folder: CampaignFolder, disposable: Sequence[Disposable],
    on_progress: Progress | None = None,
) -> None:
    """Remove ``disposable``, after noting which of it was committed; the caller holds the lock.

    If it is killed, the next :func:`find_disposable` finds the rest again.

    Raises:
        UsageError: this user may not remove something; it is named.
    """
    committed = [
        _removed(folder, entry) for entry in disposable if entry.sort not in _WITHOUT_NOTE
    ]
    if committed:
        note_removal(folder, committed)
    for done, entry in enumerate(disposable, 1):
        remove(entry.path)
        if on_progress is not None:
            on_progress(done, len(disposable))


def _removed(folder: CampaignFolder, entry: Disposable) -> Removed:
    created = None
    if is_committed(entry.path):
        with suppress(CorruptDataError):  # it goes all the same
            created = read_manifest(entry.path).created
    return Removed(folder.name_of(entry.path), entry.num_bytes, created)


def sweep_leftovers(folder: CampaignFolder) -> int:
    """Delete temporary files of dead processes; returns their number. No artifact is touched."""
    return sum(len(sweep_temporaries(parent)) for parent in _parents(folder))


def _parents(folder: CampaignFolder) -> Iterator[Path]:
    """The campaign's folder, and those of artifacts, two levels deep; none of the servers."""
    yield folder.path
    for top in table.top_folders():
        root = folder.path / top
        if root.is_dir():
            yield root
            yield from (entry for entry in root.iterdir() if entry.is_dir())
