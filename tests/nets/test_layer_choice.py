"""Which kind of layers a network gets."""

import logging
from types import SimpleNamespace

import pytest
import torch

from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.nets import build_network, layer_choice, net_config, trunk
from chess_snn.nets.inference import freeze, possible_layers

GPU = torch.device("cuda")
CPU = torch.device("cpu")
FUSED = ["fused-4", "fused-8"]
CHESS = get_game("chess").spec

errors = pytest.importorskip(
    "triton.runtime.errors", reason="triton is not installed: no layers are fused"
)


@pytest.fixture(autouse=True)
def _hopper(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    monkeypatch.setattr(
        torch.cuda, "get_device_properties",
        lambda _: SimpleNamespace(shared_memory_per_block_optin=227 * 1024),
    )
    monkeypatch.setattr(trunk, "has_cuda_bindings", lambda: True)


def test_older_gpus_have_no_fused_layers(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))
    assert possible_layers(CHESS, net_config("tiny"), "bf16", GPU) == ["separate"]


def test_what_is_possible(monkeypatch):
    tiny, many_ticks = net_config("tiny"), net_config("tiny", ticks=9)
    assert possible_layers(CHESS, tiny, "bf16", GPU) == ["separate", *FUSED]
    assert possible_layers(CHESS, tiny, "int8", GPU) == [*FUSED, "trunk"]
    assert possible_layers(get_game("2048").spec, tiny, "int8", GPU) == FUSED
    monkeypatch.setattr(trunk, "has_cuda_bindings", lambda: False)
    assert possible_layers(CHESS, tiny, "int8", GPU) == FUSED
    for config in (tiny.baseline(), many_ticks):
        assert possible_layers(CHESS, config, "bf16", GPU) == ["separate"]
        with pytest.raises(ConfigError, match="int8"):
            possible_layers(CHESS, config, "int8", GPU)
    assert possible_layers(CHESS, tiny, "fp32", GPU) == ["separate"]
    for precision in ("fp32", "bf16", "int8"):
        assert possible_layers(CHESS, tiny, precision, CPU) == ["separate"]


def measure(network, kinds, precision="bf16"):
    return layer_choice.measure_fastest(network, precision, CPU, kinds, num_positions=2, runs=1)


@pytest.fixture
def network(spec):
    return build_network(spec, net_config("tiny"), 0)


@pytest.fixture
def fused_is_fast(monkeypatch):
    seconds = {"separate": 3e-3, "fused-4": 1e-3, "fused-8": 2e-3}
    monkeypatch.setattr(layer_choice, "_time", lambda frozen, *_: seconds[frozen.layers])


@pytest.mark.usefixtures("fused_is_fast", "true_bfloat16")
def test_the_fastest_is_chosen_and_logged(network, caplog):
    caplog.set_level(logging.INFO)
    kinds = ["separate", "fused-4", "fused-8"]
    assert measure(network, kinds) == "fused-4"
    (record,) = caplog.records
    assert all(kind in record.getMessage() for kind in kinds)


@pytest.mark.parametrize(
    "weight", [0.0, pytest.param(float("nan"), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("layer", [
    "stem", "first_layers", "second_layers", "policy_layer", "value_layer",
])
@pytest.mark.usefixtures("fused_is_fast", "true_bfloat16")
def test_a_layer_that_computes_wrongly_is_not_used(network, caplog, monkeypatch, weight, layer):
    def damaged(*arguments, layers, **options):
        frozen = freeze(*arguments, layers=layers, **options)
        if layers == "fused-4":
            part = getattr(frozen, layer)
            for tensor in (part[0] if isinstance(part, torch.nn.ModuleList) else part).buffers():
                tensor.fill_(weight)
        return frozen

    monkeypatch.setattr(layer_choice, "freeze", damaged)
    caplog.set_level(logging.WARNING)
    assert measure(network, ["separate", "fused-4"]) == "separate"
    assert caplog.records


@pytest.mark.parametrize("failing", ["separate", "fused-4"])
def test_layers_that_fail_are_not_used(network, caplog, monkeypatch, failing):
    def run(frozen, *_):
        if frozen.layers == failing:
            raise errors.OutOfResources(300_000, 232_448, "shared memory")
        return 1.0

    kinds = ["separate", "fused-4"]
    monkeypatch.setattr(layer_choice, "_time", run)
    caplog.set_level(logging.WARNING)
    assert measure(network, kinds) == next(kind for kind in kinds if kind != failing)
    assert "shared memory" in caplog.text
    with pytest.raises(ConfigError):
        measure(network, [failing])


def test_no_room_to_measure_is_not_remembered(network, monkeypatch):
    def run(*_):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(layer_choice, "_fastest", {})
    monkeypatch.setattr(layer_choice, "_time", run)
    monkeypatch.setattr(layer_choice, "possible_layers", lambda *_: ["separate", "fused-4"])
    assert layer_choice.freeze_fastest(network, "bf16", CPU).layers == "separate"
    assert layer_choice._fastest == {}


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


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="kernels are interpreted without a GPU alone")
@pytest.mark.parametrize("precision", ["int8", "bf16"])
@pytest.mark.usefixtures("true_bfloat16")
def test_an_interpreted_kernel_is_measured(network, caplog, precision):
    """The whole measurement, on few positions."""
    caplog.set_level(logging.INFO)
    kinds = ["separate", "fused-4"]
    assert measure(network, kinds, precision) in kinds
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert all(kind in record.getMessage() for kind in kinds)
