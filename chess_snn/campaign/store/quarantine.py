"""Damaged things of a campaign, set aside: what they were, why, and what became of them.

::

    quarantine/
      games.iter-000003.shard-0001.0000        the damaged file or folder, as it was found
      games.iter-000003.shard-0001.0000.json   why it lies there
      games.iter-000003.shard-0001.0001.json   that it was made again, or that windows go without it

Whoever sets something aside holds the campaign's lock, or works for the process that does. Notes
stay when the folders are thrown away.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.typed_json import from_json
from chess_snn.data import StoredFormat, create_text, read_json
from chess_snn.data.files import make_folder, sync_folder, writing
from chess_snn.errors import CorruptDataError

Event = Literal["set aside", "made again", "dropped"]
"""What happened to a thing: it was damaged and moved away; it was made again from what it had been
made of; or that is not possible, and windows of training go without it."""

FORMAT: Final = StoredFormat("quarantine note", version=1)
_WAY_OUT: Final = "restore it from a copy"
"""Nothing else accounts for what it speaks of."""


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that happened."""

    path: str
    """Of the thing, in the campaign, with ``/`` between parts."""
    event: Event
    why: str
    created: str
    """ISO 8601, UTC."""


def set_aside(folder: CampaignFolder, path: Path, why: str) -> Path | None:
    """Move what is at ``path`` into quarantine.

    The note is written before, so that nothing ever lies there without one.

    Returns:
        Where it is now; None where there was nothing.

    Raises:
        UsageError: the campaign's folder cannot be written.
    """
    if not os.path.lexists(path):  # a link to nowhere is there
        return None
    target = write_note(folder, path, "set aside", why).with_suffix("")
    with writing(target):
        path.rename(target)
        sync_folder(path.parent)
        sync_folder(target.parent)
    return target


def write_note(folder: CampaignFolder, path: Path, event: Event, why: str) -> Path:
    """Note what happened to the thing at ``path``; returns the note's file."""
    name = folder.name_of(path)
    note = Note(name, event, why, datetime.now(UTC).isoformat(timespec="seconds"))
    text = json.dumps({"schema": FORMAT.version} | asdict(note), indent=2) + "\n"
    make_folder(folder.quarantine)
    number = 0
    while True:
        file = folder.quarantine / f"{name.replace('/', '.')}.{number:04d}.json"
        if not file.with_suffix("").exists() and create_text(file, text):
            return file
        number += 1


def read_notes(folder: CampaignFolder) -> list[Note]:
    """All notes, those of one thing in order.

    Raises:
        CorruptDataError: one is damaged.
        UnknownVersionError: one is of a version that is not read.
    """
    return [_read_note(path) for path in sorted(folder.quarantine.glob("*.json"))]


def dropped_names(folder: CampaignFolder) -> frozenset[str]:
    """Paths in the campaign of what windows of training go without."""
    if not folder.quarantine.is_dir():  # as in nearly every campaign
        return frozenset()
    return frozenset(last_events(read_notes(folder), "dropped"))


def last_events(notes: Sequence[Note], event: Event) -> dict[str, Note]:
    """By path, the things to which ``event`` happened last."""
    newest = {note.path: note for note in notes}
    return {path: note for path, note in newest.items() if note.event == event}


def _read_note(path: Path) -> Note:
    body = read_json(path, _WAY_OUT)
    body = FORMAT.upgraded(body, body.pop("schema", None), path)
    try:
        return from_json(Note, body)
    except ValueError as error:
        raise CorruptDataError(
            f"{path} is no note of a quarantine ({error}); {_WAY_OUT}"
        ) from error

