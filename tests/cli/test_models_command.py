"""Networks of a campaign from the command line: lists, champions, exports."""

import json
from dataclasses import replace

import pytest
import small_campaigns as made
from small_campaigns import make_networks, small_network

from chess_snn.campaign import CampaignFolder, campaign_lock, read_receipts, write_receipt
from chess_snn.campaign.models.references import find_model
from chess_snn.campaign.store.receipt_parts import PromotionFacts
from chess_snn.campaign.strength.champions import champion_of, read_hand_promotions
from chess_snn.games import get_game
from chess_snn.nets import build_network, net_config, network_digest

NUM_FINISHED = 3
QUICK = ("--games", 2, "--simulations", 0, "--max-plies", 4)
RATING = {
    "player": "gen-000003", "num_games": 60, "score": 0.7, "elo": 210.4, "elo_low": 150.0,
    "elo_high": 301.0, "anchor": "random",
}
PLAYED = PromotionFacts(
    candidate=3, champion=2, verdict="undecided", llr=0.4, lower=-3.0, upper=3.0, elo0=0.0,
    elo1=75.0, simulations=0, games=64, wins=20, draws=10, losses=17, truncated=17,
    pairs=[2, 8, 10, 9, 3], score=0.523,
)


@pytest.fixture
def folder(tmp_path) -> CampaignFolder:
    """Three finished iterations, and the network of a fourth; generation 2 is champion."""
    folder = make_networks(tmp_path / "runs" / "a", generations=(0, 1, 2, 3, 4))
    for iteration, champion in zip(range(NUM_FINISHED), (1, 2, 2), strict=True):
        receipt = made.receipt_of(folder, iteration)
        training = replace(
            receipt.training,
            window_shards=["iter-000000/shard-0000", f"iter-{iteration:06d}/shard-0001"],
            metrics=receipt.training.metrics | {"spike_rate": 0.123},
        )
        receipt = replace(receipt, champion=champion, training=training)
        if iteration == NUM_FINISHED - 1:
            receipt = replace(receipt, rating=RATING, promotion=PLAYED)
        write_receipt(folder, receipt)
    return folder


def champion_now(folder: CampaignFolder) -> int | None:
    return champion_of(folder, read_receipts(folder))


def test_a_list_of_all_versions(chess_snn, folder):
    done = chess_snn("models", "list", folder.path, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    versions = json.loads(done.stdout)
    assert [version["generation"] for version in versions] == [1, 2, 3]
    assert [version["is_champion"] for version in versions] == [False, True, False]
    newest = versions[-1]
    assert newest["rating"] == RATING
    assert newest["promotion"]["verdict"] == "undecided"
    assert (newest["size"], newest["ticks"], newest["precision"]) == ("tiny", 2, "fp32")
    assert newest["digest"] == network_digest(small_network(3))
    assert newest["spike_rate"] == 0.123
    assert newest["window_positions"] == 50_000
    assert 50_000 < newest["parameters"] < 200_000

    table = chess_snn("models", "list", folder.path).stdout
    assert "2 champion" in table
    assert "210 (150 to 301)" in table
    assert "0.523" in table


def test_the_parameters_are_those_of_the_network(chess_snn, tmp_path):
    """Parameters of the size that the settings name, counted on a network with weights."""
    folder = made.make_campaign(tmp_path / "c")
    made.finish(folder, 0)
    (version,) = json.loads(chess_snn("models", "list", folder.path, "--json").stdout)
    network = build_network(get_game("chess").spec, net_config("tiny"), seed=0)
    assert version["parameters"] == sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize(("name", "generation"), [("@3", 3), ("@champion", 2), ("", 3), ("@1", 1)])
def test_one_version_in_full(chess_snn, folder, name, generation):
    done = chess_snn("models", "show", f"{folder.path}{name}")
    assert done.returncode == 0, done.stderr
    champion = ", the champion" if generation == 2 else ""
    first, *lines = done.stdout.splitlines()
    assert first == f"a, generation {generation}{champion}"
    rows = {" ".join(line.split()[:2]): line for line in lines}
    assert network_digest(small_network(generation)) in done.stdout
    assert "12.3%" in rows["spike rate"]
    assert f"to iter-{generation - 1:06d}/shard-0001" in done.stdout
    assert ("210 (150 to 301)" in done.stdout) == (generation == 3)
    assert ("0.523" in done.stdout) == (generation == 3)
    body = json.loads(chess_snn("models", "show", f"{folder.path}{name}", "--json").stdout)
    assert (body["generation"], body["registered"]) == (generation, None)


@pytest.mark.parametrize("play", ["#ticks=1", "#search.kind=puct"])
def test_a_way_to_play_a_network_is_not_shown_as_the_network(chess_snn, folder, play):
    done = chess_snn("models", "show", f"{folder.path}@3{play}")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_champion_by_hand_and_back(chess_snn, folder):
    done = chess_snn("models", "promote", f"{folder.path}@1", "--why", "nicer", "--who", "ada")
    assert done.returncode == 0
    assert champion_now(folder) == 1
    (choice,) = read_hand_promotions(folder)
    assert (choice.who, choice.why, choice.action) == ("ada", "nicer", "promote")
    assert find_model(f"{folder.path}@champion").label == f"{folder.path}@1"

    for generation in (2, 1):
        chess_snn("models", "rollback", folder.path, "--why", "not so nice")
        assert champion_now(folder) == generation
    assert read_hand_promotions(folder)[-1].who, "the user's own name"


def test_a_copy_is_played_with_the_search_it_was_exported_with(chess_snn, folder, tmp_path):
    done = chess_snn("models", "export", f"{folder.path}@3#search.q_scale=0.5", "--out", "copy")
    assert done.returncode == 0, done.stderr
    inside, copy = find_model(f"{folder.path}@3"), find_model(f"{tmp_path / 'copy'}")
    assert copy.file_digest == inside.file_digest
    assert copy.search == replace(inside.search, q_scale=0.5) != inside.search
    done = chess_snn("models", "export", "copy#search.q_scale=1", "--out", "second")
    assert (done.returncode, (tmp_path / "second").exists()) == (2, False)


def test_an_exported_network_is_played_without_its_campaign(chess_snn, folder, tmp_path):
    done = chess_snn("models", "export", f"{folder.path}@3", "--out", "strongest")
    assert done.returncode == 0, done.stderr
    inside = find_model(f"{folder.path}@3")
    folder.path.rename(tmp_path / "elsewhere")
    out = tmp_path / "strongest"
    assert {path.name for path in out.iterdir()} == {
        "weights.safetensors", "model.toml", "README.md", "MANIFEST.json"
    }
    outside = find_model(str(out))
    assert (outside.generation, outside.precision, outside.search, outside.config_digest) == (
        3, "fp32", inside.search, inside.config_digest
    )
    game = get_game("chess")
    inside = find_model(f"{tmp_path / 'elsewhere'}@3")
    assert network_digest(outside.load(game)) == network_digest(inside.load(game))
    played = chess_snn("match", "strongest:0", "random", *QUICK)
    assert played.returncode == 0, played.stderr
    card = (out / "README.md").read_text()
    assert "210 (150 to 301)" in card
    shown = chess_snn("models", "show", "strongest")
    assert shown.stdout.startswith("exported from a, generation 3\n")
    assert json.loads(chess_snn("models", "show", "strongest", "--json").stdout)["generation"] == 3


def test_an_exported_network_is_exported_again(chess_snn, folder, tmp_path):
    chess_snn("models", "export", f"{folder.path}@3", "--out", "strongest")
    done = chess_snn("models", "export", "strongest", "--out", "again")
    assert done.returncode == 0, done.stderr
    for name in ("weights.safetensors", "model.toml", "README.md"):
        assert (tmp_path / "again" / name).read_bytes() == (
            tmp_path / "strongest" / name
        ).read_bytes()
    assert chess_snn("models", "export", "strongest", "--out", "again").returncode == 2


def test_a_campaign_whose_newest_network_has_no_receipt_yet_is_not_exported_bug(
    chess_snn, folder, tmp_path
):
    done = chess_snn("models", "export", folder.path, "--out", "newest")
    assert done.returncode == 0, done.stderr
    assert find_model(str(tmp_path / "newest")).generation == NUM_FINISHED


@pytest.mark.parametrize("name", ["weights.safetensors", "model.toml"])
def test_a_damaged_export_is_one_line(chess_snn, refused, folder, tmp_path, name):
    chess_snn("models", "export", f"{folder.path}@3", "--out", "strongest")
    path = tmp_path / "strongest" / name
    path.write_bytes(path.read_bytes()[:-40])
    assert name in refused("match", "strongest:0", "random", *QUICK, may_print=True)


@pytest.mark.parametrize("command", [("promote", "runs/a@1"), ("rollback", "runs/a")])
def test_a_running_campaign_keeps_its_champion(chess_snn, folder, command):
    with campaign_lock(folder):
        done = chess_snn("models", *command, "--why", "impatient")
    assert done.returncode == 2
    assert "[campaign.locked]" in done.stderr
    assert read_hand_promotions(folder) == []


@pytest.mark.parametrize("game", ["chess", "2048"])
def test_what_a_network_costs(chess_snn, tmp_path, game):
    made.make_weights(tmp_path / "net.safetensors", game=game)
    done = chess_snn(
        "models", "cost", "net.safetensors", "--positions", 5, "--simulations", 2, "--games", 1,
        "--json-file", "cost.json", "--stream",
    )
    assert (done.returncode, done.stderr) == (0, "")
    body = json.loads((tmp_path / "cost.json").read_text())
    assert (body["game"], body["positions"], body["games"]) == (game, 5, 1)
    evaluations = body["evaluations"]
    assert 1 < evaluations["move"] <= 3
    assert evaluations["game"] == pytest.approx(evaluations["move"] * body["moves_per_game"])
    for count, number in body["counts"]["position"].items():
        layers = sum(layer.get(count, 0) for layer in body["layers"])
        assert layers == pytest.approx(number)
        assert body["counts"]["game"][count] == pytest.approx(number * evaluations["game"])
    assert list(body["energy"]) == ["convention", "fair", "chip"]
    active = body["counts"]["position"]["active"]
    assert body["stream"]["nothing"]["spikes"] == pytest.approx(active)
    for name, events in body["stream"].items():
        assert 0 < events["share"] <= 1
        assert name in done.stdout
    for model in body["energy"].values():
        assert model["model"][1:] in done.stdout, "with the models' names"
        for each in model["of"].values():
            assert each["position_pj"] == pytest.approx(sum(each["terms_pj"].values()))
            assert each["move_pj"] == pytest.approx(each["position_pj"] * evaluations["move"])
    assert max(map(len, done.stdout.splitlines()[4:])) <= 80
    assert all(f"  {layer['name']} " in done.stdout for layer in body["layers"])
