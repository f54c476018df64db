"""Which kind of layers a network gets."""

from types import SimpleNamespace

import pytest
import torch

from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.nets import net_config
from chess_snn.nets.gpu import trunk
from chess_snn.nets.inference import usual_layers

GPU = torch.device("cuda")
CPU = torch.device("cpu")
CHESS, TILES = get_game("chess").spec, get_game("2048").spec

pytest.importorskip("triton", reason="triton is not installed: no layers are fused")


@pytest.fixture(autouse=True)
def _hopper(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    monkeypatch.setattr(
        torch.cuda, "get_device_properties",
        lambda _: SimpleNamespace(shared_memory_per_block_optin=227 * 1024),
    )
    monkeypatch.setattr(trunk, "has_cuda_bindings", lambda: True)


def test_in_int8_a_gpu_has_all_blocks_in_one_kernel_where_that_fits(monkeypatch):
    tiny = net_config("tiny")
    assert usual_layers(CHESS, tiny, "int8", GPU) == "trunk"
    assert usual_layers(CHESS, tiny.baseline(), "int8", GPU) == "trunk"
    assert usual_layers(TILES, tiny, "int8", GPU) == "fused"
    assert usual_layers(CHESS, net_config("large"), "int8", GPU) == "fused"
    monkeypatch.setattr(trunk, "has_cuda_bindings", lambda: False)
    assert usual_layers(CHESS, tiny, "int8", GPU) == "fused"


def test_a_gpu_has_no_int8_for_many_ticks():
    with pytest.raises(ConfigError, match="int8"):
        usual_layers(CHESS, net_config("tiny", ticks=9), "int8", GPU)


def test_older_gpus_have_no_int8(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))
    with pytest.raises(ConfigError, match="Ampere"):
        usual_layers(CHESS, net_config("tiny"), "int8", GPU)


def test_layers_are_separate_elsewhere():
    for precision in ("fp32", "bf16"):
        assert usual_layers(CHESS, net_config("tiny"), precision, GPU) == "separate"
    for precision in ("fp32", "bf16", "int8"):
        assert usual_layers(CHESS, net_config("tiny"), precision, CPU) == "separate"
