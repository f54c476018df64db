"""The report of an import: how many games came in, and why the others did not."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Final

from pydantic import Field

from chess_snn.settings import settings_class
from chess_snn.types import Json

FAULT_KINDS: Final = {
    "bad_header": "a tag pair that cannot be read, or tags that contradict each other",
    "variant": "another game than chess, or Chess960",
    "bad_position": "a FEN that is malformed or cannot occur",
    "no_moves": "no moves at all",
    "truncated": "it has no result at its end",
    "unknown_result": "its result is *",
    "contradicting_result": "its result is not that of its header or final position",
    "wrong_encoding": "bytes among the moves that are not ASCII",
    "unreadable_move": "a word that is not a move",
    "illegal_move": "a move that the position does not allow",
    "ambiguous_move": "a move that several pieces could make",
}
"""Why games are refused, and what it means; a game counts under the first that holds."""

_LONGEST_TOKEN: Final = 60
_COUNTS: Final = ("games_read", "games", "positions", "latin1_headers", "played_on")
_KEYS: Final = {"refused", "left_out", *_COUNTS}


@settings_class("bad game")
class BadGame:
    """One game that was refused."""

    kind: str
    """A key of ``FAULT_KINDS``."""
    game: Annotated[int, Field(ge=1)]
    """Its number in the file, from 1."""
    ply: Annotated[int, Field(ge=0)] | None
    """Plies that could be read before it; None where it is not about a move."""
    token: str
    """The words of the file it is about."""

    def __str__(self) -> str:
        place = f"game {self.game:,}" + ("" if self.ply is None else f", ply {self.ply}")
        return f"{place}: {self.token!r}" if self.token else place


class RefusedGameError(Exception):
    """Why a game is not imported, in words of :class:`BadGame`; caught where games are read."""

    def __init__(self, kind: str, token: str, ply: int | None = None) -> None:
        super().__init__(kind, token, ply)

    def of_game(self, game: int) -> BadGame:
        """The same, of the game with this number."""
        kind, token, ply = self.args
        return BadGame(kind, game, ply, token[:_LONGEST_TOKEN])


@dataclass(slots=True)
class ImportReport:
    """Counts of an import, or of a part of it; parts add up in any order."""

    games_read: int = 0
    """Games found, refused ones included."""
    games: int = 0
    """Games imported."""
    positions: int = 0
    """Positions of those."""
    latin1_headers: int = 0
    """Games imported whose header is not UTF-8 and was read as Latin-1."""
    played_on: int = 0
    """Games imported that went on after a draw by the rules, which here needs no claim."""
    refused: dict[str, int] = field(default_factory=dict)
    """Games refused, by kind."""
    examples: dict[str, BadGame] = field(default_factory=dict)
    """The first game of each kind."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Games that were not wanted, by the option that left them out."""

    @property
    def games_refused(self) -> int:
        """Games refused, of all kinds."""
        return sum(self.refused.values())

    @property
    def first_refused(self) -> BadGame | None:
        """The first game of the file that was refused."""
        return min(self.examples.values(), key=lambda bad: bad.game, default=None)

    def refuse(self, bad: BadGame) -> None:
        """Count a game that was refused."""
        self._count(bad.kind, 1, bad)

    def add(self, part: "ImportReport") -> None:
        """Count a part of the same file in."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(part, name))
        for kind, count in part.refused.items():
            self._count(kind, count, part.examples[kind])
        self.left_out.update(part.left_out)

    def leave_out(self, games: Mapping[str, int]) -> None:
        """Count games that were not wanted, by option; they were never looked at."""
        self.left_out.update(games)
        self.games_read += sum(games.values())

    def _count(self, kind: str, count: int, example: BadGame) -> None:
        self.refused[kind] = self.refused.get(kind, 0) + count
        first = self.examples.get(kind, example)
        self.examples[kind] = min(first, example, key=lambda bad: bad.game)

    def to_json(self) -> Json:
        """Every count and example, in the order of ``FAULT_KINDS``."""
        return {name: getattr(self, name) for name in _COUNTS} | {
            "refused": {
                kind: {"games": self.refused[kind], "first": asdict(self.examples[kind])}
                for kind in FAULT_KINDS if kind in self.refused
            },
            # An import of all games leaves none out.
            **({"left_out": dict(sorted(self.left_out.items()))} if self.left_out else {}),
        }

    @classmethod
    def from_json(cls, body: Json) -> "ImportReport":
        """Read what :meth:`to_json` gave.

        Raises:
            ConfigError, KeyError, TypeError, ValueError: it is something else.
        """
        if unknown := body.keys() - _KEYS:
            raise ValueError(f"keys {sorted(unknown)} are unknown")
        counts = {name: _count(body[name]) for name in _COUNTS}
        refused = body["refused"]
        if not isinstance(refused, dict) or not refused.keys() <= FAULT_KINDS.keys():
            raise ValueError("refused must hold kinds of faults")
        left_out = body.get("left_out", {})
        if not isinstance(left_out, dict):
            raise TypeError("left_out must hold counts")
        return cls(
            **counts,
            left_out=Counter({option: _count(games) for option, games in left_out.items()}),
            refused={kind: _count(entry["games"]) for kind, entry in refused.items()},
            examples={kind: BadGame(**entry["first"]) for kind, entry in refused.items()},
        )


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"a count must be a whole number, got {value!r}")
    return value
