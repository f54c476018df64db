"""Which network a text means, and how it is searched with."""

import pytest
from small_campaigns import make_networks, make_weights, small_network

from chess_snn.api.matches import play_match
from chess_snn.campaign.models.references import find_model
from chess_snn.data import verify_folder
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.games import get_game
from chess_snn.known import SHIPPED_FOLDER
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


SHIPPED_NETWORKS = sorted(path.name for path in SHIPPED_FOLDER.iterdir())


@pytest.mark.parametrize("name", SHIPPED_NETWORKS)
def test_a_shipped_network_is_what_its_card_says(name):
    model = find_model(f"shipped/{name}")
    verify_folder(SHIPPED_FOLDER / name)
    network = model.load_stored()
    assert network_digest(network) == model.facts["digest"]
    assert model.game in {"chess", "2048"}
    card = (SHIPPED_FOLDER / name / "README.md").read_text()
    assert model.facts["digest"] in card
    assert f"{sum(part.numel() for part in network.parameters()):,} parameters" in card


@pytest.mark.slow
def test_the_shipped_network_of_chess_plays_well():
    match = play_match("shipped/chess:16", "greedy", games=8, openings="random", max_plies=160)
    assert match.score > 0.8


def test_networks_that_are_not_shipped_are_named():
    with pytest.raises(UsageError, match="shipped/chess"):
        find_model("shipped/checkers")
