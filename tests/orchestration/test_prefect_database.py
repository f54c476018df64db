"""The empty database that new campaigns begin with: made once, copied, not used if damaged."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")

from flows import servers  # noqa: E402
from flows.servers import DATABASE_VARIABLE, create_database  # noqa: E402

SCHEMA = "CREATE TABLE run (name TEXT)"


def schema_of(database: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(database)) as connection:
        return sorted(connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"))


@pytest.fixture
def migrated(tmp_path, monkeypatch) -> list[Path]:
    """What was migrated, by something quicker than Prefect; kept in ``tmp_path / "cache"``."""
    found = []

    def migrate(database: Path) -> None:
        found.append(database)
        database.parent.mkdir(parents=True, exist_ok=True)
        database.unlink(missing_ok=True)
        with closing(sqlite3.connect(database)) as connection:
            connection.execute(SCHEMA)

    monkeypatch.setattr(servers, "_migrate", migrate)
    monkeypatch.setattr(servers, "cache_root", lambda: tmp_path / "cache")
    return found


def test_only_the_first_is_migrated_and_one_that_is_there_is_left_alone(tmp_path, migrated):
    for name in ("first.db", "second.db"):
        create_database(tmp_path / name)
        assert schema_of(tmp_path / name) == [(SCHEMA,)]
    assert len(migrated) == 1
    (tmp_path / "own.db").write_bytes(b"anything")
    create_database(tmp_path / "own.db")
    assert (tmp_path / "own.db").read_bytes() == b"anything"


@pytest.mark.parametrize("damage", [
    lambda whole: b"no database" * 100, lambda whole: whole[:len(whole) // 2],
    lambda whole: whole[:4096] + bytes(len(whole) - 4096),
], ids=["garbage", "cut", "zeros"])
def test_a_damaged_one_is_made_again(tmp_path, migrated, damage):
    create_database(tmp_path / "first.db")
    migrated[0].write_bytes(damage(migrated[0].read_bytes()))
    create_database(tmp_path / "second.db")
    assert len(migrated) == 2
    assert schema_of(tmp_path / "second.db") == [(SCHEMA,)]


def test_where_none_can_be_kept_the_server_has_to_create_it(tmp_path, migrated):
    (tmp_path / "cache").write_text("a file where the folder should be")
    create_database(tmp_path / "first.db")
    assert not (tmp_path / "first.db").exists()


@pytest.mark.slow
def test_a_copy_has_the_schema_that_prefect_migrates_to(tmp_path, monkeypatch):
    """Prefect's own command makes the same, and finds nothing to migrate."""
    monkeypatch.setattr(servers, "cache_root", lambda: tmp_path / "cache")
    create_database(tmp_path / "copied.db")
    before = schema_of(tmp_path / "copied.db")
    monkeypatch.setenv(DATABASE_VARIABLE, f"sqlite+aiosqlite:///{tmp_path / 'copied.db'}")
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    upgrade = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"]
    subprocess.run(upgrade, check=True)
    assert schema_of(tmp_path / "copied.db") == before
    with closing(sqlite3.connect(tmp_path / "copied.db")) as connection:
        assert connection.execute("SELECT COUNT(*) FROM alembic_version").fetchone() == (1,)
        assert connection.execute("SELECT COUNT(*) FROM flow_run").fetchone() == (0,)
