"""Quarantine corrupt artifacts, and rebuild those of a running campaign from their inputs.

A shard follows from the generation that played it, a generation from the one before and its window
of shards, the first generation from the seed. So a corrupt artifact is quarantined, and making it
again gives the same; corrupt inputs are rebuilt first. What cannot be rebuilt, because its inputs
were removed, is dropped if the campaign can go on without it, such as a shard; otherwise the
campaign ends until the user restores it. What came from another campaign is copied from there.
An artifact that nothing makes, such as a pretraining checkpoint, is only quarantined.

Code that reads a corrupt folder gets a DamagedFolderError, calls :meth:`Rebuilder.rebuild`, and
tries again. Of a stopped campaign, :func:`repair_campaign` quarantines what verify found, so that
the rest can be continued.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from chess_snn.campaign.artifacts.artifact import Stored
from chess_snn.campaign.artifacts.table import CHECKPOINT, named, stored_at
from chess_snn.campaign.integrity.verify import NOTE, Finding, Findings
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.notes import is_removed, quarantine, write_note
from chess_snn.campaign.store.origin import Origin
from chess_snn.campaign.store.receipts import read_receipt, read_receipts
from chess_snn.campaign.strength.champions import champion_of
from chess_snn.data import is_committed, link_folder, read_manifest, verify_folder
from chess_snn.errors import (
    BeyondRepairError,
    CampaignError,
    CorruptDataError,
    DamagedFolderError,
    RemovedError,
    UnknownVersionError,
)

_Outcome = TypeVar("_Outcome")

MOST_TIMES: Final = 3
"""How often one process rebuilds an artifact; a disk that corrupts it again is broken."""

MOST_READINGS: Final = 10
"""How often work is repeated that reads corrupt data from an artifact that is intact here."""


def make_here(folder: CampaignFolder, stored: Stored) -> Any:
    """Make an artifact in this process."""
    assert stored.artifact.make is not None
    return stored.artifact.make(folder.path, *stored.key)


@dataclass(slots=True)
class Rebuilder:
    """Rebuilds corrupt artifacts of one campaign, for all threads of the process that runs it."""

    folder: CampaignFolder
    log: Callable[[str], None]
    """Told, in a line each, what is corrupt and what is done about it."""
    make: Callable[[CampaignFolder, Stored], object] = make_here
    """Makes one and returns once it is committed; may meet further corrupt data."""
    pause_s: float = 1.0
    """Before an artifact that is intact here is read again where it was not."""
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _under_way: list[Stored] = field(default_factory=list)
    _times: Counter[Stored] = field(default_factory=Counter)

    def rebuild(self, error: DamagedFolderError, times_before: int = 0) -> None:
        """Quarantine what ``error`` names, and rebuild or drop it.

        ``times_before`` is how often the same work has met the same artifact.

        Raises:
            DamagedFolderError: ``error`` itself, if it names no artifact that can be quarantined.
            BeyondRepairError: it cannot be rebuilt, and the campaign cannot go on without it; or
                it is intact here, and others keep reading it otherwise.
        """
        with self._lock:
            stored = None if error.folder is None else stored_at(self.folder, error.folder)
            if stored is None or not stored.artifact.after_repair:
                raise error
            if not _is_whole(self.folder, stored):
                self._rebuild(stored, error)
                return
        if times_before:  # else another thread had it rebuilt first
            self._wait_for_reader(stored, error, times_before)

    def run(self, work: Callable[[], _Outcome]) -> _Outcome:
        """``work()``, repeated after each corrupt artifact that it meets is rebuilt."""
        met: Counter[Path | None] = Counter()
        while True:
            try:
                return work()
            except DamagedFolderError as error:
                self.rebuild(error, met[error.folder])
                met[error.folder] += 1

    def rebuild_missing(self) -> None:
        """Rebuild what :func:`missing_generations` names. Raises as :meth:`rebuild`."""
        for generation in missing_generations(self.folder):
            self.run(partial(read_manifest, self.folder.checkpoint(generation)))

    def _rebuild(self, stored: Stored, error: DamagedFolderError) -> None:
        artifact, path = stored.artifact, stored.path(self.folder)
        self._refuse_hopeless(stored)
        self._times[stored] += 1
        target = quarantine(self.folder, path, str(error))
        where = "it is gone" if target is None else f"quarantined in {target}"
        if artifact.make is None:
            self.log(f"DAMAGED: {error}. {artifact.after_repair.capitalize()}; {where}")
            return
        self.log(f"DAMAGED: {error}. Rebuilding {stored}; {where}")
        self._under_way.append(stored)
        try:
            self._make(stored)
        except (BeyondRepairError, RemovedError) as failure:
            if not artifact.is_optional:
                raise
            write_note(self.folder, path, "dropped", str(failure))
            self.log(
                f"DROPPED: {stored} cannot be rebuilt ({failure}); training continues without it"
            )
        else:
            told = f"{stored} was rebuilt" + self._difference(stored)
            write_note(self.folder, path, "rebuilt", f"{error}; {told}")
            self.log(told)
        finally:
            self._under_way.remove(stored)

    def _wait_for_reader(
        self, stored: Stored, error: DamagedFolderError, times_before: int
    ) -> None:
        """Let it be read again, a bounded number of times."""
        if times_before >= MOST_READINGS:
            raise BeyondRepairError(
                f"{stored.path(self.folder)} is intact here, but a worker read it as corrupt "
                f"{times_before + 1} times ({error}); check the memory and mounts of the workers"
            )
        self.log(f"{str(stored).capitalize()} is intact here; a worker reads it otherwise: {error}")
        time.sleep(self.pause_s)

    def _refuse_hopeless(self, stored: Stored) -> None:
        path = stored.path(self.folder)
        if stored in self._under_way:
            raise BeyondRepairError(
                f"{stored} is corrupt and depends on itself; restore {path} from a copy"
            )
        if self._times[stored] >= MOST_TIMES:
            raise BeyondRepairError(
                f"{stored} was rebuilt {MOST_TIMES} times and is corrupt again; check the disk of "
                f"{path}"
            )

    def _make(self, stored: Stored) -> None:
        artifact, path = stored.artifact, stored.path(self.folder)
        if is_removed(self.folder, path):
            raise BeyondRepairError(
                f"{stored} was removed by `chess-snn gc`, and is needed; restore {path} from a copy"
            )
        if self._copy_from_parent(stored):
            return
        try:
            artifact.check_inputs(self.folder, *stored.key)
        except RemovedError as error:
            raise BeyondRepairError(f"{error}; restore {path} from a copy") from error
        self.run(lambda: self.make(self.folder, stored))

    def _copy_from_parent(self, stored: Stored) -> bool:
        """Copy what came from the campaign's parent; whether it did."""
        origin, path = self.folder.origin, stored.path(self.folder)
        if origin is None or (source := origin.source_of(stored.name)) is None:
            return False
        try:
            _check_parent(origin)
            verify_folder(source)
            link_folder(source, path)
        except (CampaignError, CorruptDataError) as error:
            raise BeyondRepairError(
                f"{stored} came from campaign {origin.campaign}, and cannot be copied from there "
                f"again ({error}); restore {path} from a copy"
            ) from error
        return True

    def _difference(self, stored: Stored) -> str:
        """Whether a rebuilt generation has the weights that its receipt names."""
        generation = int(stored.key[0]) if stored.artifact is CHECKPOINT else 0
        if generation == 0 or not self.folder.receipt(generation - 1).exists():
            return ""
        noted = read_receipt(self.folder, generation - 1).training.weights_digest
        made = str(read_manifest(stored.path(self.folder)).meta["weights_digest"])
        if made == noted:
            return f", with the same weights ({made[:12]}…)"
        return (
            f", and its weights differ ({made[:12]}…) from those of its receipt ({noted[:12]}…), "
            "with which scores and ratings were measured"
        )


def _is_whole(folder: CampaignFolder, stored: Stored) -> bool:
    """Whether it is there, and what was committed; raises an UnknownVersionError."""
    check = stored.artifact.check
    try:
        return check is not None and check(folder, stored.path(folder)) is not None
    except UnknownVersionError:
        raise
    except CorruptDataError:
        return False


def _check_parent(origin: Origin) -> None:
    """Raise a CampaignError unless the parent's folder still has that campaign."""
    found = CampaignFolder.open(Path(origin.folder)).campaign_id
    if found != origin.campaign_id:
        raise CampaignError(
            f"{origin.folder} holds campaign {found} now; put {origin.campaign} "
            f"({origin.campaign_id}) back"
        )


def missing_generations(folder: CampaignFolder) -> list[int]:
    """The newest generation of a finished iteration and the champion, if they are not there.

    A campaign is run for them, and no later iteration may ever read them.
    """
    receipts = read_receipts(folder)
    wanted = {len(receipts), champion_of(folder, receipts)} if receipts else set()
    return sorted(
        generation for generation in wanted
        if generation is not None and not is_committed(folder.checkpoint(generation))
    )


@dataclass(frozen=True, slots=True)
class Repair:
    """The result of repairing one corrupt artifact."""

    path: str
    """Path in the campaign, with ``/`` between parts."""
    is_repaired: bool
    """Whether this no longer keeps the campaign from being continued."""
    text: str
    """Says what was done and what follows; or what the user must do."""


def repair_campaign(folder: CampaignFolder, findings: Findings) -> list[Repair]:
    """Quarantine what ``findings`` call damaged; the caller holds the campaign's lock.

    Raises:
        UsageError: the folder cannot be written.
    """
    damage = findings.damage
    # A note that cannot be read may say why an artifact is not there.
    are_notes_whole = all(finding.kind != NOTE for finding in damage)
    return [
        Repair(finding.path, *_repair(folder, finding, are_notes_whole)) for finding in damage
    ]


def _repair(folder: CampaignFolder, finding: Finding, are_notes_whole: bool) -> tuple[bool, str]:
    """Whether the artifact of ``finding`` is repaired, and how."""
    stored = named(finding.path)
    if stored is None or not stored.artifact.after_repair:
        return False, f"left as it is ({finding.text}); restore it from a copy"
    artifact, path = stored.artifact, folder.path / finding.path
    if artifact.restore is not None and finding.state != "unknown version":
        quarantine(folder, path, finding.text)
        if not artifact.restore(folder, stored.key):
            return True, f"quarantined; {artifact.after_repair}"
        write_note(folder, path, "rebuilt", "from the receipt of its iteration")
        return True, "quarantined, and restored from its receipt"
    if refusal := _refusal(folder, finding, stored, are_notes_whole):
        return False, f"left as it is: {refusal}"
    if finding.state == "lost":
        write_note(folder, path, "quarantined", finding.text)  # which accounts for it
        return True, artifact.after_repair
    target = quarantine(folder, path, finding.text)
    return True, f"quarantined in {target}; {artifact.after_repair}"


def _refusal(
    folder: CampaignFolder, finding: Finding, stored: Stored, are_notes_whole: bool
) -> str | None:
    """Why an artifact is not quarantined; None if it can be."""
    if finding.state in {"differs", "unknown version"}:
        return f"{finding.text}; restore it from a copy"
    needed = tuple(stored.artifact.resume_inputs(folder, stored.key))
    if not are_notes_whole and (needed or finding.state == "lost"):
        return (
            "a note that may account for it cannot be read; restore that one from a copy, and "
            "repair again"
        )
    if any(is_removed(folder, place) for place in needed):
        return "what it was made from was removed by `chess-snn gc`; restore it from a copy"
    return None
