"""Bytes on the disk against a plain walk; the cost of an iteration against closed forms."""

from pathlib import Path

import pytest

from chess_snn.campaign import load_config
from chess_snn.campaign.machine import cost
from chess_snn.campaign.machine.cost import Pace, measure_pace, predict, predict_campaign
from chess_snn.campaign.viewing import live
from chess_snn.campaign.viewing.live import DiskMeter
from chess_snn.errors import ConfigError


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
    policy_only = config("search.kind=policy", "self_play.teacher=stockfish@5")
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
