"""Receipts against what they name: is it there, and is it what they say?"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from chess_snn.campaign.keeping.findings import Findings, Kind, State
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.quarantine import Event, Note, read_notes
from chess_snn.campaign.store.receipts import Receipt, ShardFacts, TrainingFacts
from chess_snn.campaign.store.removals import Removed, read_removals
from chess_snn.data import Manifest
from chess_snn.data.audit import ShardAudit
from chess_snn.errors import CorruptDataError, UnknownVersionError
from chess_snn.types import Json

_Notes = TypeVar("_Notes")

CLOCKS: Final = ("seconds", "network_seconds")
"""Statistics that come out otherwise each time the same games are played."""
_TOLERANCE: Final = 1e-6
"""Of sums, whose order another number of threads may change."""
_ABSENT: Final[dict[Event, State]] = {"set aside": "set aside", "dropped": "dropped"}
"""States of what is not there, by what happened to it last."""
_KINDS: Final[dict[str, Kind]] = {
    "games": "shard", "checkpoints": "checkpoint", "supervised": "checkpoint", "plans": "plan",
    "receipts": "receipt", "matches": "match",
}
"""By the folder of a campaign that they lie in."""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What is known of things that are not where they were committed."""

    folder: CampaignFolder
    notes: Mapping[str, Note]
    """By path, the newest note of each thing."""
    removals: Mapping[str, Removed]
    """By path."""

    @classmethod
    def read(cls, folder: CampaignFolder, findings: Findings) -> "Whereabouts":
        """As the notes in ``folder`` say; those that cannot be read become findings."""
        notes: list[Note] = _read_all("quarantine", findings, partial(read_notes, folder)) or []
        removals: Mapping[str, Removed] = (
            _read_all("removals", findings, partial(read_removals, folder)) or {}
        )
        return cls(folder, {note.path: note for note in notes}, removals)

    def explain(self, path: str) -> tuple[str, State, str]:
        """Why nothing is at ``path``: the path to be told, its state, and a line."""
        parent = path.rpartition("/")[0]
        for removed in (path, parent):
            if removed in self.removals:
                return removed, "removed", "removed by `chess-snn gc`, as noted in removals/"
        note = self.notes.get(path)
        if note is not None and note.event in _ABSENT:
            return path, _ABSENT[note.event], note.why
        return path, "lost", "it was committed, and it is not there; resume makes it again"

    def was_made_again(self, path: str) -> bool:
        """Whether the thing at ``path`` is not the one of the receipt, as far as is noted."""
        return path in self.notes and self.notes[path].event == "made again"


def _read_all(place: str, findings: Findings, read: Callable[[], _Notes]) -> _Notes | None:
    """All notes in the folder ``place``; None, and a finding, where one cannot be read."""
    findings.checked["note"] += 1
    try:
        return read()
    except UnknownVersionError as error:
        findings.add("note", place, "unknown version", str(error))
    except CorruptDataError as error:
        findings.add("note", place, "damaged", str(error))
    return None


def compare_receipts(
    receipts: Mapping[int, Receipt], shards: Mapping[str, ShardAudit],
    manifests: Mapping[str, Manifest], whereabouts: Whereabouts, findings: Findings,
    inherited: Collection[str] = (),
) -> None:
    """Find what ``receipts`` name and is not there, or is otherwise than they say.

    Args:
        receipts: by iteration.
        shards: the whole ones, by path.
        manifests: of the whole checkpoints, by path.
        whereabouts: of what is not there.
        findings: are added to.
        inherited: names of shards that the campaign began with.
    """
    audit = _Comparison(whereabouts, findings, {finding.path for finding in findings.found})
    if receipts:
        path = "checkpoints/gen-000000"
        audit.take("checkpoint", path, () if path in manifests else None)
    for name in inherited:
        path = f"games/{name}"
        audit.take("shard", path, () if path in shards else None)
    for iteration, receipt in sorted(receipts.items()):
        for facts in receipt.shards:
            path = f"games/{facts.name}"
            audit.take(
                "shard", path, shard_differences(facts, shards[path]) if path in shards else None
            )
        path = f"checkpoints/gen-{iteration + 1:06d}"
        audit.take(
            "checkpoint", path,
            training_differences(receipt.training, manifests[path].meta) if path in manifests
            else None,
        )
    audit.tell_rest()


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Receipts against the whole things, one after another."""

    whereabouts: Whereabouts
    findings: Findings
    known: set[str]
    """Paths that something was said of already."""

    def take(self, kind: Kind, path: str, differences: Iterable[str] | None) -> None:
        """Note how the thing at ``path`` differs, or where it is if ``differences`` is None."""
        if differences is not None:
            if told := "; ".join(differences):
                was_made_again = self.whereabouts.was_made_again(path)
                self._add(kind, path, "made again" if was_made_again else "differs", told)
        elif path not in self.known:
            self._add(kind, *self.whereabouts.explain(path))

    def tell_rest(self) -> None:
        """What lies in quarantine, is not there, and no receipt names."""
        for path, note in self.whereabouts.notes.items():
            is_there = (self.whereabouts.folder.path / path).exists()
            if note.event in _ABSENT and not is_there:
                self._add(_kind_of(path), path, _ABSENT[note.event], note.why)

    def _add(self, kind: Kind, path: str, state: State, text: str) -> None:
        if path not in self.known:
            self.known.add(path)
            self.findings.add(kind, path, state, text)


def shard_differences(facts: ShardFacts, audit: ShardAudit) -> Iterator[str]:
    """How a shard differs from what its receipt says of it; its bytes depend on the format."""
    found, told = audit.meta.get("statistics"), facts.statistics
    if not isinstance(found, dict) or found.keys() != told.keys():
        yield "other statistics than in the receipt"
        return
    for name in told.keys() - set(CLOCKS):
        if not _is_same(found[name], told[name]):
            yield f"{name} {found[name]}, and {told[name]} in the receipt"


def training_differences(facts: TrainingFacts, meta: Json) -> Iterator[str]:
    """In what a checkpoint is not the one that its receipt speaks of."""
    for name, told in {
        "generation": facts.generation,
        "weights_digest": facts.weights_digest,
        "window_shards": facts.window_shards,
        "window_positions": facts.window_positions,
    }.items():
        if meta.get(name) != told:
            yield f"{name} is not that of the receipt"


def _kind_of(path: str) -> Kind:
    return _KINDS.get(path.partition("/")[0], "note")  # a damaged note may name anything


def _is_same(found: object, told: object) -> bool:
    if isinstance(found, float) and isinstance(told, float):
        return math.isclose(found, told, rel_tol=_TOLERANCE)
    return found == told
