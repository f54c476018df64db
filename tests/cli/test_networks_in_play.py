"""Options behind ``#`` after a network: the same weights, played otherwise."""

import json
from dataclasses import replace

import pytest
import torch
from small_campaigns import make_networks, make_weights

from chess_snn.campaign.models.model import InPlay
from chess_snn.campaign.models.references import find_model
from chess_snn.campaign.models.starting import find_start
from chess_snn.errors import ChessSnnError, ConfigError, UsageError
from chess_snn.games import get_game
from chess_snn.nets import MOST_TICKS

GAME = get_game("chess")
TRAINED_TICKS = 2


@pytest.fixture
def weights(tmp_path):
    return make_weights(tmp_path / "net.safetensors")


def test_weights_are_the_same_and_ticks_are_not(weights):
    plain, other = find_model(f"{weights}"), find_model(f"{weights}#ticks=3")
    assert (plain.label, other.label) == (f"{weights}", f"{weights}#ticks=3")
    networks = [model.load(GAME) for model in (plain, other)]
    assert [network.config.ticks for network in networks] == [TRAINED_TICKS, 3]
    one, same = (network.state_dict() for network in networks)
    assert one.keys() == same.keys()
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not networks[1].training


@pytest.mark.parametrize(("text", "ticks", "simulations", "percent"), [
    ("{}", 0, 8, None), ("{}#ticks=1", 1, 8, None), ("{}:32", 0, 32, None),
    ("{}#ticks=4:32", 4, 32, None), ("{}#ticks=4:0~25", 4, 0, 25.0),
])
def test_ticks_stand_before_simulations(weights, text, ticks, simulations, percent):
    model = find_model(text.format(weights), simulations=8)
    assert model.in_play == InPlay(ticks)
    assert (model.simulations, model.random_percent) == (simulations, percent)
    assert (f"#ticks={ticks}:" in model.name) == bool(ticks)


def test_a_generation_may_have_ticks(tmp_path):
    folder = make_networks(tmp_path / "a", generations=(0, 1))
    model = find_model(f"{folder.path}@0#ticks=5")
    assert (model.generation, model.in_play.ticks) == (0, 5)
    assert model.load(GAME).config.ticks == 5


def test_a_file_of_that_name_is_taken_as_it_stands(weights):
    path = weights.rename(weights.with_name("net#ticks=3"))
    assert find_model(f"{path}").load(GAME).config.ticks == TRAINED_TICKS


@pytest.mark.parametrize("ticks", [0, MOST_TICKS + 1])
def test_the_number_has_bounds(weights, ticks):
    with pytest.raises(ConfigError):
        find_model(f"{weights}#ticks={ticks}")


def test_integer_neurons_have_one_tick():
    with pytest.raises(UsageError, match=r"net\.ticks"):
        find_model("shipped/chess#ticks=2").load(GAME)
    assert find_model("shipped/chess#ticks=1").load(GAME).config.ticks == 1


def test_a_campaign_does_not_start_from_other_ticks(weights):
    def fetch(text):
        raise ChessSnnError(text)

    with pytest.raises(UsageError, match="#"):
        find_start(f"{weights}#ticks=1", fetch)


def test_two_numbers_of_ticks_play_each_other(chess_snn, weights, tmp_path):
    done = chess_snn(
        "match", "net.safetensors#ticks=1:0", "net.safetensors#ticks=4:0", "--games", 2,
        "--max-plies", 6, "--json-file", "match.json",
    )
    assert done.returncode == 0, done.stderr
    body = json.loads((tmp_path / "match.json").read_text())
    assert (body["player_a"], body["player_b"]) == (
        "net.safetensors#ticks=1:0", "net.safetensors#ticks=4:0"
    )


def test_weights_are_exported_without_ticks(refused, tmp_path):
    make_networks(tmp_path / "a", generations=(0,))
    assert "#" in refused("models", "export", "a@0#ticks=3", "--out", "copy")


@pytest.mark.parametrize("text", [
    "#", "#ticks=2,", "#ticks=2.5", "#exit=0.5",
    "#search.kind=", "#search.kind=best", "#search.speed=2", "#net.levels=8",
])
def test_what_is_no_way_to_play_is_refused(weights, text):
    with pytest.raises(ChessSnnError):
        find_model(f"{weights}{text}")


def test_settings_of_the_search_stand_there_too(weights):
    changes = "search.kind=puct,search.exploration=2.5,ticks=3"
    model = find_model(f"{weights}#{changes}:16~25", simulations=8)
    assert model.in_play == InPlay(3, search=("search.kind=puct", "search.exploration=2.5"))
    assert (model.search.kind, model.search.exploration) == ("puct", 2.5)
    assert model.name == f"{weights}#{changes}:16~25"
    plain = find_model(f"{weights}:16", simulations=8)
    assert replace(model.search, kind="gumbel", exploration=1.5) == plain.search
    assert model.config_digest == plain.config_digest, "that of the training"
