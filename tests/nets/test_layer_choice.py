"""Which kind of layers a network gets."""

import logging

import numpy as np
import pytest
import torch

from chess_snn.errors import ConfigError
from chess_snn.nets import build_network, layer_choice, net_config
from chess_snn.nets.inference import possible_layers

GPU = torch.device("cuda")
CPU = torch.device("cpu")
FUSED = ["fused-4", "fused-8"]

errors = pytest.importorskip(
    "triton.runtime.errors", reason="triton is not installed: no layers are fused"
)


@pytest.fixture(autouse=True)
def _hopper(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))


def test_older_gpus_have_no_fused_layers(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))
    assert possible_layers(net_config("tiny"), "bf16", GPU) == ["separate"]


def test_what_is_possible():
    tiny, many_ticks = net_config("tiny"), net_config("tiny", ticks=9)
    assert possible_layers(tiny, "bf16", GPU) == ["separate", *FUSED]
    assert possible_layers(tiny, "int8", GPU) == FUSED
    for config in (tiny.baseline(), many_ticks):
        assert possible_layers(config, "bf16", GPU) == ["separate"]
        with pytest.raises(ConfigError, match="int8"):
            possible_layers(config, "int8", GPU)
    assert possible_layers(tiny, "fp32", GPU) == ["separate"]
    for precision in ("fp32", "bf16", "int8"):
        assert possible_layers(tiny, precision, CPU) == ["separate"]


def test_the_fastest_is_chosen_and_logged(spec, caplog, monkeypatch):
    network = build_network(spec, net_config("tiny"), 0)
    seconds = {"separate": 3e-3, "fused-4": 1e-3, "fused-8": 2e-3}
    monkeypatch.setattr(
        layer_choice, "_time", lambda frozen, *_: (seconds[frozen.layers], np.zeros(2))
    )
    caplog.set_level(logging.INFO)
    assert layer_choice.measure_fastest(network, "bf16", CPU, list(seconds)) == "fused-4"
    (record,) = caplog.records
    assert all(kind in record.getMessage() for kind in seconds)


def test_layers_with_other_answers_are_not_used(spec, caplog, monkeypatch):
    network = build_network(spec, net_config("tiny"), 0)
    found = {"separate": (3e-3, np.zeros(2)), "fused-4": (1e-3, np.ones(2))}
    monkeypatch.setattr(layer_choice, "_time", lambda frozen, *_: found[frozen.layers])
    caplog.set_level(logging.WARNING)
    assert layer_choice.measure_fastest(network, "bf16", CPU, list(found)) == "separate"
    assert caplog.records


def test_answers_that_are_no_numbers_are_not_used(spec, monkeypatch):
    network = build_network(spec, net_config("tiny"), 0)
    found = {"separate": (3e-3, np.zeros(2)), "fused-4": (1e-3, np.full(2, np.nan))}
    monkeypatch.setattr(layer_choice, "_time", lambda frozen, *_: found[frozen.layers])
    assert layer_choice.measure_fastest(network, "bf16", CPU, list(found)) == "separate"


def test_layers_that_fail_are_not_used(spec, caplog, monkeypatch):
    def run(frozen, *_):
        if frozen.layers == "fused-4":
            raise errors.OutOfResources(300_000, 232_448, "shared memory")
        return 1.0, np.zeros(2)

    network = build_network(spec, net_config("tiny"), 0)
    monkeypatch.setattr(layer_choice, "_time", run)
    caplog.set_level(logging.WARNING)
    assert layer_choice.measure_fastest(network, "bf16", CPU, ["separate", "fused-4"]) == "separate"
    assert "shared memory" in caplog.text


def test_a_shape_is_measured_once(spec, monkeypatch):
    calls = []

    def measure(network, precision, device, kinds):
        calls.append(kinds)
        return kinds[-1]

    monkeypatch.setattr(layer_choice, "_fastest", {})
    monkeypatch.setattr(layer_choice, "measure_fastest", measure)
    monkeypatch.setattr(layer_choice, "possible_layers", lambda *_: ["separate", "fused-4"])
    for seed in (0, 1):
        network = build_network(spec, net_config("tiny"), seed)
        assert layer_choice.freeze_fastest(network, "bf16", CPU).layers == "fused-4"
    assert len(calls) == 1


def test_an_interpreted_kernel_is_slower(spec):
    """The whole measurement, on few positions."""
    network = build_network(spec, net_config("tiny"), 0)
    kinds = ["separate", "fused-4"]
    chosen = layer_choice.measure_fastest(network, "int8", CPU, kinds, num_positions=2, runs=1)
    assert chosen == "separate"
