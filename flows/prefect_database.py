"""The SQLite database of a Prefect server.

Prefect creates one by all the migrations of its history, 5 to 8 s each time. Here they run once for
each version of Prefect; what they made is kept beside the compiled kernels and copied.
"""

import logging
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Final

import prefect

from chess_snn import processes
from chess_snn.caches import cache_root
from chess_snn.data.files import make_folder, temporary_sibling, write_bytes
from chess_snn.errors import UsageError

DATABASE_VARIABLE: Final = "PREFECT_API_DATABASE_CONNECTION_URL"

_logger = logging.getLogger(__name__)


def database_address(database: Path) -> str:
    """Value of :data:`DATABASE_VARIABLE`."""
    return f"sqlite+aiosqlite:///{database}"


def create_database(database: Path) -> None:
    """Create an empty database, unless it exists. If that fails, the server creates its own."""
    if database.exists():
        return
    kept = cache_root() / "prefect" / f"empty-{prefect.__version__}.db"
    try:
        if not _is_whole(kept):
            _migrate(kept)
        make_folder(database.parent)
        write_bytes(database, kept.read_bytes())
    except (OSError, sqlite3.Error, UsageError) as error:
        _logger.warning("the Prefect server creates its own database: %s", error)


def _is_whole(database: Path) -> bool:
    if not database.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError:
        return False


def _migrate(database: Path) -> None:
    make_folder(database.parent)
    temporary = temporary_sibling(database)
    child = processes.start(
        [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"],
        environment={
            DATABASE_VARIABLE: database_address(temporary), "PREFECT_HOME": str(database.parent),
        },
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        if code := child.wait():
            raise UsageError(f"prefect server database upgrade {processes.describe_exit(code)}")
        with closing(sqlite3.connect(temporary)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")  # one file then, which can be copied
        temporary.replace(database)
    finally:
        processes.stop(child)
        temporary.unlink(missing_ok=True)
