"""What `chess-snn verify` finds in a campaign."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Final, Literal

from chess_snn.campaign.artifacts.artifact import Whole
from chess_snn.campaign.artifacts.table import kinds
from chess_snn.types import Json

SCHEMA: Final = 1

SETTING: Final = "setting"
NOTE: Final = "note"
"""Kinds of findings that are not those of one artifact; :func:`.table.kinds` has the others."""

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
    """In the campaign, with ``/`` between parts."""
    state: State
    text: str
    """One line: what is wrong, or why it is not there."""

    @property
    def is_damage(self) -> bool:
        """Whether no note explains it."""
        return self.state in DAMAGE


@dataclass(slots=True)
class Findings:
    """Counts of what was checked, and what is not as it was committed."""

    checked: Counter[str] = field(default_factory=Counter)
    """Artifacts, by kind."""
    found: list[Finding] = field(default_factory=list)
    num_games: int = 0
    """Of self-play, replayed to their ends."""
    num_positions: int = 0
    num_match_games: int = 0
    num_bytes: int = 0
    """Of intact shards and checkpoints."""
    seconds: float = 0.0

    @property
    def kinds(self) -> tuple[str, ...]:
        """Everything that is counted, in the order of the report."""
        return SETTING, *kinds()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is corrupt, lost or unreadable."""
        return not self.damage

    @property
    def damage(self) -> list[Finding]:
        """Findings that no note explains."""
        return [finding for finding in self.found if finding.is_damage]

    def add(self, kind: str, path: str, state: State, text: str) -> None:
        """Add a finding."""
        self.found.append(Finding(kind, path, state, text))

    def count_in(self, whole: Whole) -> None:
        """Add an intact artifact to the totals."""
        self.num_bytes += whole.num_bytes
        self.num_games += whole.num_games
        self.num_positions += whole.num_positions
        self.num_match_games += whole.num_match_games

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
