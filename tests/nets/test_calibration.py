import json
from dataclasses import replace

import pytest

from chess_snn.cores import num_cores
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, build_network, freeze, make_evaluator, net_config
from chess_snn.nets.calibration import (
    calibrate,
    chunk_size_for,
    chunk_sizes,
    is_calibrated,
)

MICRO = NetConfig(blocks=1, channels=8, ticks=2, value_channels=2, value_hidden=8)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CHESS_SNN_CACHE", str(tmp_path))


def test_without_a_measurement_narrow_networks_take_larger_chunks(spec):
    assert not is_calibrated(spec, MICRO, "bf16")
    assert chunk_size_for(spec, MICRO, "bf16") == 128
    assert chunk_size_for(spec, net_config("small"), "bf16") == 64


def test_a_measurement_is_kept_for_its_network_alone(spec, positions):
    kept = calibrate(freeze(build_network(spec, MICRO, 0), "bf16"))
    assert kept in chunk_sizes(spec)
    assert is_calibrated(spec, MICRO, "bf16")
    assert chunk_size_for(spec, MICRO, "bf16") == kept
    assert not is_calibrated(spec, MICRO, "fp32")
    assert not is_calibrated(spec, replace(MICRO, ticks=4), "bf16")


def test_a_smaller_board_has_larger_chunks_and_a_measurement_of_its_own(spec):
    calibrate(freeze(build_network(spec, MICRO, 0), "bf16"))
    small = get_game("2048").spec
    assert not is_calibrated(small, MICRO, "bf16")
    assert chunk_size_for(small, MICRO, "bf16") == 4 * 128
    kept = calibrate(freeze(build_network(small, MICRO, 0), "bf16"))
    assert kept in chunk_sizes(small)


def test_what_was_kept_is_used(tmp_path, spec):
    calibrate(freeze(build_network(spec, MICRO, 0), "bf16"))
    path = tmp_path / "calibration.json"
    key, = json.loads(path.read_text())
    path.write_text(json.dumps({key: 256}))
    with make_evaluator(build_network(spec, MICRO, 0), num_threads=None) as evaluator:
        assert (evaluator._chunk_size, evaluator.num_threads) == (256, num_cores())
    with make_evaluator(build_network(spec, MICRO, 0), num_threads=3, chunk_size=32) as evaluator:
        assert (evaluator._chunk_size, evaluator.num_threads) == (32, 3)


DAMAGED = (
    "", "{", "[1]", '{"a": 7}', "\xff\xfe", '{"KEY": 100}', '{"KEY": [128]}', '{"KEY": "128"}',
    '{"KEY": {"chunk_size": 128, "num_threads": 1}}',
)


def test_what_cannot_have_been_measured_is_measured_again(tmp_path, spec):
    frozen, path = freeze(build_network(spec, MICRO, 0), "bf16"), tmp_path / "calibration.json"
    calibrate(frozen)
    (key,) = json.loads(path.read_text())
    for text in DAMAGED:
        path.write_text(text.replace('"KEY"', json.dumps(key)), encoding="latin-1")
        assert not is_calibrated(spec, MICRO, "bf16"), text
        assert chunk_size_for(spec, MICRO, "bf16") == 128
    calibrate(frozen)
    assert is_calibrated(spec, MICRO, "bf16")
