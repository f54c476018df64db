"""What `chess-snn verify` found in a campaign."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Final, Literal

from chess_snn.types import Json

SCHEMA: Final = 1

Kind = Literal[
    "setting", "shard", "checkpoint", "plan", "receipt", "match", "promotion", "extension", "note"
]
KINDS: Final[tuple[Kind, ...]] = (
    "setting", "shard", "checkpoint", "plan", "receipt", "match", "promotion", "extension", "note"
)

State = Literal[
    "damaged", "lost", "differs", "unknown version", "removed", "set aside", "dropped",
    "made again",
]
DAMAGE: Final[frozenset[State]] = frozenset({"damaged", "lost", "differs", "unknown version"})
"""States that nobody accounts for. Of the others a note in the folder says why."""

STATE_WORDS: Final[dict[State, str]] = {
    "damaged": "not what was committed",
    "lost": "named by a receipt, and not there",
    "differs": "intact, and not what was said of it when it was made",
    "unknown version": "of a format that this program does not read",
    "removed": "removed by `chess-snn gc`",
    "set aside": "damaged, in quarantine; made again when it is needed",
    "dropped": "damaged, in quarantine; windows of training go without it",
    "made again": "made again after damage, and not quite what the receipt says",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not simply whole."""

    kind: Kind
    path: str
    """In the campaign, with ``/`` between parts."""
    state: State
    text: str
    """One line: what is wrong, or why it is not there."""

    @property
    def is_damage(self) -> bool:
        """Whether nobody accounts for it."""
        return self.state in DAMAGE


@dataclass(slots=True)
class Findings:
    """Everything that was looked at, and what of it is not simply whole."""

    checked: Counter[Kind] = field(default_factory=Counter)
    """Things looked at, by kind."""
    found: list[Finding] = field(default_factory=list)
    num_games: int = 0
    """Of self-play, replayed to their ends."""
    num_positions: int = 0
    num_match_games: int = 0
    num_bytes: int = 0
    """Of whole shards and checkpoints."""
    seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether nothing is damaged, lost or unreadable."""
        return not self.damage

    @property
    def damage(self) -> list[Finding]:
        """What nobody accounts for."""
        return [finding for finding in self.found if finding.is_damage]

    def add(self, kind: Kind, path: str, state: State, text: str) -> None:
        """Note a thing that is not simply whole."""
        self.found.append(Finding(kind, path, state, text))

    def count(self, kind: Kind, states: Iterable[State]) -> int:
        """Things of ``kind`` in one of ``states``."""
        wanted = set(states)
        return len({f.path for f in self.found if f.kind == kind and f.state in wanted})

    def to_json(self) -> Json:
        """Counts, and every finding with whether it is damage."""
        return {
            "schema": SCHEMA,
            "is_whole": self.is_whole,
            "checked": {kind: self.checked[kind] for kind in KINDS},
            "games": self.num_games,
            "positions": self.num_positions,
            "match_games": self.num_match_games,
            "bytes": self.num_bytes,
            "seconds": round(self.seconds, 3),
            "findings": [asdict(f) | {"is_damage": f.is_damage} for f in self.found],
        }
