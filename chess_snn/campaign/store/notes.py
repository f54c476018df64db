"""Notes on artifacts that are not where they were committed: corrupt, removed, or rebuilt.

::

    quarantine/
      games.iter-000003.shard-0001.0000/       the corrupt folder, as it was found
      games.iter-000003.shard-0001.0000.json   why it is there
      games.iter-000003.shard-0001.0001.json   that it was rebuilt, or that training continues
      without
    removals/
      removal-0000.json                        what `chess-snn gc` removed

A note is written before the artifact is moved or removed, so a process that is killed in between
leaves no loss without a note. The writer holds the campaign's lock, or works for the process that
does. Notes stay when the folders in quarantine are deleted.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.receipts import lost_receipt
from chess_snn.campaign.store.typed_json import RecordFormat, numbered_files
from chess_snn.data import StoredFormat, create_text, is_committed, read_manifest, utc_now
from chess_snn.data.files import make_folder, sync_folder, writing
from chess_snn.errors import RemovedError
from chess_snn.types import Json
from chess_snn.wording import counted

Event = Literal["quarantined", "rebuilt", "dropped"]
"""Events of an artifact: it was corrupt and is in quarantine; it was rebuilt from its inputs; or
it cannot be rebuilt, and training continues without it."""

@dataclass(frozen=True, slots=True)
class Note:
    """One event of one artifact."""

    path: str
    """Path of the artifact in the campaign, with ``/`` between parts."""
    event: Event
    why: str
    created: str
    """ISO 8601, UTC."""


@dataclass(frozen=True, slots=True)
class Removed:
    """One folder or file that was removed, or was about to be."""

    path: str
    """Path in the campaign, with ``/`` between parts."""
    bytes: int
    created: str | None
    """When it had been committed: ISO 8601, UTC; None if it was not a committed folder."""


@dataclass(frozen=True, slots=True)
class Removal:
    """Everything that was removed at one time."""

    created: str
    """ISO 8601, UTC."""
    removed: list[Removed]


NOTES: Final = RecordFormat(Note, StoredFormat("quarantine note", version=2))
REMOVALS: Final = RecordFormat(Removal, StoredFormat("removal", version=1))


def quarantine(folder: CampaignFolder, path: Path, why: str) -> Path | None:
    """Move what is at ``path`` into quarantine.

    Returns:
        Where it is now; None if there was nothing.

    Raises:
        UsageError: the campaign's folder cannot be written.
    """
    if not os.path.lexists(path):  # a broken link exists
        return None
    target = write_note(folder, path, "quarantined", why).with_suffix("")
    with writing(target):
        path.rename(target)
        sync_folder(path.parent)
        sync_folder(target.parent)
    return target


def write_note(folder: CampaignFolder, path: Path, event: Event, why: str) -> Path:
    """Note what happened to the artifact at ``path``; returns the note's file."""
    name = folder.name_of(path)
    note = Note(name, event, why, utc_now())
    make_folder(folder.quarantine)
    number = 0
    while True:
        file = folder.quarantine / f"{name.replace('/', '.')}.{number:04d}.json"
        if not file.with_suffix("").exists() and create_text(file, NOTES.text(note)):
            return file
        number += 1


def read_notes(folder: CampaignFolder) -> list[Note]:
    """All notes; those of one artifact in order. Raises as :meth:`RecordFormat.read`."""
    return [NOTES.read(path) for path in sorted(folder.quarantine.glob("*.json"))]


def dropped_names(folder: CampaignFolder) -> frozenset[str]:
    """Paths in the campaign of dropped shards."""
    if not folder.quarantine.is_dir():  # as in nearly every campaign
        return frozenset()
    return frozenset(last_events(read_notes(folder), "dropped"))


def last_events(notes: Sequence[Note], event: Event) -> dict[str, Note]:
    """Artifacts whose last event is ``event``, by path."""
    newest = {note.path: note for note in notes}
    return {path: note for path, note in newest.items() if note.event == event}


def note_removal(folder: CampaignFolder, removed: Sequence[Removed]) -> Path:
    """Note that all of ``removed`` are about to go; returns the note's file."""
    removal = Removal(utc_now(), list(removed))
    number = 0
    while not create_text(folder.removal(number), REMOVALS.text(removal)):
        number += 1
    return folder.removal(number)


def read_removals(folder: CampaignFolder) -> dict[str, Removed]:
    """Everything that was ever removed, rebuilt or not, by path. Raises as :func:`read_notes`."""
    files = numbered_files(folder.removal)
    return {entry.path: entry for file in files for entry in REMOVALS.read(file).removed}


def is_removed(folder: CampaignFolder, path: Path) -> bool:
    """Whether ``path``, or the folder it is in, was removed and is not there."""
    if path.exists():
        return False
    place = path.relative_to(folder.path)
    removals = read_removals(folder)
    return any(name.as_posix() in removals for name in (place, place.parent))


def refuse_removed(folder: CampaignFolder, generation: int) -> None:
    """Raise a RemovedError if the network of ``generation`` was removed on purpose."""
    if is_removed(folder, folder.checkpoint(generation)):
        raise RemovedError(
            f"generation {generation} of {folder.path} was removed by `chess-snn gc`; use one "
            f"that is there: chess-snn models list {folder.path}"
        )


def created_of(folder: CampaignFolder, generation: int) -> tuple[str, bool]:
    """When ``generation`` was committed, and whether its network is still there.

    Raises:
        DamagedFolderError: its manifest is corrupt, or is missing without a note.
    """
    path = folder.checkpoint(generation)
    if not is_committed(path):
        entry = read_removals(folder).get(folder.name_of(path))
        if entry is not None and entry.created is not None:
            return entry.created, False
    return read_manifest(path).created, True


def missing_facts(folder: CampaignFolder) -> Json:
    """The first lost receipt, and numbers of what was removed or corrupt."""
    removed = [path for path in read_removals(folder) if not (folder.path / path).exists()]
    notes, lost = read_notes(folder), lost_receipt(folder)
    return {
        "lost_receipt": None if lost is None else folder.name_of(lost),
        "removed_iterations": sum(path.startswith("games/") for path in removed),
        "removed_generations": sum(path.startswith("checkpoints/") for path in removed),
        "quarantined": len({note.path for note in notes if note.event == "quarantined"}),
        "rebuilt": len(last_events(notes, "rebuilt")),
        "dropped": len(last_events(notes, "dropped")),
    }


def missing_notices(folder: CampaignFolder) -> list[str]:
    """:func:`missing_facts` in a line or two; none if everything is there."""
    facts, notices = missing_facts(folder), list[str]()
    if facts["lost_receipt"] is not None:
        notices.append(
            f"{facts['lost_receipt']} is missing, so its iteration and all later ones count as "
            f"unfinished. Restore it from a copy, or: chess-snn verify {folder.path} --repair"
        )
    if facts["removed_iterations"] or facts["removed_generations"]:
        notices.append(
            f"Removed by `chess-snn gc`: the games of "
            f"{counted(facts['removed_iterations'], 'iteration')}, and "
            f"{counted(facts['removed_generations'], 'generation')}. Figures of them stay."
        )
    if facts["quarantined"]:
        notices.append(
            f"Corrupt and quarantined: {facts['quarantined']:,} artifacts, of which "
            f"{facts['rebuilt']:,} were rebuilt and {facts['dropped']:,} dropped. Details: "
            f"chess-snn verify {folder.path}"
        )
    return notices
