"""``chess-snn match``: what it prints is what was played; bad input is refused before any game."""

import io
import json

import chess.pgn
import pytest
from small_campaigns import MICRO_2048, make_networks, make_weights

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.campaign.stages import prepare_first_generation

QUICK = ("--max-plies", 8, "--threads", 1)


@pytest.fixture
def places(tmp_path):
    make_networks(tmp_path / "a", generations=(0, 1))
    make_weights(tmp_path / "net.safetensors")
    return tmp_path


def read(path):
    return json.loads(path.read_text())


def test_fixed_players_and_what_is_said_of_them(chess_snn, tmp_path):
    done = chess_snn("match", "greedy", "random", "--games", 40, "--seed", 3,
                     "--json-file", "out/match.json")
    assert done.returncode == 0, done.stderr
    body = read(tmp_path / "out" / "match.json")
    assert (body["player_a"], body["player_b"], body["num_games"]) == ("greedy", "random", 40)
    assert (body["seed"], body["max_plies"], body["opening_source"]) == (3, 200, "book")
    assert body["score_low"] < body["score"] < body["score_high"]
    assert sum(body["pair_counts"]) == 20
    elo = body["elo"]
    assert elo["low"] < elo["difference"] < elo["high"]
    for shown in (f"{body['score']:.3f}", f"{body['score_low']:.3f}", f"{elo['difference']:+.0f}",
                  f"{body['likelihood_of_superiority']:.1%} that greedy is the better one",
                  f"checkmate {body['terminations']['checkmate']}", f"{body['mean_plies']:.1f}"):
        assert shown in done.stdout


def test_a_clean_sweep_has_one_bound(chess_snn, tmp_path):
    chess_snn("match", "minimax:2", "random", "--games", 4, "--max-plies", 400,
              "--json-file", "sweep.json")
    body = read(tmp_path / "sweep.json")
    assert body["score"] == 1.0, "another seed is needed"
    assert body["elo"]["difference"] is None
    assert body["elo"]["high"] is None
    assert round(body["elo"]["low"]) == -216  # 0.05 ** (1 / 2) = 0.2236


def test_games_are_written_as_pgn(chess_snn, places):
    done = chess_snn("match", "a@1:2", "net.safetensors:0", "--games", 6, *QUICK, "--seed", 4,
                     "--pgn", "out/games.pgn", "--json-file", "m.json")
    assert done.returncode == 0, done.stderr
    stream = io.StringIO((places / "out" / "games.pgn").read_text())
    games = list(iter(lambda: chess.pgn.read_game(stream), None))
    assert len(games) == 6
    body = read(places / "m.json")
    for number, game in enumerate(games):
        assert not game.errors
        assert game.end().ply() - game.ply() == 8 == body["per_game"]["plies"][number]
        assert game.headers["OpeningKey"] == body["openings"]["key"][number // 2]
        assert game.headers["Seed"] == "4"
    headers = games[0].headers
    assert (headers["White"], headers["WhiteGeneration"], headers["WhiteSimulations"]) == (
        "a@1:2", "1", "2")
    assert len(headers["WhiteConfigDigest"]) == 12
    assert (headers["Black"], headers["BlackSimulations"]) == ("net.safetensors:0", "0")


@pytest.mark.parametrize(("openings", "plies"), [("random", 4), ("random:7", 7)])
def test_random_openings(chess_snn, tmp_path, openings, plies):
    chess_snn("match", "random", "greedy", "--games", 4, *QUICK, "--openings", openings,
              "--json-file", "m.json")
    body = read(tmp_path / "m.json")
    assert body["opening_source"] == openings
    assert {chess.Board(fen).ply() for fen in body["openings"]["position"]} == {plies}


@pytest.mark.parametrize(("player", "options", "name"), [
    ("a", (), "a@1:64"),
    ("a", ("--simulations", 0), "a@1:0"),
    ("a/checkpoints/gen-000000", ("--simulations", 2), "a/checkpoints/gen-000000:2"),
    ("a~50", (), "a@1:64~50"), ("greedy~7.5", (), "greedy~7.5"),
])
def test_networks_play_with_their_budget(chess_snn, places, player, options, name):
    done = chess_snn("match", player, "random", "--games", 2, *QUICK, *options,
                     "--json-file", "m.json")
    assert done.returncode == 0, done.stderr
    body = read(places / "m.json")
    assert (body["player_a"], body["truncated"]) == (name, 2)


@pytest.fixture
def null_engine(tmp_path):
    """A program that answers the null move."""
    path = tmp_path / "null"
    path.write_text(
        '#!/bin/sh\nwhile read word rest; do case $word in uci) echo "id name Null 2"; echo uciok;;'
        ' isready) echo readyok;; go) echo "bestmove 0000";; esac; done\n'
    )
    path.chmod(0o755)
    return path


def test_what_an_engine_does_wrong_is_said(chess_snn, tmp_path, null_engine):
    name = f"uci:{null_engine}@5"
    done = chess_snn("match", name, "random", "--games", 2, *QUICK, "--json-file", "m.json")
    assert done.returncode == 0, done.stderr
    body = read(tmp_path / "m.json")
    assert (body["forfeits_a"], body["voided"]) == (2, 0)
    assert body["programs"][name]["identity"] == "Null 2"


# ``match`` of 2048: the same seeds; bad input is one line.


@pytest.fixture
def campaigns_of_2048(tmp_path):
    for name, seed in (("a", 1), ("b", 2)):
        settings = [*MICRO_2048, f"campaign.seed={seed}"]
        folder = CampaignFolder.create(tmp_path / name, load_config(settings=settings))
        prepare_first_generation(folder)
    return tmp_path


def test_a_match_of_2048_needs_no_option_beside_a_network(chess_snn, campaigns_of_2048):
    done = chess_snn("match", "a:4", "random", "--games", 6, "--max-plies", 20,
                     "--json-file", "match.json")
    assert done.returncode == 0, done.stderr
    body = read(campaigns_of_2048 / "match.json")
    assert body["game"] == "2048"
    assert body["points"]["a"]["games"] == 3


def test_two_networks_are_compared_by_seeds(chess_snn, campaigns_of_2048):
    done = chess_snn("match", "a:4", "b:0", "--games", 6, "--max-plies", 20,
                     "--json-file", "compared.json")
    assert done.returncode == 0, done.stderr
    body = read(campaigns_of_2048 / "compared.json")
    assert body["points"]["ahead"]["mean"] == pytest.approx(
        body["points"]["a"]["mean"] - body["points"]["b"]["mean"]
    )
    assert f"{body['likelihood_of_superiority']:.1%} that a@0:4 is the better one" in done.stdout
