"""A device that cannot be used is a line; what it computes is compared with the processor."""

import numpy as np
import pytest
import torch

from chess_snn.cli.doctor import devices_to_try
from chess_snn.devices import SIMULATED_GPUS, Device, processor, visible_gpus
from chess_snn.doctor import Level
from chess_snn.doctor.device_trials import TrialError, _check_answers, try_devices
from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.nets import build_network, make_evaluator, net_config

GAME = get_game("chess")


@pytest.mark.skipif(torch.cuda.is_available(), reason="the devices of this test do not exist")
@pytest.mark.slow
def test_each_device_that_fails_is_a_line_of_its_own():
    devices = [Device("cuda", index, str(index), "made up", 1 << 30) for index in (0, 1)]
    findings = sorted(try_devices(devices), key=lambda finding: finding.subject)
    assert [finding.subject for finding in findings] == ["GPU 0 plays", "GPU 1 plays"]
    for finding in findings:
        assert finding.level is Level.BROKEN
        assert "torch sees no GPU" in finding.fact
        assert "\n" not in finding.fact


def test_a_device_that_never_answers_is_given_up():
    (finding,) = try_devices([processor()], timeout_s=0.05)
    assert finding.level is Level.BROKEN
    assert "did not answer within" in finding.fact


def test_devices_are_tried_though_nothing_could_be_compiled_before(monkeypatch):
    monkeypatch.setenv(SIMULATED_GPUS, "2")
    findings = list(try_devices(visible_gpus(), timeout_s=0.05))
    assert {finding.subject for finding in findings} == {"GPU 0 plays", "GPU 1 plays"}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_eight_devices_play_and_train_at_once(monkeypatch):
    monkeypatch.setenv(SIMULATED_GPUS, "8")
    findings = list(try_devices(visible_gpus(), timeout_s=800.0))
    assert {finding.subject for finding in findings} == {f"GPU {k} plays" for k in range(8)}
    assert {finding.level for finding in findings} == {Level.OK}


@pytest.mark.parametrize("wrong", [0.3, np.nan])
def test_a_device_that_computes_wrongly_is_found(wrong):
    network = build_network(GAME.spec, net_config("tiny"), 0)
    with make_evaluator(network) as evaluator:
        _check_answers(GAME, network, evaluator)

        class Wrong:
            def evaluate(self, *asked):
                found = evaluator.evaluate(*asked)
                found.wdl_stm[:] += np.float32(wrong)
                return found

        with pytest.raises(TrialError):
            _check_answers(GAME, network, Wrong())


def test_the_devices_that_are_named(monkeypatch):
    monkeypatch.setenv(SIMULATED_GPUS, "3")
    assert [device.index for device in devices_to_try("auto")] == [0, 1, 2]
    assert [device.index for device in devices_to_try("cuda:1")] == [1]
    assert devices_to_try("cpu") == [processor()]
    for wrong in ("cuda:3", "tpu", "cuda:x"):
        with pytest.raises(ConfigError):
            devices_to_try(wrong)
