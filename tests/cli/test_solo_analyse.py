"""``chess-snn analyse`` with a network of 2048."""

import json

import pytest
from small_campaigns import make_weights

from chess_snn.campaign.store.naming import HOME_VARIABLE
from chess_snn.games import get_game

GAME = get_game("2048")
MERGES = "2 2 4 8/4 8 16 32/8 16 32 64/16 32 64 128"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.parametrize("position", ["startpos", MERGES])
def test_moves_are_the_legal_ones_and_add_up(chess_snn, tmp_path, position):
    make_weights(tmp_path / "tiles.safetensors", game="2048")
    done = chess_snn("analyse", position, "--model", "tiles.safetensors", "--simulations", 24,
                     "--json-file", "found.json")
    assert done.returncode == 0, done.stderr
    body = json.loads((tmp_path / "found.json").read_text())
    state = GAME.parse_state(body["position"])
    legal_actions, num_legal = GAME.legal_actions(state[None])
    moves = [GAME.format_action(state, action) for action in legal_actions[0, : num_legal[0]]]
    rows = body["candidates"]
    assert {row["move"] for row in rows} == set(moves)
    assert sum(row["visits"] for row in rows) == 24
    for column in ("prior", "policy"):
        assert sum(row[column] for row in rows) == pytest.approx(1, abs=1e-4)
    advised = GAME.planned_actions(state[None], 2)[0]
    assert [row["move"] for row in rows if row["is_advised"]] == [
        GAME.format_action(state, advised)]
    assert body["principal_variation"][0] == rows[0]["move"]
    assert 0 <= body["score_to_go"] <= 1024 * 1024
    for row in rows:
        assert row["move"] in done.stdout
        batch = GAME.allocate(1)
        GAME.reset(batch, [0], state[None])
        GAME.step(batch, [GAME.parse_action(state, row["move"])])
        points = 1024 * float(batch.reward[0])
        assert row["network_points"] >= points
        assert row["q_points"] is None or row["q_points"] >= points - 1e-3


def test_without_a_network_an_untrained_one_is_asked(chess_snn):
    done = chess_snn("analyse", "startpos", "--game", "2048", "--simulations", 4)
    assert done.returncode == 0, done.stderr
    assert "NO TRAINED NETWORK" in done.stdout
    assert "score to go" in done.stdout
