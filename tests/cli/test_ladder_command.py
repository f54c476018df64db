"""``chess-snn ladder``: made, shown and checked on few games of players without an engine."""

import io
import json
from dataclasses import replace
from xml.etree import ElementTree

import chess.pgn
import pytest
from small_campaigns import make_networks

from chess_snn.evaluation.ladder.games_file import pack_games, unpack_games

SMALL = ("--pairs", 6, "--players", "random,greedy~50,greedy", "--max-plies", 60, "--threads", 1)


@pytest.fixture
def made(chess_snn, tmp_path):
    done = chess_snn("ladder", "make", "--out", "mine", *SMALL)
    assert done.returncode == 0, done.stderr
    return done


def read(path):
    return json.loads(path.read_text())


def test_it_is_made_with_its_games(made, tmp_path):
    body = read(tmp_path / "mine" / "ladder.json")
    assert {row["player"] for row in body["ratings"]["players"]} == {
        "random", "greedy~50", "greedy"
    }
    assert sum(sum(map(sum, row["pairs"])) for row in body["pairings"]) == 18
    assert body["origin"]["command"] == (
        "chess-snn ladder make --pairs 6 --seed 0 --players random,greedy~50,greedy "
        "--max-plies 60"
    )
    assert body["origin"]["is_complete"]
    assert (tmp_path / "mine" / "ladder.games.zst").is_file()
    assert "greedy~50" in made.stdout
    assert "36 games of 3 pairings" in made.stdout


def test_decreed_ratings_stand_beside_measured_ones(made, chess_snn):
    shown = chess_snn("ladder", "show", "--ladder", "mine/ladder.json")
    rows = {line.split()[0]: line for line in shown.stdout.splitlines() if line.split()}
    assert rows["random"].split()[-1] == "400"
    assert rows["greedy"].split()[-1] == "800"
    assert "400" not in rows["greedy~50"].split()
    assert "Decreed" in shown.stdout


def test_as_json(made, chess_snn, tmp_path):
    shown = chess_snn("ladder", "show", "--ladder", "mine/ladder.json", "--json")
    assert json.loads(shown.stdout) == read(tmp_path / "mine" / "ladder.json")


def test_a_check_finds_the_same_games(made, chess_snn):
    done = chess_snn("ladder", "check", "--ladder", "mine/ladder.json", "--pairs", 2,
                     "--threads", 1)
    assert done.returncode == 0, done.stdout
    assert "12 of 12 games are the same" in done.stdout


def test_a_ladder_of_other_games_fails_its_check(made, chess_snn, tmp_path):
    path = tmp_path / "mine" / "ladder.games.zst"
    path.write_bytes(pack_games(replace(unpack_games(path.read_bytes()), seed=1)))
    check = ("ladder", "check", "--ladder", "mine/ladder.json", "--threads", 1)
    done = chess_snn(*check)
    assert done.returncode == 1
    assert "CHANGED" in done.stdout
    assert "0 of 24 games are the same" in done.stdout
    refused = chess_snn(*check, "--pairs", 7)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--pairs must be >= 1 and <= 6, got 7" in refused.stderr
    path.unlink()
    assert "mine/ladder.games.zst" in chess_snn(*check).stderr


def test_a_check_can_be_kept(made, chess_snn, tmp_path):
    done = chess_snn("ladder", "check", "--ladder", "mine/ladder.json", "--pairs", 1,
                     "--threads", 1, "--out", "kept")
    assert done.returncode == 0
    assert len(list((tmp_path / "kept" / "parts").iterdir())) == 3


def test_its_games_as_pgn(made, chess_snn, tmp_path):
    done = chess_snn("ladder", "games", "--games", "mine/ladder.games.zst", "--out", "g.pgn",
                     "--player", "greedy")
    assert "24 games written to g.pgn" in done.stdout
    stream = io.StringIO((tmp_path / "g.pgn").read_text())
    games = list(iter(lambda: chess.pgn.read_game(stream), None))
    assert len(games) == 24
    for game in games:
        assert not game.errors
        assert "greedy" in (game.headers["White"], game.headers["Black"])
        assert game.headers["OpeningKey"].startswith("book:")
    refused = chess_snn("ladder", "games", "--games", "mine/ladder.games.zst", "--out", "h.pgn",
                        "--player", "bob")
    assert "known: greedy, greedy~50, random" in refused.stderr
    missing = chess_snn("ladder", "games", "--games", "none.zst", "--out", "h.pgn")
    assert "none.zst: No such file" in missing.stderr


# Rating networks


RATE = ("--ladder", "mine/ladder.json", "--games", 10, "--simulations", 0, "--threads", 1)


def test_networks_are_rated_in_one_table_with_a_plot_and_their_games(made, chess_snn, tmp_path):
    make_networks(tmp_path / "a", generations=(0, 1))
    done = chess_snn("ladder", "rate", "a@0", "a@1", *RATE, "--out", "rated", "--plot", "p.svg",
                     "--json-file", "r.json")
    assert done.returncode == 0, done.stderr
    body = read(tmp_path / "rated" / "ratings.json")
    assert body == read(tmp_path / "r.json")
    assert body["scale"] == "Elo on the ladder, random = 0"
    assert [row["player"] for row in body["networks"]] == ["a@0:0", "a@1:0"]
    for row in body["networks"]:
        assert (row["num_games"], row["simulations"]) == (10, 0)
        assert sum(played["num_games"] for played in row["opponents"]) == 10
        assert row["elo_low"] is not None or row["elo_high"] is not None
    for text in ("Elo on the ladder, random = 0", "a@0:0", "a@1:0", "95 % interval"):
        assert text in done.stdout
    picture = ElementTree.parse(tmp_path / "p.svg").getroot()
    assert picture.tag.endswith("svg")
    assert (tmp_path / "rated" / "ratings.svg").read_text() == (tmp_path / "p.svg").read_text()
    stream = io.StringIO((tmp_path / "rated" / "games.pgn").read_text())
    games = list(iter(lambda: chess.pgn.read_game(stream), None))
    assert len(games) == 20
    assert not any(game.errors for game in games)

    parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "rated" / "parts").iterdir()}
    again = chess_snn("ladder", "rate", "a@0", "a@1", *RATE, "--out", "rated", "--json")
    assert json.loads(again.stdout) == body
    assert {path: path.stat().st_mtime_ns for path in parts} == parts
    other = chess_snn("ladder", "rate", "a@0", *RATE, "--out", "rated", "--seed", 1)
    assert other.returncode == 2
    assert "was played with seed 0, and 1 is asked for" in other.stderr


def test_a_network_is_rated_against_chosen_players(made, chess_snn, tmp_path):
    make_networks(tmp_path / "a", generations=(0,))
    done = chess_snn("ladder", "rate", "a", *RATE, "--against", "random,greedy,minimax:1", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["networks"]
    assert [played["player"] for played in row["opponents"]] == ["random", "greedy", "minimax:1"]
    assert row["num_games"] == 30
