"""A campaign's networks in a real MLflow on SQLite: what versions carry, who has the alias."""

import json
import shutil
import sys
from dataclasses import replace

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("mlflow")
pytest.importorskip("prefect")

import small_campaigns as made  # noqa: E402
from mlflow.tracking import MlflowClient  # noqa: E402
from mlflow_stores import prepare_store  # noqa: E402
from prefect import flow  # noqa: E402
from prefect.client.orchestration import get_client  # noqa: E402
from prefect.states import Running  # noqa: E402

from chess_snn.campaign import CampaignFolder, read_receipts, write_receipt  # noqa: E402
from chess_snn.campaign.models.versions import version_of  # noqa: E402
from chess_snn.campaign.store.match_facts import LadderTestFacts, RatingFacts  # noqa: E402
from chess_snn.campaign.store.receipt_parts import PromotionFacts  # noqa: E402
from chess_snn.cli import main  # noqa: E402
from chess_snn.flows.campaign import launch_campaign  # noqa: E402
from chess_snn.flows.context import campaign_tag  # noqa: E402
from chess_snn.flows.servers import prefect_server  # noqa: E402
from chess_snn.games import get_game  # noqa: E402
from chess_snn.nets import build_network, net_config, network_digest, save_network  # noqa: E402
from chess_snn.tasks.record import record_missing  # noqa: E402
from chess_snn.tasks.tracking import (  # noqa: E402
    EXPERIMENT,
    MODEL_NAME,
    tracking_uri,
)
from chess_snn.tasks.tracking.campaign_run import registered_version  # noqa: E402
from chess_snn.tasks.tracking.recorder import CampaignTracker  # noqa: E402
from chess_snn.tasks.tracking.registry import model_id_of  # noqa: E402

NUM_FINISHED = 2
SHARDS = ["iter-000000/shard-0000", "iter-000001/shard-0001"]
RATING = RatingFacts(
    player="gen-000002", num_games=60, score=0.7, elo=210.4, elo_low=150.0, elo_high=None,
)
LADDER_TEST = LadderTestFacts(
    player="gen-000002@16", simulations=16, scale="ladder 1", num_games=60, score=0.5,
    elo=812.2, elo_low=730.0, elo_high=905.4, rungs=[], bracket=["random"], start="random",
    ended_by="games", notice=None,
)
PLAYED = PromotionFacts(
    candidate=2, champion=1, verdict="accept", llr=3.07, lower=-3.0, upper=3.0, elo0=0.0,
    elo1=75.0, simulations=0, games=34, wins=30, draws=0, losses=4, truncated=0,
    pairs=[0, 1, 2, 1, 13], score=0.882,
)


@pytest.fixture
def folder(tmp_path, empty_store, monkeypatch) -> CampaignFolder:
    """Two finished iterations, of which a store knows nothing yet."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(tmp_path)
    folder = made.make_campaign(tmp_path / "campaign", "evaluation.every=1")
    for iteration in range(NUM_FINISHED):
        made.finish(folder, iteration)
        receipt = made.receipt_of(folder, iteration)
        network = build_network(get_game("chess").spec, net_config("tiny"), seed=iteration)
        save_network(folder.checkpoint(iteration + 1) / "weights.safetensors", network)
        training = replace(
            receipt.training, window_shards=SHARDS[: iteration + 1],
            weights_digest=network_digest(network),
            metrics=receipt.training.metrics | {"spike_rate": 0.1234},
        )
        receipt = replace(receipt, training=training)
        if iteration == 1:
            receipt = replace(receipt, rating=RATING, promotion=PLAYED)
        write_receipt(folder, receipt)
    folder.services.mkdir()
    shutil.copy(empty_store / "mlflow.db", folder.services / "mlflow.db")
    monkeypatch.setenv("CHESS_SNN_HOME", str(folder.path))
    return folder


def client(folder: CampaignFolder) -> MlflowClient:
    uri = tracking_uri()
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def record(folder: CampaignFolder) -> None:
    tracker = CampaignTracker(prepare_store(), folder)
    record_missing(folder, tracker)
    tracker.close("FINISHED")


def champion(folder: CampaignFolder) -> dict[str, str]:
    """Tags of the campaign's champion."""
    alias = f"champion-{folder.campaign_id[:8]}"
    tags: dict[str, str] = client(folder).get_model_version_by_alias(MODEL_NAME, alias).tags
    return tags


def chess_snn(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["chess-snn", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0


def test_a_version_carries_what_is_known_of_its_network_and_of_its_games(folder):
    record(folder)
    (version,) = client(folder).search_model_versions("tags.generation = '2'")
    assert version.tags == {
        "elo_own_games_low": "150.0", "search_budget": "0",
        "promotion": "accepted", "generation": "2", "campaign": "campaign",
        "campaign_id": folder.campaign_id,
    }
    model = client(folder).get_logged_model(model_id_of(version))
    told = {name: model.params[name] for name in (
        "net.size", "net.ticks", "net.precision", "net.activation", "window_positions",
        "window_shards", "weights_digest",
    )}
    assert told == {
        "net.size": "tiny", "net.ticks": "2", "net.precision": "bf16", "net.activation": "lif",
        "window_positions": "50000", "window_shards": "2",
        "weights_digest": version_of(folder, 2).digest,
    }
    assert int(model.params["net.parameters"]) > 50_000
    assert "0.882" in model.params["promotion"]
    metrics = {metric.key: metric.value for metric in model.metrics}
    assert metrics["4_spikes/spike_rate"] == 0.1234
    assert metrics["1_strength/promotion_games"] > 0
    assert version.description.startswith("# campaign, generation 2")

    # The games that it was trained on are a data set of the run, and only once.
    record(CampaignFolder.open(folder.path))
    experiment = client(folder).get_experiment_by_name(EXPERIMENT)
    (run,) = client(folder).search_runs([experiment.experiment_id])
    inputs = {entry.dataset.name: entry for entry in run.inputs.dataset_inputs}
    assert len(run.inputs.dataset_inputs) == len(inputs) == NUM_FINISHED
    entry = inputs[model.params["dataset"]]
    assert entry.dataset.digest == model.params["dataset_digest"]
    assert json.loads(entry.dataset.source) == {"uri": str(folder.path / "games")}
    assert json.loads(entry.dataset.profile)["shards"] == SHARDS
    assert {(tag.key, tag.value) for tag in entry.tags} == {("mlflow.data.context", "training")}


def test_the_elo_of_versions_and_of_the_champion_is_the_ladders_where_it_climbs(folder):
    weaker = replace(LADDER_TEST, elo=90.0, elo_low=10.0, elo_high=180.0)
    for receipt, ladder_test in zip(read_receipts(folder), (weaker, LADDER_TEST), strict=True):
        write_receipt(folder, replace(receipt, ladder_test=ladder_test))
    record(folder)
    (version,) = client(folder).search_model_versions("tags.generation = '2'")
    numbers = {name: tag for name, tag in version.tags.items() if name.startswith("elo")}
    assert numbers == {"elo": "812.2", "elo_low": "730.0", "elo_high": "905.4"}
    experiment = client(folder).get_experiment_by_name(EXPERIMENT).experiment_id
    (run,) = client(folder).search_runs([experiment])
    found = {
        name.removeprefix("1_strength/champion_"): value
        for name, value in run.data.metrics.items() if name.startswith("1_strength/champion_")
    }
    assert found == {
        "elo": 812.2, "elo_low": 730.0, "elo_high": 905.4, "games": 60.0, "search_budget": 16.0,
    }

    # Stored models are filtered and sorted by it, as by a number.
    elo = "metrics.`1_strength/ladder_elo`"
    found = client(folder).search_logged_models(
        [experiment], order_by=[{"field_name": elo, "ascending": False}]
    )
    assert [model.name for model in found] == ["gen-000002", "gen-000001"]
    strong = client(folder).search_logged_models(
        [experiment], f"{elo} > 100 AND metrics.`1_strength/ladder_simulations` = 16"
    )
    assert [model.name for model in strong] == ["gen-000002"]


def test_the_alias_follows_the_gate_and_whoever_overrules_it(folder, monkeypatch, capfd):
    write_receipt(folder, replace(read_receipts(folder)[1], ladder_test=LADDER_TEST))
    record(folder)
    assert champion(folder)["generation"] == "2"
    own = f"champion-{folder.campaign_id[:8]}"
    assert registered_version(tracking_uri(), folder, 2) == {
        "number": 2, "aliases": ["candidate", "champion", own],
    }

    done = chess_snn(monkeypatch, "models", "promote", f"{folder.path}@1", "--why", "a hunch",
                     "--who", "ada")
    told = capfd.readouterr()
    assert done == 0, told.err
    assert "models:/chess-snn@champion is version 1" in told.out
    tags = champion(folder)
    assert (tags["generation"], tags["chosen_by"], tags["chosen_why"]) == ("1", "ada", "a hunch")
    record(folder)
    assert champion(folder)["generation"] == "1", "recording again does not undo it"

    assert chess_snn(monkeypatch, "models", "rollback", str(folder.path), "--why", "a mistake") == 0
    assert champion(folder)["generation"] == "2"
    capfd.readouterr()
    assert chess_snn(monkeypatch, "models", "show", f"{folder.path}@champion") == 0
    assert f"version 2 (candidate, champion, {own})" in capfd.readouterr().out


def test_a_choice_that_mlflow_could_not_be_told_is_told_later(folder, monkeypatch, capfd):
    """Its store is there, and has not been told of any network."""
    done = chess_snn(monkeypatch, "models", "promote", f"{folder.path}@1", "--why", "a hunch")
    told = capfd.readouterr()
    assert done == 0
    assert str(folder.path) in told.err
    record(folder)
    assert champion(folder)["generation"] == "1"


def test_without_a_store_nothing_is_told_and_none_is_made(folder, monkeypatch, capfd):
    (folder.services / "mlflow.db").unlink()
    assert chess_snn(monkeypatch, "models", "show", f"{folder.path}@1") == 0
    assert chess_snn(monkeypatch, "models", "promote", f"{folder.path}@1", "--why", "a hunch") == 0
    assert "MLflow" not in capfd.readouterr().out
    assert list(folder.services.iterdir()) == []


@flow(name="killed")
def killed_after_its_last_commit():
    pytest.fail("it is only told of")


@pytest.mark.slow
def test_a_run_left_open_by_a_finished_campaign_is_closed_when_it_is_resumed_bug(
    folder, monkeypatch
):
    monkeypatch.setattr("chess_snn.flows.campaign.is_finished", lambda folder: True)
    with prefect_server(folder.services), get_client(sync_client=True) as client:
        left_open = client.create_flow_run(
            killed_after_its_last_commit, state=Running(), tags=[campaign_tag(folder.campaign_id)]
        )
    launch_campaign(folder, lambda event: None)
    with prefect_server(folder.services), get_client(sync_client=True) as client:
        assert client.read_flow_run(left_open.id).state_name == "Crashed"
