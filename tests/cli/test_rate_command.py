"""``chess-snn rate``: networks on the ladder, and the program that makes the ladder."""

import io
import json

import chess.pgn
from small_campaigns import make_networks

from benchmarks import ladder
from benchmarks.harness import Report
from chess_snn.evaluation.ladder.ladder import Ladder


def read(path):
    return json.loads(path.read_text())


def test_a_ladder_is_made_and_an_interrupted_run_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(ladder, "DEFAULT_MAX_PLIES", 30)
    report = Report("ladder")
    ladder.run(report, tmp_path, pairs=12, players="random,greedy~50,greedy", seed=3)
    body = read(tmp_path / "ladder.json")
    made = Ladder.from_json(body)
    assert [m.name for m in report.measurements] == list(reversed(made.players))
    assert set(made.players) == {"random", "greedy~50", "greedy"}
    assert [pairing.counts.sum() for pairing in made.pairings] == [12, 12, 12]
    parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").iterdir()}
    assert len(parts) == 6
    ladder.run(Report("ladder"), tmp_path, pairs=12, players="random,greedy~50,greedy", seed=3)
    assert {path: path.stat().st_mtime_ns for path in parts} == parts
    assert read(tmp_path / "ladder.json")["pairings"] == body["pairings"]


def test_neighbours_meet_and_some_that_are_far_apart():
    names = [f"p{number}" for number in range(8)]
    pairings = ladder.ladder_pairings(names)
    distances = [int(b[1:]) - int(a[1:]) for a, b in pairings]
    assert (distances.count(1), distances.count(2), distances.count(4)) == (7, 6, 2)
    assert len(set(pairings)) == len(pairings) == 15


RATE = ("--games", 10, "--simulations", 0, "--threads", 1)


def test_networks_are_rated_in_one_table_with_their_games(chess_snn, tmp_path):
    make_networks(tmp_path / "a", generations=(0, 1))
    done = chess_snn("rate", "a@0", "a@1", *RATE, "--out", "rated", "--json-file", "r.json")
    assert done.returncode == 0, done.stderr
    body = read(tmp_path / "rated" / "ratings.json")
    assert body == read(tmp_path / "r.json")
    assert [row["player"] for row in body["networks"]] == ["a@0:0", "a@1:0"]
    for row in body["networks"]:
        assert (row["num_games"], row["simulations"]) == (10, 0)
        assert sum(played["num_games"] for played in row["opponents"]) == 10
        assert row["elo_low"] is not None or row["elo_high"] is not None
    assert "a@0:0" in done.stdout
    assert "a@1:0" in done.stdout
    stream = io.StringIO((tmp_path / "rated" / "games.pgn").read_text())
    games = list(iter(lambda: chess.pgn.read_game(stream), None))
    assert len(games) == 20
    assert not any(game.errors for game in games)

    parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "rated" / "parts").iterdir()}
    again = chess_snn("rate", "a@0", "a@1", *RATE, "--out", "rated", "--json")
    assert json.loads(again.stdout) == body
    assert {path: path.stat().st_mtime_ns for path in parts} == parts
    assert chess_snn("rate", "a@0", *RATE, "--out", "rated", "--seed", 1).returncode == 2


def test_a_network_is_rated_against_chosen_players(chess_snn, tmp_path):
    make_networks(tmp_path / "a", generations=(0,))
    done = chess_snn("rate", "a", *RATE, "--against", "random,greedy,minimax:1", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["networks"]
    assert [played["player"] for played in row["opponents"]] == ["random", "greedy", "minimax:1"]
    assert row["num_games"] == 30
