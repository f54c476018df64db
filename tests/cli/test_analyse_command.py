"""``chess-snn analyse``: a table that adds up, and errors before any work."""

import json
from xml.etree import ElementTree

import chess
import pytest
from small_campaigns import make_networks, make_weights

from chess_snn.errors import UsageError
from chess_snn.games import get_game
from chess_snn.nets import build_network, net_config, save_network

SCHOLARS = "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4"
BLACK = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 2"


@pytest.fixture
def analysed(chess_snn, tmp_path):
    """Analyse with the weights of an untrained network; returns the text and the JSON."""
    make_weights(tmp_path / "net.safetensors")

    def run(*arguments):
        done = chess_snn("analyse", *arguments, "--model", "net.safetensors",
                         "--json-file", "out/found.json")
        assert done.returncode == 0, done.stderr
        return done.stdout, json.loads((tmp_path / "out" / "found.json").read_text())

    return run


@pytest.mark.parametrize("fen", [SCHOLARS, BLACK, "startpos"])
def test_candidates_are_the_legal_moves_and_add_up(analysed, fen):
    _, body = analysed(fen, "--simulations", 50, "--top", 3)
    board = chess.Board() if fen == "startpos" else chess.Board(fen)
    assert body["fen"] == board.fen()
    moves = {board.san(move): move.uci() for move in board.legal_moves}
    assert {row["san"]: row["uci"] for row in body["candidates"]} == moves
    assert sum(row["visits"] for row in body["candidates"]) == body["simulations"] == 50
    for column in ("prior", "policy"):
        assert sum(row[column] for row in body["candidates"]) == pytest.approx(1, abs=1e-4)
    for row in body["candidates"]:
        assert sum(row["wdl_stm"]) == pytest.approx(1, abs=1e-4)
        assert (row["q_stm"] is None) == (row["visits"] == 0)
    best = body["candidates"][0]
    assert body["principal_variation"]["uci"][0] == best["uci"]
    for uci in body["principal_variation"]["uci"]:
        board.push_uci(uci)  # raises where the line is not legal


def test_spikes_of_the_evaluation_are_told(analysed):
    text, body = analysed("startpos", "--simulations", 4)
    assert 0 < body["spikes"]["share"] < 1
    assert f"{body['spikes']['total']:,.0f} spikes" in text


@pytest.mark.parametrize("arguments", [("startpos",), ("startpos", "--game", "2048")])
def test_spikes_are_drawn(chess_snn, tmp_path, arguments):
    done = chess_snn("analyse", *arguments, "--simulations", 4, "--spikes", "out/spikes.svg")
    assert done.returncode == 0, done.stderr
    svg = ElementTree.parse(tmp_path / "out" / "spikes.svg").getroot()
    texts = ["".join(text.itertext()) for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0].startswith("shipped/")
    assert any(text.startswith("policy.neurons ") for text in texts)


def test_an_ordinary_network_has_no_spikes_to_draw(refused, tmp_path):
    network = build_network(get_game("chess").spec, net_config("tiny").baseline(), 0)
    save_network(tmp_path / "relu.safetensors", network)
    refused("analyse", "startpos", "--model", "relu.safetensors", "--spikes", "out.svg")
    assert not (tmp_path / "out.svg").exists()


@pytest.mark.fault(20)
@pytest.mark.parametrize(("arguments", "named"), [
    (("startpos", "--simulations", 90_000, "--model", "mean"), "search.memory_mib"),
    (("startpos", "--device", "cuda:99"), "cuda:99"),
])
def test_what_this_machine_cannot_do_is_one_line_before_any_work(
    refused, tmp_path, arguments, named
):
    folder = make_networks(tmp_path / "mean", generations=(0,))
    config = folder.path / "campaign.toml"
    config.write_text(config.read_text().replace("memory_mib = 4096", "memory_mib = 100"))
    assert named in refused("analyse", *arguments)


# ``chess-snn analyse`` with a network of 2048.


GAME = get_game("2048")
MERGES = "2 2 4 8/4 8 16 32/8 16 32 64/16 32 64 128"


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


@pytest.mark.parametrize("game", ["chess", "2048"])
def test_without_a_network_the_shipped_one_is_asked(refused, monkeypatch, game):
    def refuse(text, **_):
        raise UsageError(text)

    monkeypatch.setattr("chess_snn.cli.analyse.load", refuse)
    assert f"shipped/{game} " in refused("analyse", "startpos", "--game", game)
