"""Check a campaign: every byte, every game, and everything that receipts say.

Nothing is written and no lock is taken, so it may run beside the campaign: committed artifacts do
not change, and unfinished ones are left out. Receipts are listed first, so that everything they
name exists when it is looked for; notes on what was quarantined or removed are read last, so that
they account for everything that went meanwhile.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from chess_snn.campaign.artifacts import table
from chess_snn.campaign.artifacts.artifact import Artifact, Fault, Key, Stored, Whole
from chess_snn.campaign.integrity.findings import NOTE, SETTING, Findings, State
from chess_snn.campaign.integrity.preflight import check_settings
from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder
from chess_snn.campaign.store.notes import Event, Note
from chess_snn.errors import CampaignError, CorruptDataError, UnknownVersionError
from chess_snn.types import Progress

_ABSENT: Final[tuple[Event, ...]] = ("quarantined", "dropped")
"""Last events of artifacts that are not there, and their states."""


def verify_campaign(
    folder: CampaignFolder, *, num_workers: int = 1, on_progress: Progress | None = None
) -> Findings:
    """Check every artifact in ``folder``; shards by ``num_workers`` processes, if there are many.

    ``on_progress`` is called often, with (folders checked, in all).
    """
    begun, findings = time.monotonic(), Findings()
    _check_settings(folder, findings)
    checked = [artifact for artifact in table.ARTIFACTS if artifact.codec.check is not None]
    listed = {
        artifact: table.all_stored(folder, artifact) for artifact in checked
        if artifact.counted_as != NOTE and artifact.is_used(folder)
    }
    total = sum(len(found) for artifact, found in listed.items() if artifact.codec.is_folder)
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, total)

    verification = _Verification(folder, findings)
    for artifact, found in listed.items():
        verification.check(artifact, found, num_workers, count)
    verification.check_notes()
    for artifact in checked:
        verification.compare(artifact)
    verification.add_absent()
    findings.seconds = time.monotonic() - begun
    return findings


def check(folder: CampaignFolder, stored: Stored) -> Whole | Fault:
    """One artifact, or what is wrong with it."""
    read = stored.artifact.codec.check
    assert read is not None
    try:
        return read(folder, stored.path(folder))
    except UnknownVersionError as error:
        return Fault("unknown version", str(error))
    except CorruptDataError as error:
        return Fault("damaged", str(error))


def _check_settings(folder: CampaignFolder, findings: Findings) -> None:
    findings.checked[SETTING] += 1
    try:
        check_settings(folder)
    except CampaignError as error:
        findings.add(SETTING, CONFIG_FILE, "differs", str(error))


@dataclass(slots=True)
class _Verification:
    """What was read so far."""

    folder: CampaignFolder
    findings: Findings
    contents: defaultdict[str, dict[Key, Any]] = field(default_factory=lambda: defaultdict(dict))
    by_path: dict[str, Any] = field(default_factory=dict)
    """Contents of intact artifacts."""
    notes: dict[str, Note] = field(default_factory=dict)
    """By path, the newest note of each artifact."""
    removed: set[str] = field(default_factory=set)
    """Paths of what was removed on purpose."""

    def check(
        self, artifact: Artifact, found: Sequence[Stored], num_workers: int,
        count: Callable[[], None],
    ) -> None:
        """Read all of one kind; ``count`` is called for each folder."""
        for stored, outcome in self._outcomes(artifact, found, num_workers):
            self._take(stored, outcome)
            if artifact.codec.is_folder:
                count()

    def check_notes(self) -> None:
        """Read why artifacts are not there."""
        for artifact in (table.NOTE, table.REMOVAL):
            for stored in table.all_stored(self.folder, artifact):
                self._take(stored, check(self.folder, stored))
        for note in map(self.contents[table.NOTE.name].get, sorted(self.contents[table.NOTE.name])):
            if note is not None:
                self.notes[note.path] = note
        for removal in self.contents[table.REMOVAL.name].values():
            if removal is not None:
                self.removed |= {entry.path for entry in removal.removed}

    def compare(self, artifact: Artifact) -> None:
        """Compare what receipts say of one kind with what is there."""
        known = {finding.path for finding in self.findings.found}
        for path, told in artifact.expected(self.folder, self.contents):
            if path not in self.by_path:
                if path not in known:
                    self._add(artifact, *self._explain(path), known)
            elif told is not None:
                differences = "; ".join(artifact.differences(told, self.by_path[path]))
                note = self.notes.get(path)
                was_rebuilt = note is not None and note.event == "rebuilt"
                if differences:
                    state: State = "rebuilt" if was_rebuilt and artifact.make else "differs"
                    self._add(artifact, path, state, differences, known)

    def add_absent(self) -> None:
        """Add what is in quarantine, is not there, and no receipt names."""
        known = {finding.path for finding in self.findings.found}
        for path, note in self.notes.items():
            is_there = (self.folder.path / path).exists()
            if note.event in _ABSENT and not is_there and path not in known:
                stored = table.named(path)  # a corrupt note may name anything
                kind = NOTE if stored is None else stored.artifact.counted_as
                self.findings.add(kind, path, note.event, note.why)

    def _outcomes(
        self, artifact: Artifact, found: Sequence[Stored], num_workers: int
    ) -> Iterator[tuple[Stored, Whole | Fault]]:
        if artifact.codec.audit is None:
            for stored in found:
                yield stored, check(self.folder, stored)
            return
        paths = [stored.path(self.folder) for stored in found]
        for number, outcome in artifact.codec.audit(self.folder, paths, num_workers):
            yield found[number], outcome

    def _take(self, stored: Stored, outcome: Whole | Fault) -> None:
        artifact, findings = stored.artifact, self.findings
        findings.checked[artifact.counted_as] += 1
        if isinstance(outcome, Whole):
            self.contents[artifact.name][stored.key] = outcome.content
            self.by_path[stored.name] = outcome.content
            findings.count_in(outcome)
        elif os.path.lexists(stored.path(self.folder)):  # else it was moved or removed meanwhile
            self.contents[artifact.name][stored.key] = None
            findings.add(artifact.counted_as, stored.name, outcome.state, outcome.text)

    def _add(
        self, artifact: Artifact, path: str, state: State, text: str, known: set[str]
    ) -> None:
        if path not in known:
            known.add(path)
            self.findings.add(artifact.counted_as, path, state, text)

    def _explain(self, path: str) -> tuple[str, State, str]:
        """Why nothing is at ``path``: the path to report, its state, and a line."""
        for place in (path, path.rpartition("/")[0]):
            if place in self.removed:
                return place, "removed", "removed by `chess-snn gc`, as noted in removals/"
        note = self.notes.get(path)
        if note is not None and note.event in _ABSENT:
            return path, note.event, note.why
        return path, "lost", "it was committed and is missing; resume makes it again"
