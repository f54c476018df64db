"""The empty database that new campaigns begin with: made once, copied, not used if damaged."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")

from flows.prefect_app import lay_database  # noqa: E402

SCHEMA = "CREATE TABLE run (name TEXT)"


def schema_of(database: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(database)) as connection:
        return sorted(connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"))


class Migration:
    """Makes ``database`` as Prefect does, with a journal beside it; counts how often."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self.times = 0

    def __call__(self) -> None:
        self.times += 1
        with closing(sqlite3.connect(self.database)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(SCHEMA)


@pytest.fixture
def kept(tmp_path) -> Path:
    return tmp_path / "cache" / "empty.db"


def lay(database: Path, kept: Path) -> int:
    """Lay one; how often it was migrated."""
    migration = Migration(database)
    lay_database(database, kept, migration)
    return migration.times


def test_only_the_first_is_migrated(tmp_path, kept):
    assert lay(tmp_path / "first.db", kept) == 1
    assert lay(tmp_path / "second.db", kept) == 0
    assert schema_of(tmp_path / "second.db") == schema_of(tmp_path / "first.db") == [(SCHEMA,)]
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_one_that_is_there_is_left_alone(tmp_path, kept):
    lay(tmp_path / "first.db", kept)
    (tmp_path / "own.db").write_bytes(b"anything")
    assert lay(tmp_path / "own.db", kept) == 0
    assert (tmp_path / "own.db").read_bytes() == b"anything"


@pytest.mark.parametrize("damage", [
    lambda whole: b"no database" * 100, lambda whole: whole[:len(whole) // 2],
    lambda whole: whole[:4096] + bytes(len(whole) - 4096),
], ids=["garbage", "cut", "zeros"])
def test_a_damaged_one_is_made_again(tmp_path, kept, damage):
    lay(tmp_path / "first.db", kept)
    kept.write_bytes(damage(kept.read_bytes()))
    assert lay(tmp_path / "second.db", kept) == 1
    assert schema_of(tmp_path / "second.db") == [(SCHEMA,)]
    assert lay(tmp_path / "third.db", kept) == 0
    assert schema_of(tmp_path / "third.db") == [(SCHEMA,)]


def test_where_none_can_be_kept_each_is_migrated(tmp_path, kept):
    kept.parent.write_text("a file where the folder should be")
    assert lay(tmp_path / "first.db", kept) == 1
    assert lay(tmp_path / "second.db", kept) == 1


def test_one_that_cannot_be_laid_leaves_no_half_of_it(tmp_path, kept):
    lay(tmp_path / "first.db", kept)
    with pytest.raises(sqlite3.OperationalError):
        lay(tmp_path / "no-folder" / "second.db", kept)
    assert not (tmp_path / "no-folder").exists()


@pytest.mark.slow
def test_a_copy_has_the_schema_that_prefect_migrates_to(tmp_path, monkeypatch):
    """Of Prefect's own: both are what its own command makes, and it finds nothing to migrate."""
    program = (
        "from pathlib import Path; from sys import argv; from flows import prefect_app as app; "
        "app.lay_database(Path(argv[1]), Path(argv[2]), app._migrate)"
    )
    kept = tmp_path / "kept.db"
    for name in ("migrated.db", "copied.db"):
        database = tmp_path / name
        monkeypatch.setenv("PREFECT_API_DATABASE_CONNECTION_URL", f"sqlite+aiosqlite:///{database}")
        monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
        subprocess.run([sys.executable, "-c", program, str(database), str(kept)], check=True)
    assert schema_of(tmp_path / "copied.db") == schema_of(tmp_path / "migrated.db")
    with closing(sqlite3.connect(tmp_path / "copied.db")) as connection:
        assert connection.execute("SELECT COUNT(*) FROM alembic_version").fetchone() == (1,)
        assert connection.execute("SELECT COUNT(*) FROM flow_run").fetchone() == (0,)
