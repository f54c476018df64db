"""A campaign of 2048 as a user runs it: receipts, results, MLflow's metrics, the served model."""


import numpy as np
import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(600)]
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

import pandas as pd  # noqa: E402
from mlflow import pyfunc  # noqa: E402
from mlflow.tracking import MlflowClient  # noqa: E402
from test_campaign_flow import chess_snn  # noqa: E402

from chess_snn.campaign import CampaignFolder, read_receipts  # noqa: E402
from chess_snn.campaign.integrity.verify import verify_campaign  # noqa: E402
from chess_snn.games import get_game  # noqa: E402
from chess_snn.tasks.tracking import local_tracking_uri, model_name  # noqa: E402

SETTINGS = (
    "campaign.iterations=2", "execution.workers=2", "self_play.games_per_iteration=16",
    "self_play.games_per_shard=4", "self_play.max_plies_first=40", "self_play.max_plies_last=40",
    "training.batch_size=32", 'evaluation.opponents=["random", "expectimax:1"]',
    "evaluation.num_openings=3", "evaluation.max_plies=40", "evaluation.final_openings=2",
    "evaluation.final_simulations=4", "promotion.max_openings=4", "promotion.openings_each=2",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    directory = tmp_path_factory.mktemp("flow") / "small"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHESS_SNN_HOME", str(home))
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        done = chess_snn(
            "campaign", "start", "--preset", "smoke-2048", "--dir", str(directory),
            *(f"--set={setting}" for setting in SETTINGS),
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return CampaignFolder.open(directory), done.stdout, local_tracking_uri(home / "services")


def test_every_stage_is_done_and_everything_is_whole(finished):
    folder, output, _ = finished
    receipts = read_receipts(folder)
    assert [len(receipt.matches) for receipt in receipts] == [3, 3]
    assert receipts[1].promotion is not None
    assert receipts[1].promotion.points_ahead is not None
    assert verify_campaign(folder).found == []
    assert "--preset cpu-2048" in output


def test_mlflow_has_points_and_a_model_of_its_own(finished):
    _, _, uri = finished
    client = MlflowClient(uri)
    name = model_name("2048")
    versions = client.search_model_versions(f"name = '{name}'")
    assert {version.tags["generation"] for version in versions} >= {"1", "2"}
    metrics = client.get_run(versions[0].run_id).data.metrics
    assert {
        "1_strength/points", "1_strength/points_best", "1_strength/reached_2048",
        "1_strength/promotion_points_ahead", "3_self_play/self_play_points",
    } <= metrics.keys()
    assert "3_self_play/draw_rate" not in metrics


def test_the_served_model_answers_boards(finished, monkeypatch):
    _, _, uri = finished
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    champion = MlflowClient(uri).get_model_version_by_alias(model_name("2048"), "champion")
    game = get_game("2048")
    board = game.format_state(game.initial_states(np.zeros(1, np.uint64))[0])
    served = pyfunc.load_model(champion.source)
    good, bad = served.predict(pd.DataFrame({"fen": [board, "nonsense"]}))
    assert good["best_move"] in {"left", "up", "right", "down"}
    assert sum(good["policy"].values()) == pytest.approx(1.0)
    assert good["wdl_stm"] is None
    assert bad["best_move"] is None
    assert bad["error"]
