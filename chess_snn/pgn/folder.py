"""A folder of imported or labelled games, and the report on what came in and what did not.

::

    <folder>/
      import.json                        which file it is, written at the start
      report.json                        what came in, written when all of the file is
      games/pgn-1a2b3c4d5e6f/
        shard-000000                     the good games among the first 1,000, one immutable shard
        shard-000001                     …

A chunk of the file without a good game has no shard. The name between ``games`` and the shards is
that of the file's content, so that shards of several imports can stand in one replay window.
Labelled games (:mod:`chess_snn.campaign.labelling`) are the same, with a campaign or an import in
the place of the file.
"""

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from chess_snn.data import StoredFormat, is_committed, read_json, sweep_temporaries, write_json
from chess_snn.errors import ConfigError, CorruptDataError, UsageError
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
_KEYS: Final = {"refused", *_COUNTS}


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
        }

    @classmethod
    def from_json(cls, body: Json) -> "ImportReport":
        """What :meth:`to_json` gave.

        Raises:
            ConfigError, KeyError, TypeError, ValueError: it is something else.
        """
        if unknown := body.keys() - _KEYS:
            raise ValueError(f"keys {sorted(unknown)} are unknown")
        counts = {name: _count(body[name]) for name in _COUNTS}
        refused = body["refused"]
        if not isinstance(refused, dict) or not refused.keys() <= FAULT_KINDS.keys():
            raise ValueError("refused must hold kinds of faults")
        return cls(
            **counts,
            refused={kind: _count(entry["games"]) for kind, entry in refused.items()},
            examples={kind: BadGame(**entry["first"]) for kind, entry in refused.items()},
        )


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"a count must be a whole number, got {value!r}")
    return value


IMPORT_FILE: Final = "import.json"
REPORT_FILE: Final = "report.json"
_IMPORT: Final = StoredFormat("import", version=1)
_REPORT: Final = StoredFormat("report of an import", version=1)

ID_LENGTH: Final = 12
"""Hexadecimal digits of ``ImportSource.content``."""
_SHARD: Final = re.compile(r"shard-([0-9]{6,12})")
_MISFITS: Final = (ConfigError, KeyError, TypeError, ValueError)


@settings_class("import")
class ImportSource:
    """Distinguishes one import from another."""

    file: str
    """Name of the PGN file, or of the labelled games, for people."""
    content: Annotated[str, Field(pattern=rf"^[0-9a-f]{{{ID_LENGTH}}}$")]
    """Digest of its first games, and of who labelled them; it becomes part of a path."""
    games_per_shard: Annotated[int, Field(ge=1)]
    teacher: str = ""
    """Who labelled the games, and how; empty for imported games."""


@dataclass(frozen=True, slots=True)
class ImportFolder:
    """Where the games of one PGN file are, or are on their way to."""

    path: Path
    source: ImportSource

    @classmethod
    def create(cls, path: Path, source: ImportSource) -> "ImportFolder":
        """Begin an import into ``path``, or go on with the one that began there.

        Raises:
            UsageError: it holds anything else.
        """
        games_per_shard = source.games_per_shard
        if is_import(path):
            begun = cls.open(path)
            if begun.source.content != source.content:
                labels = begun.source.teacher and f", labelled by {begun.source.teacher}"
                raise UsageError(
                    f"{path} holds other games, those of {begun.source.file}{labels}; choose a "
                    "new folder with --out"
                )
            if begun.source.games_per_shard != games_per_shard:
                raise UsageError(
                    f"{path} was begun by another version of this program, with "
                    f"{begun.source.games_per_shard} games a shard; choose a new folder with --out"
                )
            return begun
        _check_new(path)
        write_json(path / IMPORT_FILE, _IMPORT.sealed(asdict(source)))
        return cls(path, source)

    @classmethod
    def open(cls, path: Path) -> "ImportFolder":
        """The import in ``path``, finished or not.

        Raises:
            UnknownVersionError: its description is of a version that is not read.
            CorruptDataError: its description is missing or damaged.
        """
        file, hint = path / IMPORT_FILE, "import the file into a new folder"
        body = _IMPORT.unsealed(read_json(file), file, hint)
        try:
            return cls(path, ImportSource(**body))
        except _MISFITS as error:
            raise CorruptDataError(f"{file} is damaged ({error!r}); {hint}") from error

    def shard(self, index: int) -> Path:
        """The folder of one chunk's games."""
        return self._games / f"shard-{index:06d}"

    def shards(self) -> list[Path]:
        """The committed shards, in the order of the file."""
        found = {
            int(name[1]): entry for entry in self._games.glob("shard-*")
            if (name := _SHARD.fullmatch(entry.name)) and is_committed(entry)
        }
        return [found[index] for index in sorted(found)]

    def sweep(self) -> None:
        """Remove what killed imports left half-written."""
        for parent in (self.path, self._games):
            if parent.is_dir():
                sweep_temporaries(parent)

    def finish(self, report: ImportReport) -> None:
        """Say that all of the file is here."""
        write_json(self.path / REPORT_FILE, _REPORT.sealed(report.to_json()))

    def report(self) -> ImportReport | None:
        """What came in; None as long as the import is not finished.

        Raises:
            UnknownVersionError: it is of a version that is not read.
            CorruptDataError: it is damaged.
        """
        path, hint = self.path / REPORT_FILE, "delete it and import the file again"
        if not path.exists():
            return None
        body = _REPORT.unsealed(read_json(path), path, hint)
        try:
            return ImportReport.from_json(body)
        except _MISFITS as error:
            raise CorruptDataError(f"{path} is damaged ({error!r}); {hint}") from error

    @property
    def _games(self) -> Path:
        return self.path / "games" / f"pgn-{self.source.content}"


def is_import(path: Path) -> bool:
    """Whether an import began in ``path``."""
    return (path / IMPORT_FILE).is_file()


def _check_new(path: Path) -> None:
    """Say that an import cannot begin in ``path``.

    Raises:
        UsageError: it is not a folder, or not empty.
    """
    try:
        if path.exists() and any(path.iterdir()):
            raise UsageError(
                f"{path} is not empty and holds no import; choose a new folder with --out"
            )
    except OSError as error:
        raise UsageError(
            f"cannot use {path} for an import: {error.strerror}; choose another --out"
        ) from error


def shard_meta(source: ImportSource, first_game: int, sha256: str, report: ImportReport) -> Json:
    """What the manifest of an imported shard notes."""
    return {
        "game": "chess",
        "source": source.file,
        "first_game": first_game,
        "text_sha256": sha256,
        "report": report.to_json(),
    }
