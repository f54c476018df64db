"""Metrics in MLflow of alarms, and of what a campaign has cost so far."""

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

from tasks.record import _alarm_metrics, _progress_metrics  # noqa: E402

COLLAPSED = "alarms/policy_entropy_collapsed"


def test_an_alarm_that_has_just_ended_is_recorded_once_as_0():
    history = [{"self_play/entropy_ratio": ratio} for ratio in (0.97, 0.01, 0.01, 0.01, 0.5, 0.5)]
    assert _alarm_metrics(history[:3]) == {"alarms/active": 0.0}
    assert _alarm_metrics(history[:4]) == {"alarms/active": 1.0, COLLAPSED: 1.0}
    assert _alarm_metrics(history[:5]) == {"alarms/active": 0.0, COLLAPSED: 0.0}
    assert _alarm_metrics(history) == {"alarms/active": 0.0}


def test_every_rank_spends_the_seconds_of_training():
    iteration = {
        "self_play/games": 100.0, "self_play/positions": 6000.0,
        "self_play/device_seconds": 50.0, "seconds/training": 10.0,
    }
    history = [
        iteration | {"campaign/elapsed_s": 70.0},
        iteration | {"campaign/elapsed_s": 130.0, "train/ranks": 8.0},
    ]
    assert _progress_metrics(history) == {
        "progress/games": 200.0, "progress/positions": 12_000.0, "progress/wall_seconds": 130.0,
        "progress/device_seconds": 50.0 + 10.0 + 50.0 + 8 * 10.0,
    }
