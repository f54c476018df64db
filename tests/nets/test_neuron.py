"""The neuron's reference: a trace by hand, closed forms, and no memory."""

import json
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.cores import num_cores
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, build_network, freeze, make_evaluator, net_config
from chess_snn.nets.cpu.calibration import (
    calibrate,
    chunk_size_for,
    chunk_sizes,
    is_calibrated,
)
from chess_snn.nets.model.neuron import lif, lif_step, surrogate_derivative

# x[t], then h[t], s[t] and v[t] by hand, with decay 0.5 and threshold 0.5.
TRACE = [
    (0.25, 0.25, 0, 0.25),
    (0.25, 0.375, 0, 0.375),
    (0.3125, 0.5, 1, 0.0),  # at the threshold is a spike
    (-1.0, -1.0, 0, -1.0),
    (0.875, 0.375, 0, 0.375),
    (2.0, 2.1875, 1, 0.0),  # hard reset: what is above the threshold is lost
    (0.25, 0.25, 0, 0.25),
]


def test_a_trace_by_hand():
    membrane = None
    for current, charge, spike, after in TRACE:
        h, fired, membrane = lif_step(torch.tensor(current), membrane, 0.5, 0.5)
        assert (h.item(), int(fired), membrane.item()) == (charge, spike, after)


def test_all_ticks_at_once_give_the_trace():
    current = torch.tensor([row[0] for row in TRACE]).unsqueeze(1)
    assert lif(current, 0.5, 0.5).flatten().tolist() == [row[2] for row in TRACE]


def test_surrogate_is_the_derivative_of_an_arctangent():
    x = torch.linspace(-3, 3, 41, dtype=torch.float64, requires_grad=True)
    for alpha in (0.5, 2.0, 5.0):
        smooth_step = torch.atan(math.pi / 2 * alpha * x) / math.pi + 0.5
        (expected,) = torch.autograd.grad(smooth_step.sum(), x)
        torch.testing.assert_close(surrogate_derivative(x.detach(), alpha), expected)


def test_gradient_by_hand_over_two_ticks_without_and_with_a_reset_between():
    def gradient(first):
        x = torch.tensor([[first], [0.4]], requires_grad=True)
        lif(x, 0.5, 0.5)[1].backward()
        return x.grad.flatten()

    def slope(distance):
        return 1 / (1 + (math.pi * distance) ** 2)

    silent = slope(0.5 * 0.2 + 0.4 - 0.5)
    torch.testing.assert_close(gradient(0.2), torch.tensor([0.5 * silent, silent]))
    # The first tick fires, so its charge does not reach the second.
    torch.testing.assert_close(gradient(0.9), torch.tensor([0.0, slope(0.4 - 0.5)]))


@given(st.integers(1, 6), st.integers(1, 40), st.integers(0, 2**31))
def test_a_neuron_does_not_see_its_neighbours_nor_the_call_before(ticks, size, seed):
    generator = torch.Generator().manual_seed(seed)
    current = torch.randn(ticks, size, generator=generator)
    expected = torch.cat([lif(current[:, i : i + 1], 0.5, 0.5) for i in range(size)], dim=1)
    lif(torch.full((ticks, size), 0.49), 0.5, 0.5)
    assert torch.equal(lif(current, 0.5, 0.5), expected)


def test_the_membrane_is_float32_for_bfloat16_currents():
    # 1/4 + 2^-9 and 3/8 are bfloat16; their charge 1/2 + 2^-10 is not, and would round to 1/2 + 0.
    current = torch.tensor([[0.25 + 2**-9], [0.375]], dtype=torch.bfloat16)
    _, _, membrane = lif_step(current[0], None, 0.5, 0.5)
    charge, _, _ = lif_step(current[1], membrane, 0.5, 0.5)
    assert membrane.dtype == charge.dtype == torch.float32
    assert charge.item() == 0.5 + 2**-10
    spikes = lif(current, 0.5, 0.5 + 2**-11)
    assert spikes.dtype == torch.bfloat16
    assert spikes.flatten().tolist() == [0, 1]


@pytest.mark.parametrize("ticks", [1, 4])
def test_an_expanded_current_keeps_channels_last(ticks):
    static = torch.randn(2, 6, 8, 8).contiguous(memory_format=torch.channels_last)
    spikes = lif(static.expand(ticks, *static.shape), 0.5, 0.5)
    assert spikes[0].is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(spikes, lif(static.expand(ticks, *static.shape).contiguous(), 0.5, 0.5))


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
