"""A folder of imported games, or of games that a teacher has labelled.

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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from chess_snn.data import StoredFormat, read_json, sweep_temporaries, write_json
from chess_snn.data.plain_files import check_plain
from chess_snn.errors import ConfigError, CorruptDataError, UsageError
from chess_snn.pgn.report import ImportReport
from chess_snn.settings import settings_class
from chess_snn.types import Json

IMPORT_FILE: Final = "import.json"
REPORT_FILE: Final = "report.json"
_IMPORT: Final = StoredFormat("import", version=1)
_REPORT: Final = StoredFormat("report of an import", version=1)

ID_LENGTH: Final = 12
"""Hexadecimal digits of ``ImportSource.content``."""
_LEVELS: Final = 2
"""Levels that must be plain: the folder's own names, and those in ``games``."""
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
    """Teacher that labelled the games, and its settings; empty for imported games."""
    selection: str = ""
    """Options that left games out; empty if none did."""


@dataclass(frozen=True, slots=True)
class ImportFolder:
    """Folder for the games of one PGN file."""

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
            if begun.source.selection != source.selection:
                raise UsageError(
                    f"{path} was begun with {begun.source.selection or 'all games'}, not with "
                    f"{source.selection or 'all games'}; choose a new folder with --out"
                )
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
            UsageError: something in it is neither a plain file nor a folder.
            UnknownVersionError: its description is of a version that is not read.
            CorruptDataError: its description is missing or damaged.
        """
        check_plain(path, _LEVELS)
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
        """The shards, in the order of the file; they have their names since they are committed."""
        found = {
            int(name[1]): entry for entry in self._games.glob("shard-*")
            if (name := _SHARD.fullmatch(entry.name))
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
        """Return what came in; None as long as the import is not finished.

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
    """Return whether an import began in ``path``."""
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
    """Return what the manifest of an imported shard notes."""
    return {
        "game": "chess",
        "source": source.file,
        "first_game": first_game,
        "text_sha256": sha256,
        "report": report.to_json(),
    }
