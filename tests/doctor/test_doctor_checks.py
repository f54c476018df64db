"""Each check says what it finds, on machines that tests make up out of files and ports."""

import socket
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from chess_snn.cli.doctor import devices_to_try
from chess_snn.devices import SIMULATED_GPUS, Device, processor, visible_gpus
from chess_snn.doctor import Level, checks
from chess_snn.doctor.checks import (
    check_all,
    check_cache,
    check_disk,
    check_gpus,
    check_ports,
    check_stockfish,
    check_versions,
)
from chess_snn.doctor.device_trials import TrialError, _check_answers, try_devices
from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.nets import build_network, make_evaluator, net_config

GIB = 2**30


def levels(findings):
    return [finding.level for finding in findings]


def test_whatever_is_broken_comes_with_a_remedy(tmp_path):
    findings = list(check_all(tmp_path, (4200,)))
    assert len({finding.subject for finding in findings}) >= 7
    for finding in findings:
        assert finding.fact
        assert finding.remedy or finding.level is not Level.BROKEN


def test_without_the_extra_the_way_to_campaigns_is_named(monkeypatch):
    monkeypatch.setattr(checks, "_ORCHESTRATION", ("no-such-package-at-all",))
    *others, last = check_versions()
    assert levels(others) == [Level.OK, Level.OK]
    assert "no-such-package-at-all" in last.fact
    assert "orchestration" in last.remedy


@pytest.mark.parametrize(("script", "level"), [
    ("while read w; do case $w in uci) echo uciok;; isready) echo readyok;; esac; done", Level.OK),
    ("echo hello", Level.BROKEN),
    (None, Level.NOTE),
])
def test_stockfish(tmp_path, monkeypatch, script, level):
    monkeypatch.setattr("chess_snn.evaluation.engines.player.GAMES_FOLDER", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin" if script else str(tmp_path))
    if script is not None:
        (tmp_path / "stockfish").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "stockfish").chmod(0o755)
    assert check_stockfish().level is level


@pytest.mark.skipif(torch.version.cuda is not None, reason="this torch is for GPUs")
@pytest.mark.parametrize(("has_driver", "level"), [(False, Level.NOTE), (True, Level.BROKEN)])
def test_a_torch_without_cuda_is_a_fault_only_where_there_is_a_gpu(
    tmp_path, monkeypatch, has_driver, level
):
    monkeypatch.setattr(checks, "DRIVER", tmp_path / "version")
    if has_driver:
        (tmp_path / "version").touch()
    assert levels(check_gpus()) == [level]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_every_gpu_computes():
    findings = list(check_gpus())
    assert len(findings) == torch.cuda.device_count()
    assert set(levels(findings)) == {Level.OK}


def test_a_disk_that_does_not_exist_yet_is_looked_at_through_its_parent(tmp_path):
    finding = check_disk(tmp_path / "not" / "yet")
    assert str(tmp_path / "not" / "yet") in finding.fact
    assert not (tmp_path / "not").exists()


@pytest.mark.parametrize(("free_gib", "level"), [(1, Level.BROKEN), (10, Level.OK)])
def test_room_on_the_disk(tmp_path, monkeypatch, free_gib, level):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free_gib * GIB))
    assert check_disk(tmp_path).level is level


@pytest.mark.skipif(not Path("/proc/1").is_dir(), reason="needs /proc")
def test_a_folder_that_nobody_can_write(tmp_path):
    assert check_disk(Path("/proc/chess-snn")).level is Level.BROKEN
    assert check_cache(tmp_path, tmp_path).level is Level.OK


def test_damaged_files_of_kernels_are_counted(tmp_path):
    (tmp_path / "chess").mkdir()
    damaged = tmp_path / "chess" / "step.py311.1.nbc"
    damaged.touch()
    finding = check_cache(tmp_path, tmp_path)
    assert finding.level is Level.NOTE
    assert str(damaged) in finding.fact


def test_a_port_that_another_program_has():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        (finding,) = check_ports((port,))
        assert (finding.subject, finding.level) == (f"port {port}", Level.NOTE)
    assert levels(check_ports((port,))) == [Level.OK]


# A device that cannot be used is a line; what it computes is compared with the processor.


GAME = get_game("chess")


@pytest.mark.skipif(torch.cuda.is_available(), reason="the devices of this test do not exist")
@pytest.mark.slow
def test_each_device_that_fails_is_a_line_of_its_own():
    devices = [Device("cuda", index, str(index), "made up", 1 << 30) for index in (0, 1)]
    findings = sorted(try_devices(devices), key=lambda finding: finding.subject)
    assert [finding.subject for finding in findings] == ["GPU 0 plays", "GPU 1 plays"]
    for finding in findings:
        assert finding.level is Level.BROKEN
        assert "\n" not in finding.fact


def test_a_device_that_never_answers_is_given_up():
    (finding,) = try_devices([processor()], timeout_s=0.05)
    assert finding.level is Level.BROKEN


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
