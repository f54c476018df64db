"""The whole way: a registered network is fetched, and a campaign starts from it and is recorded."""

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow]
pytest.importorskip("mlflow")
pytest.importorskip("prefect")

from mlflow_stores import made_version  # noqa: E402
from small_campaigns import SMALL  # noqa: E402
from test_campaign_flow import chess_snn  # noqa: E402

from chess_snn.campaign import CampaignFolder, load_config, read_receipts  # noqa: E402
from chess_snn.campaign.configuration.loading import config_values  # noqa: E402
from chess_snn.data import read_manifest  # noqa: E402
from chess_snn.games import get_game  # noqa: E402
from chess_snn.nets import build_network, net_config, network_digest, save_network  # noqa: E402
from chess_snn.tasks.tracking import tracking_uri  # noqa: E402
from chess_snn.tasks.tracking.recorder import CampaignTracker  # noqa: E402

SETTINGS = (*SMALL, "campaign.iterations=1", "execution.workers=1")


def test_a_campaign_starts_from_the_registered_champion(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("CHESS_SNN_HOME", str(tmp_path / "home"))
    network = build_network(get_game("chess").spec, net_config("1x8", ticks=3), seed=3)
    save_network(tmp_path / "weights.safetensors", network)
    config = load_config(settings=["net.size=1x8", "net.ticks=3"])
    parent = CampaignFolder.create(tmp_path / "parent", config)
    tracker = CampaignTracker(tracking_uri(), parent, configuration=config_values(config))
    weights = tmp_path / "weights.safetensors"
    version = made_version(1, weights, campaign_id=parent.campaign_id)
    tracker.record_iteration(0, {"train/loss": 1.0}, version, weights)
    tracker.promote(1)
    monkeypatch.chdir(tmp_path)
    done = chess_snn(
        "campaign", "start", "--from", "models:/chess-snn@champion", "--dir", "new",
        *(f"--set={setting}" for setting in SETTINGS),
    )
    assert done.returncode == 0, done.stderr
    folder = CampaignFolder.open(tmp_path / "new")
    digest = network_digest(network)
    assert folder.origin is not None
    assert (folder.origin.weights_digest, folder.origin.campaign_id) == (
        digest, parent.campaign_id
    )
    assert folder.config.net.ticks == 3
    assert read_manifest(folder.checkpoint(0)).meta["weights_digest"] == digest
    (receipt,) = read_receipts(folder)
    assert receipt.is_warm
