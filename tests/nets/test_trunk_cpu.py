"""All convolutions as one kernel on the CPU: the answers of layers by oneDNN, bit for bit.

oneDNN's layers are compared with exact sums in ``test_binary_conv.py``.
"""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, build_network, freeze, make_evaluator, net_config
from chess_snn.nets.cpu import trunk_cpu
from chess_snn.nets.cpu.dot_tile import AVX2, DOT_PRODUCT, VNNI
from chess_snn.nets.cpu.trunk_cpu import CompiledTrunk
from chess_snn.nets.folded_convs import BinaryConv
from chess_snn.nets.gpu.conv_neuron import SeparateLayer
from chess_snn.nets.inference_neurons import CompiledNeurons

CPU = torch.device("cpu")
CHESS, SOLO = get_game("chess").spec, get_game("2048").spec

needs_dot_products = pytest.mark.skipif(
    DOT_PRODUCT is None, reason="this processor has no dot products of bytes"
)


def config(blocks=1, channels=32, levels=4, **others):
    return NetConfig(
        blocks=blocks, channels=channels, ticks=1, activation="ilif", levels=levels, **others
    )


CASES = {
    "tiny": config(blocks=3),
    "several tiles of outputs": config(channels=96, levels=8),
    "one level": config(levels=1, threshold=0.25),
    "many levels, large sums": config(blocks=2, channels=64, levels=64, threshold=0.03),
    "more value channels than a tile": config(value_channels=33),
    "one value channel": config(value_channels=1, threshold=0.7),
    "rule planes and targets": config(rule_planes=True, target_readout=True),
}


def trained(spec, net):
    """A network whose normalisation has statistics, scales and shifts of its own."""
    network = build_network(spec, net, seed=3)
    generator = torch.Generator().manual_seed(4)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.3, generator=generator)
            module.running_var.uniform_(0.3, 3, generator=generator)
            module.weight.data.uniform_(0.5, 1.5, generator=generator)
            module.bias.data.normal_(0, 0.3, generator=generator)
    return network


def random_planes(rows, planes, size, seed=0):
    drawn = torch.rand((rows, planes, size, size), generator=torch.Generator().manual_seed(seed))
    return drawn.lt(0.3).to(torch.uint8).contiguous(memory_format=torch.channels_last)


def both(spec, net):
    network = trained(spec, net)
    return freeze(network, "int8", layers="separate"), freeze(network, "int8")


@needs_dot_products
@pytest.mark.parametrize("game", [CHESS, SOLO], ids=["chess", "2048"])
@pytest.mark.parametrize("name", CASES)
def test_it_fires_what_separate_layers_fire(name, game):
    if game is SOLO and name == "rule planes and targets":
        pytest.skip("2048 has neither")
    separate, compiled = both(game, CASES[name])
    planes = random_planes(16, separate.num_planes, game.board_shape[0])
    with torch.inference_mode():
        (value, rate), (our_value, our_rate) = (each._fire(planes) for each in (separate, compiled))
        expected, answer = separate(planes), compiled(planes)
    assert (separate.layers, compiled.layers) == ("separate", "compiled")
    assert 0.005 < (rate > 0).float().mean() < 0.98
    assert 0.005 < (value > 0).float().mean() < 0.98
    assert torch.equal(our_rate, rate)
    assert torch.equal(our_value, value)
    assert torch.equal(answer.policy_logits_BA, expected.policy_logits_BA)
    assert torch.equal(answer.value_logits_BV, expected.value_logits_BV)


@needs_dot_products
@pytest.mark.parametrize("rows", [1, 2, 7, 17])
def test_a_few_positions_are_answered_as_among_many(rows):
    _, compiled = both(CHESS, CASES["several tiles of outputs"])
    planes = random_planes(64, compiled.num_planes, 8)
    with torch.inference_mode():
        whole, part = compiled(planes), compiled(planes[20 : 20 + rows])
    assert len(part.value_logits_BV) == len(part.policy_logits_BA) == rows
    assert torch.equal(part.policy_logits_BA, whole.policy_logits_BA[20 : 20 + rows])
    assert torch.equal(part.value_logits_BV, whole.value_logits_BV[20 : 20 + rows])


@needs_dot_products
def test_an_evaluator_uses_it(positions):
    network = trained(CHESS, CASES["tiny"])
    with make_evaluator(network, precision="int8") as evaluator:
        assert evaluator.network.layers == "compiled"
        whole, one = (
            evaluator.evaluate(each.planes, each.legal_actions, each.num_legal)
            for each in (positions, positions[5:6])
        )
    assert (one.legal_logits[0] == whole.legal_logits[5]).all()
    assert one.value_stm[0] == whole.value_stm[5]


def check_convs(convs, planes, net):
    """Check that the kernel fires what separate layers fire."""
    neurons = CompiledNeurons(net, integer_spikes=True)
    stem, first, second, policy, value = (
        SeparateLayer(BinaryConv(conv, planes.shape[2:]), neurons) for conv in convs
    )
    with torch.inference_mode():
        currents, fired = stem.fire_static(planes, 1)
        _, fired = second.add_and_fire(currents, first.fire(fired))
        spikes, rates = CompiledTrunk(convs, net)(planes)
        assert torch.equal(rates, policy.mean_rate(fired))
        assert torch.equal(spikes, value.fire(fired))


def random_convs(net, planes):
    torch.manual_seed(1)
    channels, values = net.channels, net.value_channels
    sizes = [(planes, channels, 3), *[(channels, channels, 3)] * 3, (channels, values, 1)]
    return [torch.nn.Conv2d(*size, padding=size[2] // 2) for size in sizes]


@needs_dot_products
@pytest.mark.parametrize("shape", [(6, 8), (3, 4), (8, 8)])
def test_boards_need_not_be_square(shape):
    net = config(channels=32, value_channels=5)
    convs = random_convs(net, planes=6)
    planes = torch.rand(4, 6, *shape).lt(0.3).to(torch.uint8)
    planes = planes.contiguous(memory_format=torch.channels_last)
    check_convs(convs, planes, net)


@needs_dot_products
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("levels", [1, 2, 3, 4, 8, 64])
def test_the_largest_sums_are_exact(levels, sign):
    """All spikes and weights are as large as they can be.

    With AVX2 and 8 or 64 levels, sums in 16 bits reach 99 % of the largest number. Biases cancel
    the sum in some channels, so that an overflow changes spikes.
    """
    net = config(channels=64, levels=levels, threshold=0.5 ** 6)
    convs = random_convs(net, planes=12)
    for conv in convs[1:]:
        conv.weight.data.fill_(sign)
        largest = -sign * levels * conv.in_channels * conv.kernel_size[0] ** 2
        conv.bias.data.copy_(largest * torch.linspace(0, 1, len(conv.bias)))
    convs[0].weight.data.fill_(1)
    planes = torch.ones(2, 12, 8, 8, dtype=torch.uint8)
    planes = planes.contiguous(memory_format=torch.channels_last)
    check_convs(convs, planes, net)


@pytest.mark.parametrize(
    ("spec", "net"),
    [
        (CHESS, net_config("tiny")), (CHESS, net_config("tiny").baseline()),
        (CHESS, config(channels=40)), (replace(CHESS, board_shape=(8, 6)), config()),
        (CHESS, config(levels=16, threshold=0.3)),
    ],
    ids=["leaky", "baseline", "40 channels", "6 columns", "not counted by rounding"],
)
def test_other_networks_have_separate_layers(monkeypatch, spec, net):
    monkeypatch.setattr(trunk_cpu, "DOT_PRODUCT", AVX2)
    assert trunk_cpu.can_compile_trunk(CHESS, config())
    assert not trunk_cpu.can_compile_trunk(spec, net)


@pytest.mark.parametrize("levels", [1, 4, 8])
def test_usual_spikes_are_counted_by_rounding(levels):
    """0.55 with 8 levels needs a neighbour of the quotient."""
    for threshold in range(5, 200, 10):
        assert trunk_cpu.spikes_of_current(threshold / 100, levels) is not None, threshold


@pytest.mark.slow
@pytest.mark.skipif(DOT_PRODUCT is not VNNI, reason="this processor has no AVX-512 VNNI")
def test_it_fires_the_same_without_vnni(tmp_path):
    environment = os.environ | {
        "NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2",
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    has_avx2 = (
        "from chess_snn.nets.cpu.dot_tile import AVX2, DOT_PRODUCT\nassert DOT_PRODUCT is AVX2"
    )
    for arguments in (["-c", has_avx2], ["-m", "pytest", "-q", "-m", "not slow", __file__]):
        subprocess.run([sys.executable, *arguments], check=True, env=environment)


def test_processors_without_the_instructions_have_separate_layers(monkeypatch):
    monkeypatch.setattr(trunk_cpu, "DOT_PRODUCT", None)
    network = build_network(CHESS, config(), seed=0)
    assert freeze(network, "int8").layers == "separate"
    with pytest.raises(ConfigError, match="AVX2"):
        freeze(network, "int8", layers="compiled")


@pytest.mark.parametrize(("net", "precision"), [(config(), "bf16"), (net_config("tiny"), "int8")])
def test_it_is_refused_where_it_would_say_something_else(net, precision):
    with pytest.raises(ConfigError, match="compiled"):
        freeze(build_network(CHESS, net, seed=0), precision, layers="compiled")


