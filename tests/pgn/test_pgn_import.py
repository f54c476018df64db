"""Importing files: packed or not, on any number of processes, killed and begun again."""

import gzip
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from pgn_files import BAD_EVERY, pgn_text
from random_games import COLUMNS

from chess_snn.data import concatenate, read_manifest, read_shard
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.pgn import importing
from chess_snn.pgn import source as pgn_source
from chess_snn.pgn.folder import ImportFolder, is_import
from chess_snn.pgn.importing import import_pgn
from chess_snn.pgn.reading import read_games

NUM_GAMES = 2500
DEADLINE_S = 120


@pytest.fixture(scope="module")
def pgn_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("pgn") / "games.pgn"
    path.write_text(pgn_text(NUM_GAMES))
    return path


@pytest.fixture(scope="module")
def imported(pgn_file):
    """An import that nothing disturbed, on processes alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importing, "FEW_CHUNKS", 0)
        return import_pgn(pgn_file, pgn_file.with_name("imported"), workers=2)


@pytest.mark.parametrize("few", [1, 9])
def test_what_this_process_imports_is_the_same(pgn_file, imported, tmp_path, monkeypatch, few):
    monkeypatch.setattr(importing, "FEW_CHUNKS", few)
    import_pgn(pgn_file, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(imported.folder.path)


def contents(folder):
    """Every byte of an import, but for the times in its manifests."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)):
            read_manifest(path).files if path.name.startswith("shard-") else path.read_bytes()
        for path in files
    }


def test_an_import_holds_the_good_games_in_order_in_shards_of_a_thousand(pgn_file, imported):
    report, folder = imported.report, imported.folder
    num_bad = NUM_GAMES // BAD_EVERY
    assert (report.games_read, report.games) == (NUM_GAMES, NUM_GAMES - num_bad)
    assert report.refused == {"illegal_move": num_bad}
    bad = report.examples["illegal_move"]
    assert (bad.game, bad.ply, bad.token) == (1, 2, "Ke3")
    assert [shard.name for shard in folder.shards()] == [f"shard-00000{k}" for k in range(3)]
    parts = [read_shard(shard)[0] for shard in folder.shards()]
    assert [part.num_games for part in parts] == [990, 990, 495]
    records, _ = read_games(pgn_file.read_bytes())
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(concatenate(parts), name), getattr(records, name))
    assert folder.report().to_json() == report.to_json()
    assert imported.new_games == NUM_GAMES
    assert imported.games_per_s > 0


def test_the_same_file_again_commits_nothing(pgn_file, imported):
    folder = imported.folder.path
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("shard-*")}
    again = import_pgn(pgn_file, folder, workers=2)
    assert (again.new_games, again.games_per_s) == (0, 0)
    assert again.report.to_json() == imported.report.to_json()
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("shard-*")} == before


@pytest.mark.parametrize("packing", ["gzip", "two gzips", "zstd", "two zstds"])
def test_packed_files_are_the_same_import(pgn_file, imported, tmp_path, packing):
    text = pgn_file.read_bytes()
    halves = (text[:100_000], text[100_000:]) if packing.startswith("two") else (text,)
    if "zstd" in packing:
        zstandard = pytest.importorskip("zstandard")
        packed = b"".join(zstandard.ZstdCompressor().compress(half) for half in halves)
    else:
        packed = b"".join(map(gzip.compress, halves))
    path = tmp_path / "games.pgn"  # its content tells what it is, not its name
    path.write_bytes(packed)
    chunks = list(pgn_source.read_chunks(path))
    assert b"".join(chunk.text for chunk in chunks) == text
    assert [chunk.numbers[0] for chunk in chunks] == [1, 1001, 2001]
    done = import_pgn(path, imported.folder.path)
    assert done.new_games == 0


def test_a_chunk_ends_early_where_games_are_long(pgn_file, monkeypatch):
    monkeypatch.setattr(pgn_source, "MOST_CHUNK_BYTES", 50_000)
    monkeypatch.setattr(pgn_source, "_BLOCK_BYTES", 7_001)
    chunks = list(pgn_source.read_chunks(pgn_file))
    assert b"".join(chunk.text for chunk in chunks) == pgn_file.read_bytes()
    assert max(len(chunk.text) for chunk in chunks) < 60_000
    assert all(chunk.text.startswith(b"[Event") for chunk in chunks)
    reports = [read_games(chunk.text, chunk.numbers)[1] for chunk in chunks]
    assert sum(report.games_read for report in reports) == NUM_GAMES


REPEATED_RESULTS = b"""[Event "a"]

1. e4 e5 1/2-1/2 1/2-1/2

[Event "b"]

1. d4 d5 1-0 1-0

[Event "c"]

1. c4 c5 1/2-1/2 1/2-1/2
"""


def test_a_file_may_be_cut_anywhere_in_a_repeated_result_bug(tmp_path, monkeypatch):
    path = tmp_path / "games.pgn"
    path.write_bytes(REPEATED_RESULTS)
    expected, _ = read_games(REPEATED_RESULTS)
    assert expected.num_games == 3
    for size in range(1, len(REPEATED_RESULTS) + 1):
        monkeypatch.setattr(pgn_source, "_BLOCK_BYTES", size)
        (chunk,) = pgn_source.read_chunks(path)
        assert chunk.text == REPEATED_RESULTS
        assert read_games(chunk.text)[1].games == 3


START_IMPORT = """
import sys, time
from pathlib import Path
from chess_snn.pgn import importing
from chess_snn.pgn.importing import import_pgn
importing._Run.finish = lambda run: time.sleep(600)  # it must not be over before it is killed
importing.FEW_CHUNKS = 0
import_pgn(Path(sys.argv[1]), Path(sys.argv[2]), workers=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("num_shards", [0, 1])
def test_kill_9_leaves_whole_shards_and_a_second_run_completes_them(
    pgn_file, imported, tmp_path, num_shards
):
    out = tmp_path / "out"
    process = subprocess.Popen([sys.executable, "-c", START_IMPORT, str(pgn_file), str(out)],
                               cwd=Path(__file__).parents[2])
    try:
        deadline = time.monotonic() + DEADLINE_S
        while not is_import(out) or len(ImportFolder.open(out).shards()) < num_shards:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.002)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(DEADLINE_S)
    folder = ImportFolder.open(out)
    assert folder.report() is None
    for shard in folder.shards():
        read_shard(shard)
    again = import_pgn(pgn_file, out, workers=2)
    assert again.report.to_json() == imported.report.to_json()
    # A worker of the dead process may still have been at its last shard.
    deadline = time.monotonic() + DEADLINE_S
    while any(out.rglob(".tmp-*")) and time.monotonic() < deadline:
        ImportFolder.open(out).sweep()
        time.sleep(0.1)
    assert contents(out) == contents(imported.folder.path)


def test_a_worker_that_dies_is_one_line_and_the_next_run_goes_on(pgn_file, tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "FEW_CHUNKS", 0)
    monkeypatch.setattr(importing, "warm_up", partial(os._exit, 7))
    with pytest.raises(UsageError):
        import_pgn(pgn_file, tmp_path / "out")
    monkeypatch.undo()
    assert import_pgn(pgn_file, tmp_path / "out").new_games == NUM_GAMES


@pytest.mark.usefixtures("threads_for_processes")
def test_a_small_file_waits_for_processes_bug(tmp_path, monkeypatch):
    @contextmanager
    def fail(_num_workers):
        raise AssertionError("a process was started")
        yield

    monkeypatch.setattr(importing, "process_pool", fail)
    path = tmp_path / "small.pgn"
    path.write_text(pgn_text(20))
    assert import_pgn(path, tmp_path / "out", workers=8).report.games == 19


@pytest.mark.fault(20)
def test_strict_ends_at_the_first_bad_game_of_the_file(tmp_path):
    text = pgn_text(NUM_GAMES)
    good_start = text.index('[Event "game 1"]')
    path = tmp_path / "late.pgn"
    path.write_text(text[good_start:])  # game 100 of the rest is bad
    with pytest.raises(UsageError, match=r"late\.pgn.* 100.*'Ke3'"):
        import_pgn(path, tmp_path / "out", workers=2, strict=True)
    assert ImportFolder.open(tmp_path / "out").report() is None
    for shard in ImportFolder.open(tmp_path / "out").shards():
        assert read_shard(shard)[1].meta["report"]["refused"] == {}


@pytest.mark.usefixtures("threads_for_processes")
def test_another_file_or_folder_is_refused_and_nothing_is_touched(pgn_file, imported, tmp_path):
    before = contents(imported.folder.path)
    other = tmp_path / "other.pgn"
    other.write_text(pgn_text(20, seed=1))
    with pytest.raises(UsageError, match=r"games\.pgn"):
        import_pgn(other, imported.folder.path)
    text = pgn_file.read_text()
    for name, changed, reason in (
        ("longer", text + pgn_text(20, seed=1), r"shard-000002 .*longer"),
        ("shorter", text[: text.index('[Event "game 1001"]')], "shorter"),
    ):
        other = tmp_path / name
        other.write_text(changed)
        with pytest.raises(UsageError, match=reason):
            import_pgn(other, imported.folder.path)
    first_chunk = next(pgn_source.read_chunks(pgn_file)).text
    other.write_bytes(first_chunk)
    with pytest.raises(UsageError, match="shard-000001"):
        import_pgn(other, imported.folder.path)
    assert contents(imported.folder.path) == before

    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError):
        import_pgn(pgn_file, tmp_path / "full")
    with pytest.raises(UsageError, match=r"thesis\.txt"):
        import_pgn(pgn_file, tmp_path / "full" / "thesis.txt")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.txt"]


def damaged(content):
    return content[: len(content) // 2]


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]


@pytest.mark.parametrize(("pack", "harm"), [
    ("gzip", flipped), ("zstd", damaged),
    pytest.param("gzip", damaged, marks=pytest.mark.slow),
    pytest.param("zstd", flipped, marks=pytest.mark.slow),
])
def test_a_damaged_packed_file_is_one_line_and_the_whole_one_goes_on(
    pgn_file, imported, tmp_path, pack, harm
):
    if pack == "zstd":
        compressor = pytest.importorskip("zstandard").ZstdCompressor(write_checksum=True)
        packed = compressor.compress(pgn_file.read_bytes())
    else:
        packed = gzip.compress(pgn_file.read_bytes())
    path = tmp_path / "games.pgn"
    path.write_bytes(harm(packed))
    with pytest.raises(CorruptDataError):
        import_pgn(path, tmp_path / "out")
    path.write_bytes(packed)
    import_pgn(path, tmp_path / "out")
    assert contents(tmp_path / "out").keys() == contents(imported.folder.path).keys()


@pytest.mark.fault(20)
@pytest.mark.parametrize(("content", "named"), [
    (b"", "x.pgn"), (b"\n ; nothing\n", "x.pgn"), ("[Event".encode("utf-16"), "UTF-16"),
    (b"PK\x03\x04rest", "zip"), (b"7z\xbc\xaf\x27\x1c", "7z"), (b"BZh91AY", "bzip2"),
    (b"\xfd7zXZ\0", "xz"), (b"\x1f\x8b", "x.pgn"),
], ids=lambda value: repr(value)[:12])
def test_what_is_no_pgn_is_refused_and_no_folder_is_made(tmp_path, content, named):
    path = tmp_path / "x.pgn"
    path.write_bytes(content)
    with pytest.raises((UsageError, CorruptDataError), match=named):
        import_pgn(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("threads_for_processes")
def test_a_game_without_an_end_is_refused_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(pgn_source, "LONGEST_GAME_BYTES", 1 << 20)
    path = tmp_path / "x.pgn"
    path.write_bytes(b"1. e4 1-0\n1. d4 {" + b"never closed " * 300_000)
    with pytest.raises(UsageError, match="game 2 "):
        import_pgn(path, tmp_path / "out")


def test_damaged_descriptions_are_named(imported, tmp_path):
    (tmp_path / "import.json").write_text("{}")
    with pytest.raises(CorruptDataError, match=r"import\.json"):
        ImportFolder.open(tmp_path)
    with pytest.raises(CorruptDataError, match=r"import\.json"):
        ImportFolder.open(tmp_path / "nothing")
    (tmp_path / "import.json").write_bytes((imported.folder.path / "import.json").read_bytes())
    (tmp_path / "report.json").write_text('{"games": 3}')
    with pytest.raises(CorruptDataError, match=r"report\.json"):
        ImportFolder.open(tmp_path).report()
