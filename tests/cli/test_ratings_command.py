import json

import pytest
from typer.testing import CliRunner

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.cli.main import app
from chess_snn.data import write_json


@pytest.fixture
def folder(tmp_path):
    return CampaignFolder.create(tmp_path / "c", load_config("smoke"))


def run(*arguments):
    return CliRunner().invoke(app, ["ratings", *map(str, arguments)])


def play(folder, scores, name="random", opponent="random", player="gen-000004"):
    write_json(folder.match("gen-000004", name), {
        "player_a": player, "player_b": opponent,
        "per_game": {
            "opening_index": [index // 2 for index in range(len(scores))],
            "a_is_white": [index % 2 == 0 for index in range(len(scores))],
            "score_a": scores,
        },
    })


def test_players_are_rated_with_intervals(folder):
    play(folder, [1.0, 1.0, 0.5, 1.0, 0.0, 0.5, 1.0, 0.0] * 5)
    shown = run(folder.path).output
    assert "gen-000004" in shown
    body = json.loads(run(folder.path, "--json").output)
    rows = {row["player"]: row for row in body["players"]}
    assert rows["random"]["elo"] == 0
    rated = rows["gen-000004"]
    assert rated["elo_low"] < rated["elo"] < rated["elo_high"]


def test_a_perfect_score_is_a_bound(folder):
    play(folder, [1.0] * 20)
    assert "at least" in run(folder.path).output


def test_who_cannot_be_rated_is_named(folder):
    play(folder, [1.0, 0.0] * 10)
    play(folder, [0.5] * 4, "apart", "greedy", "gen-000004@64")
    assert "not rated, because no chain of games" in run(folder.path).output
    body = json.loads(run(folder.path, "--json").output)
    assert body["left_out"] == ["gen-000004@64", "greedy"]


def test_without_games_it_says_when_there_will_be_some(folder):
    result = run(folder.path)
    assert result.exit_code != 0
    assert "no match against random yet" in str(result.exception)
