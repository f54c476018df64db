"""A campaign that learns from a dataset first, as Prefect and MLflow show it."""

import json

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(300)]
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

from made_imports import make_import  # noqa: E402
from mlflow.tracking import MlflowClient  # noqa: E402
from prefect.client.orchestration import get_client  # noqa: E402
from prefect.client.schemas.filters import LogFilter, LogFilterTaskRunId  # noqa: E402
from small_campaigns import SMALL  # noqa: E402
from test_campaign_flow import chess_snn  # noqa: E402

from chess_snn.campaign import CampaignFolder, read_receipts  # noqa: E402
from chess_snn.campaign.stages.first_generation import supervised_facts  # noqa: E402
from chess_snn.flows.servers import prefect_server  # noqa: E402
from chess_snn.tasks.tracking import EXPERIMENT, tracking_uri  # noqa: E402

SETTINGS = (*SMALL, "campaign.hours=0.001", "training.batch_size=64", "execution.workers=1")


def test_it_learns_then_plays(tmp_path, monkeypatch):
    monkeypatch.setenv("CHESS_SNN_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    games = make_import(tmp_path / "games", num_shards=3)
    done = chess_snn(
        "campaign", "start", "--dir", str(tmp_path / "warm"), "--warm-start", str(games),
        *(f"--set={setting}" for setting in SETTINGS),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "36 games of some.pgn" in done.stdout
    folder = CampaignFolder.open(tmp_path / "warm")
    # Learning took longer than the hours, and is no part of them.
    assert read_receipts(folder)[0].is_warm
    facts = supervised_facts(folder)

    with prefect_server(folder.services), get_client(sync_client=True) as client:
        tasks = {run.name: run for run in client.read_task_runs()}
        of_task = LogFilter(task_run_id=LogFilterTaskRunId(any_=[tasks["train_supervised"].id]))
        lines = [log.message for log in client.read_logs(of_task)]
    assert tasks["train_supervised"].state_name == "Completed"
    steps = facts["points"][-1]["step"]
    assert [line for line in lines if f"generation 0 after {steps:,.0f} steps, 1 rank, " in line]
    assert tasks["train_supervised"].end_time <= tasks["self_play-0-0"].start_time

    uri = tracking_uri()
    mlflow = MlflowClient(tracking_uri=uri, registry_uri=uri)
    (run,) = mlflow.search_runs([mlflow.get_experiment_by_name(EXPERIMENT).experiment_id])
    losses = mlflow.get_metric_history(run.info.run_id, "2_learning/pretraining_policy_loss")
    assert [(metric.step, metric.value) for metric in losses] == [
        (point["step"], pytest.approx(point["policy_loss"]))
        for point in facts["points"] if "policy_loss" in point
    ]
    inputs = {entry.tags[0].value: entry for entry in run.inputs.dataset_inputs}
    assert inputs.keys() == {"supervised", "training"}
    given = inputs["supervised"]
    assert given.dataset.digest == folder.config.supervised.digest
    assert json.loads(given.dataset.source) == {"uri": str(games)}
