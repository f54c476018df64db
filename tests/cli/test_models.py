"""Which network a text means, and how it is searched with."""

import os

import pytest
from small_campaigns import make_networks, make_weights, small_network

from chess_snn.cli.players import find_model, newest_or_untrained
from chess_snn.errors import CorruptDataError
from chess_snn.games import get_game
from chess_snn.nets import network_digest
from chess_snn.search import SearchSettings


@pytest.fixture
def places(tmp_path, monkeypatch):
    make_networks(tmp_path / "runs" / "a", generations=(0, 1, 12))
    make_networks(tmp_path / "runs" / "fresh", generations=())
    make_networks(tmp_path / "odd@3", generations=(0,))
    make_weights(tmp_path / "net.safetensors")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("text", "label", "seed"), [
    ("runs/a", "runs/a@12", 12),
    ("runs/a/", "runs/a@12", 12),
    ("runs/a@1", "runs/a@1", 1),
    ("runs/a@012", "runs/a@12", 12),
    ("odd@3", "odd@3@0", 0),
    ("odd@3@0", "odd@3@0", 0),
    ("runs/a/checkpoints/gen-000001", "runs/a/checkpoints/gen-000001", 1),
    ("runs/a/checkpoints/gen-000001/weights.safetensors",
     "runs/a/checkpoints/gen-000001/weights.safetensors", 1),
])
def test_a_network_of_a_campaign_is_played_by_its_settings(places, text, label, seed):
    model = find_model(text)
    assert model.label == label
    assert model.precision == "fp32"
    assert (model.search.kind, model.search.exploration) == ("puct", 2.5)
    assert network_digest(model.load(get_game("chess"))) == network_digest(small_network(seed))


def test_a_file_on_its_own_is_played_by_the_defaults(places):
    model = find_model("net.safetensors")
    assert (model.label, model.precision) == ("net.safetensors", "bf16")
    assert model.search == SearchSettings()
    assert network_digest(model.load(get_game("chess"))) == network_digest(small_network(9))


def test_a_damaged_checkpoint_is_not_loaded(places):
    model = find_model("runs/a")
    content = bytearray(model.weights.read_bytes())
    content[-1] ^= 1
    model.weights.write_bytes(content)
    with pytest.raises(CorruptDataError, match=r"weights\.safetensors"):
        model.load(get_game("chess"))


def test_an_unfinished_generation_is_passed_over(places):
    checkpoint = places / "runs" / "a" / "checkpoints"
    (checkpoint / "gen-000013").mkdir()
    assert find_model("runs/a").label == "runs/a@12"


def test_without_a_name_the_newest_of_all_campaigns_is_taken(places):
    assert newest_or_untrained().weights is None
    early = make_networks(places / "campaigns" / "x", generations=(0, 5))
    late = make_networks(places / "home" / "campaigns" / "y", generations=(3,))
    os.utime(early.checkpoint(5), (100, 100))
    assert newest_or_untrained().weights == late.checkpoint(3) / "weights.safetensors"
    os.utime(late.checkpoint(3), (50, 50))
    assert newest_or_untrained().label == "campaigns/x@5"


def test_a_campaign_that_cannot_be_read_is_told_and_left_out_bug(places, capfd):
    good = make_networks(places / "campaigns" / "x", generations=(5,))
    make_networks(places / "campaigns" / "z", generations=(9,))
    (places / "campaigns" / "z" / "campaign.toml").write_text("[campaign")
    assert newest_or_untrained().weights == good.checkpoint(5) / "weights.safetensors"
    told = capfd.readouterr()
    assert "left out: " in told.out + told.err
