"""``scores``, ``match`` and ``models compare`` of 2048: the same seeds; bad input is one line."""

import json

import pytest
from small_campaigns import MICRO_2048

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.stages import prepare_first_generation


@pytest.fixture
def places(tmp_path):
    for name, seed in (("a", 1), ("b", 2)):
        settings = [*MICRO_2048, f"campaign.seed={seed}"]
        folder = CampaignFolder.create(tmp_path / name, load_config(settings=settings))
        prepare_first_generation(folder)
    return tmp_path


def read(path):
    return json.loads(path.read_text())


def test_every_player_has_a_column_of_its_own(chess_snn, places):
    done = chess_snn("scores", "a:0", "random", "expectimax:1", "--games", 20, "--max-plies", 60,
                     "--json-file", "scores.json")
    assert done.returncode == 0, done.stderr
    players = read(places / "scores.json")["players"]
    assert list(players) == ["a@0:0", "random", "expectimax:1"]
    assert players["expectimax:1"]["mean"] > players["random"]["mean"]
    assert players["a@0:0"]["ahead_of_first"]["mean"] == 0
    for row in players.values():
        assert row["low"] <= row["mean"] <= row["high"]
        assert row["moves_per_s"] > 0
        assert "2048" in row["reached"]


def test_a_match_of_2048_needs_no_option_beside_a_network(chess_snn, places):
    done = chess_snn("match", "a:4", "random", "--games", 6, "--max-plies", 20,
                     "--json-file", "match.json")
    assert done.returncode == 0, done.stderr
    body = read(places / "match.json")
    assert body["game"] == "2048"
    assert body["points"]["a"]["games"] == 3
    assert "points a seed" in done.stdout


def test_two_networks_are_compared_by_seeds(chess_snn, places):
    done = chess_snn("models", "compare", "a:4", "b:0", "--games", 6, "--max-plies", 20,
                     "--out", "compared")
    assert done.returncode == 0, done.stderr
    body = read(places / "compared" / "comparison.json")
    assert body["points"]["ahead"]["mean"] == pytest.approx(
        body["points"]["a"]["mean"] - body["points"]["b"]["mean"]
    )
    assert not (places / "compared" / "games.pgn").exists()
