"""The processes that try how many workers a GPU takes, on the processor here."""

import pytest

from chess_snn.campaign import load_config
from chess_snn.campaign.machine import gpu_sharing_probe
from chess_snn.campaign.machine.gpu_sharing_probe import ProbeError, pace_together
from chess_snn.devices import processor

SETTINGS = ["search.kind=policy", "training.policy_loss=advantage", "self_play.games_per_shard=4"]


def test_two_processes_play_side_by_side():
    assert pace_together(load_config(settings=SETTINGS), processor(), 2, timeout_s=600) > 0


def test_one_that_cannot_begin_is_an_error_that_says_why(monkeypatch):
    values = {"net": {"size": "vast"}}
    monkeypatch.setattr(gpu_sharing_probe, "config_values", lambda config: values)
    with pytest.raises(ProbeError, match="vast"):
        pace_together(load_config(settings=SETTINGS), processor(), 1)


def test_one_that_does_not_get_ready_in_time_is_ended():
    with pytest.raises(ProbeError, match="took too long"):
        pace_together(load_config(settings=SETTINGS), processor(), 1, timeout_s=0.2)
