"""The SQLite database of a Prefect server: created, upgraded, and renewed if it is damaged.

It is a view. A campaign does without what is in it, so a damaged one must not keep a server from
its start. The server itself never migrates it: a migration that was killed can leave tables that
the next one refuses.
"""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import prefect
from prefect.logging import get_logger

from chess_snn import processes
from chess_snn.caches import cache_root
from chess_snn.data.files import make_folder, temporary_sibling, write_bytes, writing
from chess_snn.errors import UsageError
from chess_snn.types import LogFn

HOME_VARIABLE: Final = "PREFECT_HOME"
DATABASE_VARIABLE: Final = "PREFECT_API_DATABASE_CONNECTION_URL"
PREFECT_DATABASE: Final = "prefect.db"

MOST_KEPT: Final = 3
"""Damaged databases that stay beside a new one: the last ones."""

_SQLITE: Final = "sqlite+aiosqlite:///"
_ENDS: Final = ("-wal", "-shm", "-journal")
"""Ends of the names of files that belong to a database."""
_DAMAGE: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_IOERR_SHORT_READ")
"""Names of SQLite's errors, of which the third says that there is no such table."""


class _MigrationError(Exception):
    """Prefect cannot upgrade a database; the text says how it ended."""


def database_variables(database: Path, home: Path) -> dict[str, str]:
    """The environment of a process of Prefect that uses ``database``."""
    return {DATABASE_VARIABLE: f"{_SQLITE}{database}", HOME_VARIABLE: str(home)}


def prepare_database(database: Path, tell: LogFn) -> None:
    """Return once a server can start on ``database``; the caller sees that no other one does.

    A new one is copied from an empty one that is kept in the cache. Prefect itself runs all the
    migrations of its history, 5 to 8 s each time; here they run once for each version of Prefect. A
    damaged one stays under another name, and ``tell`` gets a line that says so.

    Raises:
        UsageError: the database cannot be read or written.
    """
    empty, revision = _empty_database(database), _revision(database)
    if revision is not None and revision != _revision(empty):
        try:
            _migrate(database)
        except _MigrationError:
            revision = None
    if revision is not None:
        return
    with writing(database):
        if database.exists():
            new_name = _rename_damaged(database)
            tell(f"{database} is damaged: it is now {new_name}, and a new one begins")
        for end in _ENDS:  # of one that was deleted; SQLite would write them into the new one
            _beside(database, end).unlink(missing_ok=True)
        make_folder(database.parent)
        write_bytes(database, empty.read_bytes())


def _empty_database(database: Path) -> Path:
    """An empty one in the cache; beside ``database`` if the cache cannot be written."""
    name = f"empty-{prefect.__version__}.db"
    kept = cache_root() / "prefect" / name
    try:
        if _revision(kept) is None:
            _create(kept)
    except (OSError, UsageError) as error:
        get_logger(__name__).warning("%s is not used: %s", kept, error)
        kept = database.with_name(name)
        if _revision(kept) is None:
            _create(kept)
    return kept


def _create(database: Path) -> None:
    try:
        _migrate(database)
    except _MigrationError as error:
        raise UsageError(f"cannot create {database}: {error}") from error


def _revision(database: Path) -> str | None:
    """The revision of Prefect's tables; None if there is no database, or it is damaged."""
    if not database.is_file():
        return None
    try:
        # Not read-only, so that what a killed server left in other files is taken in.
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=rw", uri=True)) as connection:
            if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                return None
            revisions = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorname", "").startswith(_DAMAGE):
            return None
        raise UsageError(
            f"cannot open {database}: {error}; see that its disk works and has room"
        ) from error
    return str(revisions[0][0]) if len(revisions) == 1 else None


def _migrate(database: Path) -> None:
    """Have Prefect upgrade a whole database, or create one; in a copy, so that it may be killed."""
    make_folder(database.parent)
    temporary = temporary_sibling(database)
    try:
        if _revision(database) is not None:
            _into_one_file(database)
            shutil.copyfile(database, temporary)
        child = processes.start(
            [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"],
            environment=database_variables(temporary, database.parent),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        try:
            code = child.wait()
        finally:
            processes.stop(child)
        if code:
            raise _MigrationError(
                f"prefect server database upgrade {processes.describe_exit(code)}"
            )
        _into_one_file(temporary)
        temporary.replace(database)
    finally:
        for end in ("", *_ENDS):
            _beside(temporary, end).unlink(missing_ok=True)


def _into_one_file(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


def _rename_damaged(database: Path) -> str:
    """Rename a database; return its new name, which says when that was."""
    def name_of(time: str) -> str:
        return f"{database.stem}-damaged-{time}{database.suffix}"

    aside = database.with_name(name_of(datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")))
    for end in (*_ENDS, ""):
        if (file := _beside(database, end)).exists():
            file.replace(_beside(aside, end))
    for old in sorted(database.parent.glob(name_of("*")))[:-MOST_KEPT]:
        for end in (*_ENDS, ""):
            _beside(old, end).unlink(missing_ok=True)
    return aside.name


def _beside(database: Path, end: str) -> Path:
    return database.with_name(database.name + end)
