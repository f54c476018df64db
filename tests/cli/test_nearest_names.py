"""A name that is almost right: the message has the right one."""

import pytest

from chess_snn.api.matches import player
from chess_snn.campaign.configuration.loading import load_config
from chess_snn.campaign.models.references import find_model
from chess_snn.errors import ChessSnnError, ConfigError
from chess_snn.evaluation.named_players import check_player
from chess_snn.games import get_game
from chess_snn.uci.options import Options, set_option


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "campaigns" / "smoke-001").mkdir(parents=True)
    (tmp_path / "networks").mkdir()
    (tmp_path / "networks" / "mine.safetensors").write_bytes(b"")
    (tmp_path / "networks" / "notes.txt").write_bytes(b"")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("text", "meant"), [
    ("Shipped/2048", "shipped/2048"), ("shiped/chess:64~10", "shipped/chess"),
    ("shiped/chess#search.kind=puct", "shipped/chess"),
    ("campaigns/smoke-01@champion", "campaigns/smoke-001@champion"),
    ("campaigns/smoke-01@3:8", "campaigns/smoke-001@3"),
    ("networks/mines.safetensors", "networks/mine.safetensors"),
    ("minmax:2", "minimax:2"), ("rondom~25", "random~25"), ("stokfish@100", "stockfish@100"),
])
def test_a_misspelled_player_or_network(text, meant):
    with pytest.raises(ChessSnnError, match=rf"did you mean {meant}\?"):
        player(text, game="chess")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", ["bob", "networks/archive.txt", "x" * 300, "a/b/c", "minimax", ""])
def test_what_resembles_nothing_lists_what_is_known(text):
    with pytest.raises(ChessSnnError) as raised:
        find_model(text, simulations=8)
    assert "did you mean" not in str(raised.value)


@pytest.mark.parametrize(("ask", "meant"), [
    (lambda: check_player(get_game("chess"), "gredy~5"), "greedy"),
    (lambda: get_game("ches"), "chess"),
    (lambda: load_config("smokee"), "smoke"),
    (lambda: set_option(Options(), "Thread", "2"), "Threads"),
    (lambda: load_config("smoke", settings=[("net.sise", "tiny")]), "net.size"),
])
def test_other_names(ask, meant):
    with pytest.raises(ConfigError, match=rf"did you mean {meant}\?"):
        ask()
