"""Metrics in MLflow of what a campaign has cost so far."""

from dataclasses import replace

import pytest
from small_campaigns import begin, make_campaign, receipt_of

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

from chess_snn.tasks.record import _campaign_metrics  # noqa: E402


def test_every_rank_spends_the_seconds_of_training(tmp_path):
    folder = make_campaign(tmp_path / "c")
    begin(folder, 0)
    first, second = receipt_of(folder, 0), receipt_of(folder, 1)
    ranked = replace(second.training, metrics=second.training.metrics | {"ranks": 8.0})
    found = _campaign_metrics(folder, [first, replace(second, training=ranked)])
    played_s = 2 * 40.0 + 2 * 40.0
    trained_s = first.seconds.training + 8 * second.seconds.training
    assert found["6_devices/device_seconds"] == played_s + trained_s
    assert found["3_self_play/all_games"] == 400.0
    assert found["5_speed/elapsed_s"] == second.elapsed_s
