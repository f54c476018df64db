import json

import pytest

from chess_snn.nets import build_network, freeze, make_evaluator, net_config
from chess_snn.nets.calibration import CHUNK_SIZES, calibrate, chunk_size_for, is_calibrated

TINY = net_config("tiny")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CHESS_SNN_CACHE", str(tmp_path))


def test_without_a_measurement_narrow_networks_take_larger_chunks():
    assert not is_calibrated(TINY, "bf16")
    assert chunk_size_for(TINY, "bf16") == 128
    assert chunk_size_for(net_config("small"), "bf16") == 64


def test_a_measurement_is_kept_for_its_network_alone(spec, positions):
    kept = calibrate(freeze(build_network(spec, TINY, 0), "bf16"))
    assert kept in CHUNK_SIZES
    assert is_calibrated(TINY, "bf16")
    assert chunk_size_for(TINY, "bf16") == kept
    assert not is_calibrated(TINY, "fp32")
    assert not is_calibrated(net_config("tiny", ticks=4), "bf16")


def test_what_was_kept_is_used(tmp_path, spec):
    calibrate(freeze(build_network(spec, TINY, 0), "bf16"))
    path = tmp_path / "calibration.json"
    key, = json.loads(path.read_text())
    path.write_text(json.dumps({key: 256}))
    with make_evaluator(build_network(spec, TINY, 0)) as evaluator:
        assert evaluator._chunk_size == 256
    with make_evaluator(build_network(spec, TINY, 0), chunk_size=32) as evaluator:
        assert evaluator._chunk_size == 32


@pytest.mark.parametrize("rubbish", ["", "{", "[1]", '{"a": 7}', "\xff\xfe"])
def test_damaged_measurements_are_made_again(tmp_path, spec, rubbish):
    (tmp_path / "calibration.json").write_text(rubbish, encoding="latin-1")
    assert chunk_size_for(TINY, "bf16") == 128
    calibrate(freeze(build_network(spec, TINY, 0), "bf16"))
    assert is_calibrated(TINY, "bf16")
