"""Each check says what it finds, on machines that tests make up out of files and ports."""

import http.server
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from packaging.requirements import Requirement

from chess_snn.cli.doctor import devices_to_try
from chess_snn.devices import SIMULATED_GPUS, Device, processor, visible_gpus
from chess_snn.doctor.device_trials import TrialError, _check_answers, try_devices
from chess_snn.doctor.findings import Level
from chess_snn.doctor.machine import (
    available_bytes,
    check_cache,
    check_disk,
    check_gpus,
    check_machine,
    check_storage,
    cpu_quota,
    judge_gpu,
)
from chess_snn.doctor.software import (
    Addresses,
    check_clock,
    check_network,
    check_ports,
    check_python,
    check_software,
    check_stockfish,
    package_fault,
)
from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.nets import build_network, make_evaluator, net_config

GIB = 2**30
NOW = time.mktime((2026, 12, 1, 0, 0, 0, 0, 0, 0))


def levels(findings):
    return [finding.level for finding in findings]


def test_whatever_is_broken_comes_with_a_remedy(tmp_path):
    findings = [
        *check_software(), *check_machine(), *check_storage(tmp_path),
        *check_network(Addresses("http://127.0.0.1:9/api", None, "PREFECT_API_URL"), (4200,)),
    ]
    assert len({finding.subject for finding in findings}) >= 8
    for finding in findings:
        assert finding.fact
        assert finding.remedy or finding.level is not Level.BROKEN


@pytest.mark.parametrize(("version", "level"), [
    ((3, 10, 9), Level.BROKEN), ((3, 11, 0), Level.OK), ((3, 13, 1), Level.OK),
])
def test_python(version, level):
    assert check_python(version).level is level


@pytest.mark.parametrize(("text", "fault"), [
    ("torch>=2.0", None),
    ("torch>=99", "where >=99 is needed"),
    ("no-such-package-at-all>=1", "is not installed"),
    ('no-such-package-at-all>=1; extra == "dev"', None),
    ('no-such-package-at-all>=1; extra == "orchestration"', "is not installed"),
    ('no-such-package-at-all; sys_platform == "win32"', None),
])
def test_packages(text, fault):
    found = package_fault(Requirement(text))
    assert (found is None) == (fault is None)
    if fault is not None:
        assert fault in found.fact
        assert found.level is Level.BROKEN


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


def test_memory_is_the_machines_or_the_containers_whichever_is_less(tmp_path, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=8 * GIB))
    assert available_bytes(tmp_path / "none") == 8 * GIB
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("5\n")
    assert available_bytes(tmp_path) == 8 * GIB
    (tmp_path / "memory.max").write_text(f"{4 * GIB}\n")
    (tmp_path / "memory.current").write_text(f"{GIB}\n")
    assert available_bytes(tmp_path) == 3 * GIB
    (tmp_path / "memory.current").write_text(f"{4 * GIB}\n")  # most of it of files read before
    (tmp_path / "memory.stat").write_text(f"anon {GIB}\ninactive_file {2 * GIB}\nactive_file 0\n")
    assert available_bytes(tmp_path) == 2 * GIB


@pytest.mark.parametrize(("text", "cores"), [("max 100000", None), ("150000 100000", 1.5)])
def test_cores_of_a_container(tmp_path, text, cores):
    (tmp_path / "cpu.max").write_text(text)
    assert cpu_quota(tmp_path) == cores
    assert cpu_quota(tmp_path / "none") is None


@pytest.mark.skipif(torch.version.cuda is not None, reason="this torch is for GPUs")
@pytest.mark.parametrize(("has_driver", "level"), [(False, Level.NOTE), (True, Level.BROKEN)])
def test_a_torch_without_cuda_is_a_fault_only_where_there_is_a_gpu(
    tmp_path, monkeypatch, has_driver, level
):
    monkeypatch.setattr("chess_snn.doctor.machine.PROC", tmp_path)
    if has_driver:
        (tmp_path / "driver/nvidia").mkdir(parents=True)
        (tmp_path / "driver/nvidia/version").touch()
    assert levels(check_gpus()) == [level]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_every_gpu_computes():
    findings = list(check_gpus())
    assert len(findings) == torch.cuda.device_count()
    assert set(levels(findings)) == {Level.OK}


@pytest.mark.parametrize(("model", "free_share", "level", "remedy"), [
    ("NVIDIA H200", 0.98, Level.OK, ""),
    ("NVIDIA H200", 0.4, Level.NOTE, "nvidia-smi"),
    ("NVIDIA H200 MIG 1g.18gb", 0.98, Level.NOTE, "CUDA_VISIBLE_DEVICES"),
])
def test_a_gpu_that_others_use_too(model, free_share, level, remedy):
    finding = judge_gpu("GPU 0", model, f"{model}, compute capability 9.0", free_share)
    assert finding.level is level
    assert remedy in finding.remedy


def test_a_disk_that_does_not_exist_yet_is_looked_at_through_its_parent(tmp_path):
    finding = check_disk("disk", tmp_path / "not" / "yet")
    assert str(tmp_path / "not" / "yet") in finding.fact
    assert not (tmp_path / "not").exists()


@pytest.mark.parametrize(("free_gib", "level"), [
    (1, Level.BROKEN), (10, Level.NOTE), (100, Level.OK),
])
def test_room_on_the_disk(tmp_path, monkeypatch, free_gib, level):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free_gib * GIB))
    monkeypatch.setattr("chess_snn.doctor.machine.sync_seconds", lambda _: 0.001)
    assert check_disk("disk", tmp_path).level is level


def test_a_slow_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("chess_snn.doctor.machine.sync_seconds", lambda _: 2.0)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=100 * GIB))
    finding = check_disk("disk", tmp_path)
    assert finding.level is Level.NOTE
    assert "2000 ms" in finding.fact


@pytest.mark.skipif(not Path("/proc/1").is_dir(), reason="needs /proc")
def test_a_folder_that_nobody_can_write(tmp_path):
    assert check_disk("disk", Path("/proc/chess-snn")).level is Level.BROKEN
    assert check_cache(tmp_path, tmp_path).level is Level.OK


def test_damaged_files_of_kernels_are_counted(tmp_path):
    (tmp_path / "chess").mkdir()
    damaged = tmp_path / "chess" / "step.py311.1.nbc"
    damaged.touch()
    finding = check_cache(tmp_path, tmp_path)
    assert finding.level is Level.NOTE
    assert str(damaged) in finding.fact


class Server:
    """Answers with one status, and one time of day."""

    def __init__(self, status: int, clock_ahead_s: float = 0.0) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status)
                self.end_headers()

            def date_time_string(self, timestamp=None):
                return super().date_time_string(time.time() + clock_ahead_s)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def test_servers_that_answer_and_agree_on_the_time():
    with Server(200) as server:
        addresses = Addresses(server.url, server.url + "/", "chess-snn up")
        findings = check_network(addresses, ())
    assert [finding.subject for finding in findings] == ["Prefect server", "MLflow server", "clock"]
    assert set(levels(findings)) == {Level.OK}


def test_a_clock_that_is_off_a_servers():
    with Server(200, clock_ahead_s=120) as server:
        clock = check_network(Addresses(server.url, None, "PREFECT_API_URL"), ())[-1]
    assert clock.level is Level.BROKEN
    assert "off a server's" in clock.fact


def test_a_server_that_is_away_or_refuses():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can have it
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        away = check_network(Addresses(url, None, "PREFECT_API_URL"), ())[0]
    assert away.level is Level.BROKEN
    assert url in away.fact
    assert "PREFECT_API_URL" in away.remedy
    with Server(500) as server:
        refused = check_network(Addresses(None, server.url, "chess-snn up"), ())[0]
    assert refused.level is Level.BROKEN
    assert "500" in refused.fact


def test_a_database_is_no_server():
    finding = check_network(Addresses(None, "sqlite:////tmp/a.db", "MLFLOW_TRACKING_URI"), ())[0]
    assert finding.level is Level.OK


def test_ports_count_only_where_no_server_is_meant_to_be_up():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        findings = check_network(Addresses(None, None, ""), (port,))
        assert [finding.level for finding in findings[:2]] == [Level.OK, Level.NOTE]
        assert f"port {port}" == findings[1].subject
    assert levels(check_ports((port,))) == [Level.OK]


@pytest.mark.parametrize(("now", "servers", "level"), [
    (0.0, [], Level.BROKEN), (NOW, [], Level.OK), (NOW, [NOW + 2], Level.OK),
    (NOW, [NOW, NOW - 60], Level.BROKEN),
])
def test_clock(now, servers, level):
    assert check_clock(now, servers).level is level


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
