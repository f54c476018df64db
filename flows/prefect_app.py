"""A Prefect server as a process, on SQLite: ``python -m flows.prefect_app HOST PORT``.

Prefect makes an empty database by all the migrations of its history, 5 to 8 s each time. Here they
run once for each version of Prefect: what they made is kept beside the compiled kernels, and new
campaigns begin with a copy of it.
"""

import asyncio
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import prefect
import uvicorn
from prefect.logging import get_logger
from prefect.server.database.alembic_commands import alembic_upgrade
from prefect.settings import get_current_settings
from prefect.utilities.asyncutils import run_sync_in_worker_thread
from sqlalchemy import make_url

from chess_snn.caches import cache_root

_APP: Final = "prefect.server.api.server:create_app"


def main(host: str, port: str) -> None:
    """Serve until a signal; the database is the one that Prefect's settings name."""
    url = get_current_settings().server.database.connection_url
    if url is None:
        raise ValueError("PREFECT_API_DATABASE_CONNECTION_URL is not set")
    database = make_url(url.get_secret_value()).database
    if database is None:
        raise ValueError(f"{url}: not a file")
    kept = cache_root() / "prefect" / f"empty-{prefect.__version__}.db"
    lay_database(Path(database), kept, _migrate)
    uvicorn.run(_APP, factory=True, host=host, port=int(port), log_level="warning")


def lay_database(database: Path, kept: Path, migrate: Callable[[], None]) -> None:
    """Make ``database`` if it is not there: a copy of ``kept``, else by ``migrate``, to keep it.

    What is kept only saves time: a damaged one is made again, and where none can be written, that
    is a line in the log.

    Args:
        database: an SQLite file.
        kept: an empty one of the same schema, or where it is to be.
        migrate: makes ``database``.
    """
    if database.exists():
        return
    logger = get_logger(__name__)
    if kept.is_file():
        damage = _damage(kept)
        if damage is None:
            _copy(kept, database)
            return
        logger.warning("%s is damaged (%s) and is made again", kept, damage)
    migrate()
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        _copy(database, kept)
    except (OSError, sqlite3.Error) as error:
        logger.warning("%s cannot be kept for the next campaign: %s", kept, error)


def _damage(database: Path) -> str | None:
    try:
        with closing(_read_only(database)) as connection:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if verdict == "ok" else str(verdict)


def _read_only(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)


def _copy(source: Path, target: Path) -> None:
    """Copy an SQLite file with what its journal holds; ``target`` is there whole or not at all."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with (
            closing(_read_only(source)) as original,
            closing(sqlite3.connect(temporary)) as copy,
        ):
            original.backup(copy)
            # One file then, which is read where nothing can be written too.
            copy.execute("PRAGMA journal_mode = DELETE")
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _migrate() -> None:
    asyncio.run(run_sync_in_worker_thread(alembic_upgrade))


if __name__ == "__main__":
    main(*sys.argv[1:])
