"""What was removed from a campaign on purpose, so that nobody takes it for lost.

A removal is noted before anything goes: one that was killed half-way is told from a loss too.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.typed_json import from_json
from chess_snn.data import StoredFormat, create_text, is_committed, read_json, read_manifest
from chess_snn.errors import CorruptDataError, RemovedError

FORMAT: Final = StoredFormat("removal", version=1)
_WAY_OUT: Final = "restore it from a copy"
"""Nothing else says what was removed."""


@dataclass(frozen=True, slots=True)
class Removed:
    """One folder or file that was removed, or was to be."""

    path: str
    """In the campaign, with ``/`` between parts."""
    bytes: int
    created: str | None
    """When it had been committed: ISO 8601, UTC; None of what is no committed folder."""


@dataclass(frozen=True, slots=True)
class _Removal:
    """What was removed at one time."""

    created: str
    """ISO 8601, UTC."""
    removed: list[Removed]


def note_removal(folder: CampaignFolder, removed: Sequence[Removed]) -> Path:
    """Note that all of ``removed`` are about to go; returns the note's file."""
    removal = _Removal(datetime.now(UTC).isoformat(timespec="seconds"), list(removed))
    body = {"schema": FORMAT.version} | asdict(removal)
    number = 0
    while not create_text(folder.removal(number), json.dumps(body, indent=1) + "\n"):
        number += 1
    return folder.removal(number)


def read_removals(folder: CampaignFolder) -> dict[str, Removed]:
    """By path, everything that was ever removed; some of it may have been made again.

    Raises:
        CorruptDataError: a note is damaged.
        UnknownVersionError: one is of a version that is not read.
    """
    found: dict[str, Removed] = {}
    number = 0
    while (path := folder.removal(number)).exists():
        found |= {entry.path: entry for entry in _read_note(path)}
        number += 1
    return found


def is_removed(folder: CampaignFolder, path: Path) -> bool:
    """Whether ``path``, or the folder it is in, was removed and is not there."""
    if path.exists():
        return False
    place = path.relative_to(folder.path)
    removals = read_removals(folder)
    return any(name.as_posix() in removals for name in (place, place.parent))


def refuse_removed(folder: CampaignFolder, generation: int) -> None:
    """Say so where the network of ``generation`` was removed on purpose.

    Raises:
        RemovedError: it was.
    """
    if is_removed(folder, folder.checkpoint(generation)):
        raise RemovedError(
            f"generation {generation} of {folder.path} was removed by `chess-snn gc`; use one "
            f"that is there: chess-snn models list {folder.path}"
        )


def created_of(folder: CampaignFolder, generation: int) -> tuple[str, bool]:
    """When ``generation`` was committed, and whether its network is there still.

    Raises:
        DamagedFolderError: its manifest is damaged, or missing though nobody removed it.
    """
    path = folder.checkpoint(generation)
    if not is_committed(path):
        entry = read_removals(folder).get(folder.name_of(path))
        if entry is not None and entry.created is not None:
            return entry.created, False
    return read_manifest(path).created, True


def _read_note(path: Path) -> list[Removed]:
    body = read_json(path, _WAY_OUT)
    body = FORMAT.upgraded(body, body.pop("schema", None), path)
    try:
        return from_json(_Removal, body).removed
    except ValueError as error:
        raise CorruptDataError(f"{path} is no note of a removal ({error}); {_WAY_OUT}") from error
