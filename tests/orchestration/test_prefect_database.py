"""The database of a Prefect server: copied from an empty one, upgraded, renewed if damaged."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")

from chess_snn.errors import UsageError  # noqa: E402
from chess_snn.flows import prefect_database  # noqa: E402
from chess_snn.flows.prefect_database import MOST_KEPT, database_variables, prepare_database  # noqa: E402

OLD, NEW = "0aaa", "1bbb"

DAMAGES = {
    "garbage": lambda whole: b"no database" * 100,
    "cut": lambda whole: whole[:len(whole) // 2],
    "cut-in-a-page": lambda whole: whole[:len(whole) - 1000],
    "zeros-after-a-page": lambda whole: whole[:4096] + bytes(len(whole) - 4096),
    "zeros": lambda whole: bytes(len(whole)),
    "empty": lambda whole: b"",
}


def write_database(database: Path, revision: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS alembic_version (version_num TEXT)")
        connection.execute("CREATE TABLE IF NOT EXISTS run (name TEXT)")
        connection.execute("DELETE FROM alembic_version")
        connection.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
        connection.commit()


def add_run(database: Path, name: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("INSERT INTO run VALUES (?)", (name,))
        connection.commit()


def runs_of(database: Path) -> list[str] | None:
    """None of a damaged one."""
    try:
        with closing(sqlite3.connect(database)) as connection:
            return [name for name, in connection.execute("SELECT name FROM run")]
    except sqlite3.DatabaseError:
        return None


@pytest.fixture
def migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Databases that were migrated, by something quicker than Prefect; the cache is in tmp_path."""
    found = []

    def migrate(database: Path) -> None:
        found.append(database)
        database.parent.mkdir(parents=True, exist_ok=True)
        if runs_of(database) is None:
            database.unlink(missing_ok=True)
        write_database(database, NEW)

    monkeypatch.setattr(prefect_database, "_migrate", migrate)
    monkeypatch.setattr(prefect_database, "cache_root", lambda: tmp_path / "cache")
    return found


def test_only_the_first_is_migrated_and_one_that_is_there_is_left_alone(tmp_path, migrated):
    told = []
    for name in ("first.db", "second.db"):
        prepare_database(tmp_path / name, told.append)
        add_run(tmp_path / name, name)
        prepare_database(tmp_path / name, told.append)
        assert runs_of(tmp_path / name) == [name]
    assert len(migrated) == 1
    assert not told


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_one_is_renamed_and_a_new_one_begins(tmp_path, migrated, damage):
    database, told = tmp_path / "services" / "prefect.db", []
    prepare_database(database, told.append)
    add_run(database, "lost")
    damaged = damage(database.read_bytes())
    database.write_bytes(damaged)
    prepare_database(database, told.append)
    assert runs_of(database) == []
    (aside,) = database.parent.glob("prefect-damaged-*.db")
    assert aside.read_bytes() == damaged
    assert [aside.name in line for line in told] == [True]
    assert len(migrated) == 1


@pytest.mark.parametrize("damage", ["garbage", "cut", "zeros"])
def test_a_damaged_one_in_the_cache_is_made_again(tmp_path, migrated, damage):
    prepare_database(tmp_path / "first.db", pytest.fail)
    migrated[0].write_bytes(DAMAGES[damage](migrated[0].read_bytes()))
    prepare_database(tmp_path / "second.db", pytest.fail)
    assert len(migrated) == 2
    assert runs_of(tmp_path / "second.db") == []


def test_no_more_than_the_last_damaged_ones_are_kept(tmp_path, migrated):
    database = tmp_path / "prefect.db"
    for number in range(MOST_KEPT + 2):
        (tmp_path / f"prefect-damaged-2026010{number + 1}T000000Z.db").touch()
        (tmp_path / f"prefect-damaged-2026010{number + 1}T000000Z.db-wal").touch()
    database.write_bytes(b"no database")
    told = []
    prepare_database(database, told.append)
    kept = sorted(tmp_path.glob("prefect-damaged-*.db"))
    assert len(kept) == MOST_KEPT
    assert kept[-1].read_bytes() == b"no database", "the newest"
    assert len(list(tmp_path.glob("prefect-damaged-*-wal"))) == MOST_KEPT - 1


def test_what_belongs_to_a_deleted_one_is_not_taken_into_a_new_one(tmp_path, migrated):
    database = tmp_path / "prefect.db"
    prepare_database(database, pytest.fail)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("INSERT INTO run VALUES ('old')")
        connection.commit()
        log = database.with_name("prefect.db-wal").read_bytes()
    database.unlink()
    database.with_name("prefect.db-wal").write_bytes(log)
    prepare_database(database, pytest.fail)
    assert runs_of(database) == []


def test_what_a_killed_server_left_in_its_log_is_kept(tmp_path, migrated):
    database, copy = tmp_path / "prefect.db", tmp_path / "copy" / "prefect.db"
    prepare_database(database, pytest.fail)
    copy.parent.mkdir()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("INSERT INTO run VALUES ('new')")
        connection.commit()
        for name in ("prefect.db", "prefect.db-wal"):  # as a kill leaves them
            (copy.parent / name).write_bytes((tmp_path / name).read_bytes())
    prepare_database(copy, pytest.fail)
    assert runs_of(copy) == ["new"]


def test_one_of_another_version_is_upgraded_and_keeps_its_runs(tmp_path, migrated):
    database = tmp_path / "prefect.db"
    write_database(database, OLD)
    add_run(database, "kept")
    prepare_database(database, pytest.fail)
    assert migrated[-1] == database
    assert runs_of(database) == ["kept"]


def test_where_no_empty_one_can_be_kept_it_is_made_beside(tmp_path, migrated):
    (tmp_path / "cache").write_text("a file where the folder should be")
    database = tmp_path / "services" / "prefect.db"
    prepare_database(database, pytest.fail)
    assert runs_of(database) == []
    assert migrated[-1].parent == database.parent


def test_a_place_that_cannot_be_written_is_one_line(tmp_path, migrated):
    (tmp_path / "services").write_text("a file where the folder should be")
    with pytest.raises(UsageError, match="services"):
        prepare_database(tmp_path / "services" / "prefect.db", pytest.fail)


def schema_of(database: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(database)) as connection:
        return sorted(connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"))


@pytest.mark.slow
def test_prefect_finds_nothing_to_migrate_in_a_copy_and_upgrades_an_old_one(tmp_path, monkeypatch):
    def downgrade() -> None:
        command = [sys.executable, "-m", "prefect", "server", "database"]
        subprocess.run([*command, "downgrade", "--yes", "-r", "-1"], check=True)

    monkeypatch.setattr(prefect_database, "cache_root", lambda: tmp_path / "cache")
    database, told = tmp_path / "services" / "prefect.db", []
    prepare_database(database, told.append)
    before = schema_of(database)
    for name, value in database_variables(database, tmp_path / "home").items():
        monkeypatch.setenv(name, value)
    upgrade = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"]
    subprocess.run(upgrade, check=True)
    assert schema_of(database) == before
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("INSERT INTO flow (id, name) VALUES ('one', 'kept')")
        connection.commit()
    downgrade()
    prepare_database(database, told.append)
    assert not told
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM alembic_version").fetchone() == (1,)
        assert connection.execute("SELECT name FROM flow").fetchall() == [("kept",)]
        # It looks like that of a later version of Prefect, which this one cannot migrate.
        connection.execute("UPDATE alembic_version SET version_num = 'later'")
        connection.commit()
    prepare_database(database, told.append)
    assert len(told) == 1
    assert schema_of(database) == before
