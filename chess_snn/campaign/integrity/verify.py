"""Check a campaign: every byte, every game, and everything that receipts say.

Nothing is written and no lock is taken, so it may run beside the campaign: committed artifacts do
not change, and unfinished ones are left out. Receipts are listed first, so that everything they
name exists when it is looked for; notes on what was quarantined or removed are read last, so that
they account for everything that went meanwhile.
"""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from typing import Any, Final, Literal

from chess_snn.campaign.artifacts import table
from chess_snn.campaign.artifacts.artifact import Artifact, Fault, Key, Stored, Whole
from chess_snn.campaign.integrity.preflight import check_settings
from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder
from chess_snn.campaign.store.notes import Event, Note
from chess_snn.errors import CampaignError, CorruptDataError, UnknownVersionError
from chess_snn.types import Json, Progress

SCHEMA: Final = 1

SETTING: Final = "setting"
NOTE: Final = "note"
"""Kinds of findings that are not those of one artifact; :func:`.table.kinds` has the others."""

_ABSENT: Final[tuple[Event, ...]] = ("quarantined", "dropped")
"""Last events of artifacts that are not there, and their states."""

State = Literal[
    "damaged", "lost", "differs", "unknown version", "removed", "quarantined", "dropped",
    "rebuilt",
]
DAMAGE: Final[frozenset[State]] = frozenset({"damaged", "lost", "differs", "unknown version"})
"""States without an explanation. A note in the folder explains the others."""

STATE_WORDS: Final[dict[State, str]] = {
    "damaged": "not what was committed",
    "lost": "named by a receipt, and missing",
    "differs": "intact, and not what its receipt says",
    "unknown version": "of a format that this program does not read",
    "removed": "removed by `chess-snn gc`",
    "quarantined": "corrupt and quarantined; rebuilt when it is needed",
    "dropped": "corrupt and quarantined; training continues without it",
    "rebuilt": "rebuilt, and not quite what its receipt says",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One artifact that is not as it was committed."""

    kind: str
    path: str
    """Path in the campaign, with ``/`` between parts."""
    state: State
    text: str
    """One line: what is wrong, or why it is not there."""

    @property
    def is_damage(self) -> bool:
        """Return whether no note explains it."""
        return self.state in DAMAGE


@dataclass(slots=True)
class Findings:
    """Counts of what was checked, and what is not as it was committed."""

    checked: Counter[str] = field(default_factory=Counter)
    """Artifacts, by kind."""
    found: list[Finding] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    """Paths of all that were found."""
    num_games: int = 0
    """Games of self-play, replayed to their ends."""
    num_positions: int = 0
    num_match_games: int = 0
    num_bytes: int = 0
    """Bytes of intact shards and checkpoints."""
    seconds: float = 0.0

    @property
    def kinds(self) -> tuple[str, ...]:
        """Everything that is counted, in the order of the report."""
        return SETTING, *table.kinds()

    @property
    def is_whole(self) -> bool:
        """Return whether nothing is corrupt, lost or unreadable."""
        return not self.damage

    @property
    def damage(self) -> list[Finding]:
        """Findings that no note explains."""
        return [finding for finding in self.found if finding.is_damage]

    def add(self, kind: str, path: str, state: State, text: str) -> None:
        """Add a finding, unless there is one of the same path."""
        if path not in self.paths:
            self.paths.add(path)
            self.found.append(Finding(kind, path, state, text))

    def count(self, kind: str, states: Iterable[State]) -> int:
        """Artifacts of ``kind`` in one of ``states``."""
        wanted = set(states)
        return len({f.path for f in self.found if f.kind == kind and f.state in wanted})

    def to_json(self) -> Json:
        """Counts, and every finding with whether it is damage."""
        return {
            "schema": SCHEMA,
            "is_whole": self.is_whole,
            "checked": {kind: self.checked[kind] for kind in self.kinds},
            "games": self.num_games,
            "positions": self.num_positions,
            "match_games": self.num_match_games,
            "bytes": self.num_bytes,
            "seconds": round(self.seconds, 3),
            "findings": [asdict(f) | {"is_damage": f.is_damage} for f in self.found],
        }


def verify_campaign(
    folder: CampaignFolder, *, num_workers: int = 1, on_progress: Progress | None = None
) -> Findings:
    """Check every artifact in ``folder``; shards by ``num_workers`` processes, if there are many.

    ``on_progress`` is called often, with (folders checked, in all).
    """
    begun, findings = time.monotonic(), Findings()
    findings.checked[SETTING] += 1
    try:
        check_settings(folder)
    except CampaignError as error:
        findings.add(SETTING, CONFIG_FILE, "differs", str(error))
    checked = [artifact for artifact in table.ARTIFACTS if artifact.check is not None]
    listed = {
        artifact: table.all_stored(folder, artifact) for artifact in checked
        if artifact.counted_as != NOTE and artifact.is_used(folder)
    }
    total, done = sum(len(found) for kind, found in listed.items() if kind.is_folder), count(1)
    verification = _Verification(folder, findings)
    for artifact, found in listed.items():
        for _ in verification.check(artifact, found, num_workers):
            if artifact.is_folder and on_progress is not None:
                on_progress(next(done), total)
    verification.check_notes()
    for artifact in checked:
        verification.compare(artifact)
    verification.add_absent()
    findings.seconds = time.monotonic() - begun
    return findings


def check(folder: CampaignFolder, stored: Stored) -> Whole | Fault:
    """One artifact, or what is wrong with it."""
    read = stored.artifact.check
    assert read is not None
    try:
        return read(folder, stored.path(folder))
    except UnknownVersionError as error:
        return Fault("unknown version", str(error))
    except CorruptDataError as error:
        return Fault("damaged", str(error))


@dataclass(slots=True)
class _Verification:
    """State of a verification: what was read so far."""

    folder: CampaignFolder
    findings: Findings
    contents: defaultdict[str, dict[Key, Any]] = field(default_factory=lambda: defaultdict(dict))
    notes: dict[str, Note] = field(default_factory=dict)
    """Newest note of each artifact, by path."""
    removed: set[str] = field(default_factory=set)
    """Paths of what was removed on purpose."""

    def check(
        self, artifact: Artifact, found: Sequence[Stored], num_workers: int
    ) -> Iterator[None]:
        """Read all of one kind; yields after each."""
        outcomes: Iterable[Whole | Fault] = (check(self.folder, stored) for stored in found)
        if artifact.audit is not None:
            paths = [stored.path(self.folder) for stored in found]
            outcomes = artifact.audit(self.folder, paths, num_workers)
        for stored, outcome in zip(found, outcomes, strict=True):
            self._take(stored, outcome)
            yield

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
        for path, told in artifact.expected(self.folder, self.contents):
            key = artifact.parse(path)
            content = None if key is None else self.contents[artifact.name].get(key)
            if content is None:
                if path not in self.findings.paths:
                    self.findings.add(artifact.counted_as, *self._explain(path))
            elif told is not None and (wrong := "; ".join(artifact.differences(told, content))):
                note = self.notes.get(path)
                was_rebuilt = note is not None and note.event == "rebuilt" and artifact.make
                state: State = "rebuilt" if was_rebuilt else "differs"
                self.findings.add(artifact.counted_as, path, state, wrong)

    def add_absent(self) -> None:
        """Add what is in quarantine, is not there, and no receipt names."""
        for path, note in self.notes.items():
            if note.event in _ABSENT and not (self.folder.path / path).exists():
                stored = table.named(path)  # a corrupt note may name anything
                kind = NOTE if stored is None else stored.artifact.counted_as
                self.findings.add(kind, path, note.event, note.why)

    def _take(self, stored: Stored, outcome: Whole | Fault) -> None:
        artifact, findings = stored.artifact, self.findings
        findings.checked[artifact.counted_as] += 1
        if isinstance(outcome, Whole):
            self.contents[artifact.name][stored.key] = outcome.content
            findings.num_bytes += outcome.num_bytes
            findings.num_games += outcome.num_games
            findings.num_positions += outcome.num_positions
            findings.num_match_games += outcome.num_match_games
        elif os.path.lexists(stored.path(self.folder)):  # else it was moved or removed meanwhile
            self.contents[artifact.name][stored.key] = None
            findings.add(artifact.counted_as, stored.name, outcome.state, outcome.text)

    def _explain(self, path: str) -> tuple[str, State, str]:
        """Why nothing is at ``path``: the path to report, its state, and a line."""
        for place in (path, path.rpartition("/")[0]):
            if place in self.removed:
                return place, "removed", "removed by `chess-snn gc`, as noted in removals/"
        note = self.notes.get(path)
        if note is not None and note.event in _ABSENT:
            return path, note.event, note.why
        return path, "lost", "it was committed and is missing; resume makes it again"
