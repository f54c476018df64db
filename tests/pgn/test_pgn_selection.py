"""Imports of some games of a file: by rating, time control and result, and up to a number."""

import io
import random

import chess.pgn
import numpy as np
import pytest
from pgn_files import BAD_GAME
from random_games import COLUMNS, random_records

from chess_snn.data import concatenate, read_shard
from chess_snn.errors import ChessSnnError, UsageError
from chess_snn.pgn import importing
from chess_snn.pgn import source as pgn_source
from chess_snn.pgn.folder import ImportFolder
from chess_snn.pgn.importing import import_pgn
from chess_snn.pgn.reading import read_games
from chess_snn.pgn.selection import Selection, speed_of
from chess_snn.pgn.writing import format_game, standard_tags

NUM_GAMES = 400
ELOS = ("?", "", "1500", "1999", "2000", "2400", "3000?")
TIMES = ("180+0", "300+3", "600+0", "60", "900+10", "-", "?", "40/7200:3600", None)

pytestmark = pytest.mark.usefixtures("threads_for_processes")


@pytest.fixture(scope="module")
def texts():
    """Games with and without tags; some of them are bad."""
    stream, records = random.Random(1), random_records(NUM_GAMES, 12, 3)
    made = []
    for k in range(NUM_GAMES):
        tags = {"Event": f"game {k}"} | standard_tags(records, k)
        for name, values in (
            ("WhiteElo", ELOS), ("BlackElo", ELOS), ("TimeControl", TIMES),
        ):
            if (value := stream.choice(values)) is not None:
                tags[name] = value
        text = format_game(records, k, tags)
        made.append(text.replace("1. ", "1. Ke3 ", 1) if k % 7 == 0 else text)
    return made


@pytest.fixture
def pgn_file(texts, tmp_path, monkeypatch):
    monkeypatch.setattr(pgn_source, "GAMES_PER_CHUNK", 16)
    monkeypatch.setattr(importing, "GAMES_PER_CHUNK", 16)
    path = tmp_path / "games.pgn"
    path.write_text("".join(texts))
    return path


def is_wanted(text, min_elo=None, time_controls=(), results=()):
    """The same question, asked by python-chess."""
    tags = chess.pgn.read_headers(io.StringIO(text))
    elos = [tags.get(name, "") for name in ("WhiteElo", "BlackElo")]
    if min_elo is not None and not all(e.isdecimal() and int(e) >= min_elo for e in elos):
        return False
    given = tags.get("TimeControl", "")
    speeds = {"180+0": "blitz", "300+3": "blitz", "600+0": "rapid", "60": "bullet",
              "900+10": "rapid", "-": "correspondence", "40/7200:3600": "classical"}
    if time_controls and not {given, speeds.get(given)} & set(time_controls):
        return False
    return not results or tags["Result"] in results


def records_of(folder):
    return concatenate([read_shard(shard)[0] for shard in folder.shards()])


SELECTIONS = [
    {"min_elo": 2000}, {"time_controls": ("blitz", "-")}, {"results": ("1-0", "0-1")},
    {"time_controls": ("300+3", "classical", "correspondence")}, {"results": ("1/2-1/2",)},
    {"min_elo": 0, "time_controls": ("rapid",), "results": ("1-0", "1/2-1/2")},
]


@pytest.mark.parametrize("wanted", SELECTIONS, ids=str)
def test_the_wanted_games_are_those_of_a_file_that_has_no_others(
    texts, pgn_file, tmp_path, wanted
):
    done = import_pgn(pgn_file, tmp_path / "out", Selection(**wanted))
    kept = [text for text in texts if is_wanted(text, **wanted)]
    expected, report = read_games("".join(kept).encode())
    for name in COLUMNS:
        np.testing.assert_array_equal(
            getattr(records_of(done.folder), name), getattr(expected, name), name
        )
    assert done.report.games_read == NUM_GAMES
    assert done.report.left_out.total() == NUM_GAMES - len(kept)
    assert done.report.refused == report.refused
    for bad in done.report.examples.values():
        assert is_wanted(texts[bad.game - 1], **wanted)
        assert (bad.game - 1) % 7 == 0


def test_every_option_counts_what_it_left_out(texts, pgn_file, tmp_path):
    wanted = {"min_elo": 1500, "time_controls": ("blitz",), "results": ("1-0",)}
    report = import_pgn(pgn_file, tmp_path / "out", Selection(**wanted)).report
    strong = [text for text in texts if is_wanted(text, min_elo=1500)]
    fast = [text for text in strong if is_wanted(text, time_controls=("blitz",))]
    won = [text for text in fast if is_wanted(text, results=("1-0",))]
    assert report.left_out == {
        "min-elo": NUM_GAMES - len(strong), "time-control": len(strong) - len(fast),
        "result": len(fast) - len(won),
    }
    assert report.games + report.games_refused == len(won)


@pytest.mark.parametrize("limit", [1, 13, 14, 16, 60, 100, 10_000])
def test_a_limit_takes_the_first_good_games(texts, pgn_file, tmp_path, limit):
    done = import_pgn(pgn_file, tmp_path / "out", Selection(limit=limit))
    expected, _ = read_games("".join(texts).encode())
    count = min(limit, expected.num_games)
    found = records_of(done.folder)
    assert found.num_games == done.report.games == count
    np.testing.assert_array_equal(found.actions, expected.actions[: expected.game_offsets[count]])


@pytest.mark.parametrize("selection", [
    Selection(min_elo=1500, time_controls=("blitz", "rapid"), limit=30), Selection(limit=77),
], ids=str)
def test_processes_and_interruptions_change_nothing(pgn_file, tmp_path, monkeypatch, selection):
    whole = import_pgn(pgn_file, tmp_path / "whole", selection)
    monkeypatch.setattr(importing, "FEW_CHUNKS", 0)
    shared = import_pgn(pgn_file, tmp_path / "shared", selection, workers=3)
    assert shared.report.to_json() == whole.report.to_json()
    assert [shard.name for shard in shared.folder.shards()] == [
        shard.name for shard in whole.folder.shards()
    ]
    for shard in whole.folder.shards()[::2]:
        shard.unlink()
    (whole.folder.path / "report.json").unlink()
    monkeypatch.undo()
    monkeypatch.setattr(pgn_source, "GAMES_PER_CHUNK", 16)
    monkeypatch.setattr(importing, "GAMES_PER_CHUNK", 16)
    for _ in range(2):
        again = import_pgn(pgn_file, tmp_path / "whole", selection)
        assert again.report.to_json() == shared.report.to_json()
        assert ImportFolder.open(tmp_path / "whole").report().to_json() == again.report.to_json()
        for name in COLUMNS:
            np.testing.assert_array_equal(
                getattr(records_of(again.folder), name), getattr(records_of(shared.folder), name)
            )


def test_another_selection_needs_another_folder(pgn_file, tmp_path):
    import_pgn(pgn_file, tmp_path / "out", Selection(limit=5))
    for other in (Selection(), Selection(limit=6), Selection(limit=5, min_elo=1)):
        with pytest.raises(UsageError, match="--limit 5"):
            import_pgn(pgn_file, tmp_path / "out", other)


def test_a_strict_import_ends_at_a_wanted_bad_game_alone(tmp_path):
    path = tmp_path / "games.pgn"
    won = '[Event "a"]\n[WhiteElo "2000"]\n[BlackElo "2000"]\n[Result "1-0"]\n\n1. e4 1-0\n\n'
    path.write_text(BAD_GAME + won)
    done = import_pgn(path, tmp_path / "out", Selection(min_elo=2000), strict=True)
    assert (done.report.games, done.report.left_out) == (1, {"min-elo": 1})
    with pytest.raises(UsageError, match="game 1, ply 2"):
        import_pgn(path, tmp_path / "all", strict=True)


def test_an_import_that_leaves_out_all_games_says_so(pgn_file, tmp_path):
    done = import_pgn(pgn_file, tmp_path / "out", Selection(min_elo=9999))
    assert (done.report.games, done.report.games_read) == (0, NUM_GAMES)
    assert done.folder.shards() == []


@pytest.mark.parametrize(("time_control", "speed"), [
    ("15+0", "ultrabullet"), ("0+1", "bullet"), ("30", "bullet"), ("60+1", "bullet"),
    ("120+1", "bullet"), ("60+3", "blitz"), ("180+0", "blitz"), ("300+3", "blitz"),
    ("300+4", "blitz"), ("300+5", "rapid"), ("480+0", "rapid"), ("900+15", "classical"),
    ("1500+0", "classical"), ("-", "correspondence"), ("40/7200:3600", "classical"),
    ("?", ""), ("", ""), ("fast", ""), ("300+", ""), ("300 + 3", ""),
])
def test_speeds_are_those_of_lichess(time_control, speed):
    assert speed_of(time_control) == speed


@pytest.mark.parametrize("wrong", [
    {"min_elo": -1}, {"min_elo": 10_000}, {"limit": 0}, {"time_controls": ("fast",)},
    {"time_controls": ("blitz", "")}, {"time_controls": ("5+3m",)}, {"results": ("*",)},
    {"results": ("white",)}, {"results": ("1-0", "")},
], ids=str)
def test_what_selects_nothing_is_refused(wrong):
    with pytest.raises(ChessSnnError):
        Selection(**wrong)
