"""The list of networks and what a registry's outage leaves of it, without a server."""

import pytest
import small_campaigns as made

from chess_snn.campaign.models.model import Model
from chess_snn.campaign.models.references import find_model
from chess_snn.errors import UsageError
from chess_snn.tasks.tracking import TrackingError
from chess_snn.web.networks import Networks


def test_the_registry_is_asked_again_since_an_alias_moves(tmp_path, monkeypatch):
    found = [
        find_model(str(made.make_weights(tmp_path / f"{seed}.safetensors", seed=seed)))
        for seed in (1, 2)
    ]
    answers = iter(found)
    networks = Networks(lambda _address: next(answers), (), None)
    assert networks.find("models:/chess-snn@champion") == found[0]
    assert networks.find("models:/chess-snn@champion") == found[0]
    monkeypatch.setattr("chess_snn.web.networks.ASK_AGAIN_S", 0.0)
    assert networks.find("models:/chess-snn@champion") == found[1]


@pytest.mark.parametrize("address", ["models:/chess-snn@champion", "models:/chess-snn/12"])
def test_a_network_that_was_fetched_plays_on_while_the_registry_is_away(
    tmp_path, monkeypatch, address
):
    monkeypatch.setattr("chess_snn.web.networks.ASK_AGAIN_S", 0.0)
    found = find_model(str(made.make_weights(tmp_path / "net.safetensors")))
    answers = [found, TrackingError("away"), UsageError("not registered")]
    asked = []

    def ask(text: str) -> Model:
        asked.append(text)
        answer = answers[len(asked) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    networks = Networks(ask, [address], None)
    assert networks.catalogue()[0] == {"model": address, "label": address, "game": "chess"}
    assert networks.find(address) == found
    assert networks.catalogue()[0]["model"] == address
    if "@" in address:
        with pytest.raises(UsageError, match="not registered"):
            networks.find(address)
    else:
        assert networks.find(address) == found
    assert len(asked) == (3 if "@" in address else 1)


def test_the_network_that_was_used_longest_ago_is_dropped_and_a_new_file_read(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("chess_snn.web.networks._MOST_LOADED", 2)
    paths = [made.make_weights(tmp_path / f"{seed}.safetensors", seed=seed) for seed in (1, 2, 3)]
    first, second, third = (find_model(str(path)) for path in paths)
    networks = Networks(find_model, (), None)
    kept, dropped = networks.load(first).network, networks.load(second).network
    networks.load(first)
    newest = networks.load(third).network
    assert networks.load(first).network is kept
    assert networks.load(third).network is newest
    assert networks.load(second).network is not dropped
    kept = networks.load(first).network
    made.make_weights(paths[0], seed=4)
    assert networks.load(first).network is not kept


def test_a_fetched_network_that_was_deleted_is_fetched_again(tmp_path):
    weights = made.make_weights(tmp_path / "net.safetensors")
    found = find_model(str(weights))

    def fetch(_address: str) -> Model:
        made.make_weights(weights)
        return found

    networks = Networks(fetch, (), None)
    for _ in range(2):
        weights.unlink()
        assert networks.find("models:/chess-snn/12") == found
        assert weights.is_file()


def test_without_its_registry_the_rest_of_the_list_is_offered():
    def ask(_address: str) -> Model:
        raise TrackingError("the store is away")

    networks = Networks(ask, ["models:/chess-snn@champion"], None)
    first, *_, last = networks.catalogue()
    assert first["model"] == ""
    assert "the store is away" in first["label"]
    assert last["model"].startswith("shipped/")
