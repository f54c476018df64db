"""Bytes on the disk against a plain walk; cores and memory against a process that is busy."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from chess_snn.campaign import load_config
from chess_snn.campaign.machine import cost
from chess_snn.campaign.machine.cost import Pace, measure_pace, predict, predict_campaign
from chess_snn.campaign.viewing import live
from chess_snn.campaign.viewing.live import DiskMeter, ProcessMeter
from chess_snn.errors import ConfigError

BUSY_PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "print(1, flush=True)\\nwhile True: pass"])
child.wait()
"""


def walked(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def test_disk_use_follows_a_walk(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "_COUNT_PERIOD_S", 0.0)
    monkeypatch.setattr(live, "_COUNT_SHARE", float("inf"))
    meter = DiskMeter(tmp_path)
    assert meter.look().used_bytes == 0
    (tmp_path / "campaign.toml").write_bytes(b"x" * 10)
    for name in ("games/iter-000000/shard-0000/states", "services/deep/down", "checkpoints/a"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_bytes(b"x" * 100)
    assert meter.look().used_bytes == walked(tmp_path) == 310
    (tmp_path / "services/deep/down/file").write_bytes(b"x" * 5000)  # databases grow in place
    (tmp_path / "games/iter-000000/shard-0001").mkdir()
    (tmp_path / "games/iter-000000/shard-0001/file").write_bytes(b"x" * 7)
    assert meter.look().used_bytes == walked(tmp_path) == 5217
    (tmp_path / "games/iter-000000/shard-0001/file").unlink()
    (tmp_path / "games/iter-000000/shard-0001").rmdir()
    use = meter.look()
    assert use.used_bytes == walked(tmp_path)
    assert use.free_bytes > 0


def test_disk_use_is_not_counted_at_every_look(tmp_path):
    meter = DiskMeter(tmp_path)
    meter.look()
    (tmp_path / "file").write_bytes(b"x")
    assert meter.look().used_bytes == 0


def test_a_busy_child_counts_with_its_parent():
    parent = subprocess.Popen([sys.executable, "-c", BUSY_PARENT], stdout=subprocess.PIPE)
    family = [psutil.Process(parent.pid)]
    try:
        assert parent.stdout.read(1) == b"1"
        family += family[0].children()
        meter = ProcessMeter()
        before = clocks(family)
        first = meter.look(parent.pid)
        after = clocks(family)
        assert first.num_processes == 2
        assert first.memory_bytes == pytest.approx(
            sum(process.memory_info().rss for process in family), rel=0.2
        )
        time.sleep(0.5)
        least = [now - then for now, then in zip(clocks(family), after, strict=True)]
        second = meter.look(parent.pid)
        most = [now - then for now, then in zip(clocks(family), before, strict=True)]
        # Each is (seconds, busy seconds), with the clock ticks that may be cut off.
        assert second.cores >= (least[1] - 0.05) / most[0]
        assert second.cores <= (most[1] + 0.05) / least[0]
    finally:
        for process in family:
            process.kill()
        parent.wait()
    assert meter.look(parent.pid) is None


def clocks(family) -> tuple[float, float]:
    """The time, and the busy seconds of all processes."""
    times = [process.cpu_times() for process in family]
    return time.monotonic(), sum(each.user + each.system for each in times)


def test_an_ended_process_takes_nothing():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert ProcessMeter().look(ended.pid) is None


# The cost of an iteration: closed forms, and a measurement of the real thing.


PACE = Pace(evaluations_per_s=1700.0, samples_per_s=500.0)


def config(*settings):
    return load_config("smoke", settings=[
        "search.simulations_first=16", "search.simulations_last=33", "training.batch_size=100",
        "training.presentations=2.0", *settings,
    ])


def test_every_simulation_and_the_root_are_one_evaluation_each():
    cost = predict(config(), PACE, positions=1000, simulations=16)
    assert cost.self_play_s == pytest.approx(1000 * 17 / 1700)
    assert cost.training_s == pytest.approx(1000 * 2 / 500)
    assert cost.iteration_s == pytest.approx(14.0)
    assert cost.positions_per_s == pytest.approx(1000 / 14)


def test_policy_only_games_ask_once_a_position():
    policy_only = config("search.kind=policy", "training.policy_loss=advantage")
    assert predict(policy_only, PACE, 1700, 16).self_play_s == pytest.approx(1.0)


def test_a_campaign_gets_slower_as_its_simulations_grow():
    settings = config("self_play.games_per_iteration=100", "self_play.games_per_shard=100")
    first, last = predict_campaign(settings, lambda _: PACE, mean_plies=50.0)
    assert first.positions == last.positions == 5000
    assert last.self_play_s / first.self_play_s == pytest.approx(34 / 17)
    assert last.training_s == first.training_s


def test_a_precision_that_the_gpu_cannot_have_is_refused_before_anything_is_played(monkeypatch):
    monkeypatch.setattr(cost, "find_devices", lambda _choice: ["cuda"])
    with pytest.raises(ConfigError, match="cuda"):
        cost.warm_up(config("net.activation=lif", "net.ticks=9"))


def test_paces_are_measured():
    told = []
    pace = measure_pace(
        config("self_play.concurrent_games=8", "training.batch_size=16",
               "search.simulations_first=4", "execution.device=cpu"),
        on_progress=lambda *done: told.append(done),
    )
    assert pace.evaluations_per_s > 0
    assert pace.samples_per_s > 0
    assert told == [(1, 2), (2, 2)]
