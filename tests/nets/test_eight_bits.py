"""The ReLU baseline in 8 bits: the same function, rounded, to the bit in every implementation."""

from dataclasses import replace

import pytest
import torch
from lively_networks import lively_network
from torch.nn.functional import conv2d
from torch.nn.utils.fusion import fuse_conv_bn_eval

from chess_snn.games import get_game
from chess_snn.nets import Network, freeze
from chess_snn.nets.cpu.trunk_cpu import can_compile_trunk
from chess_snn.nets.eight_bits import LEVELS, eight_bit_config, in_eight_bits
from chess_snn.nets.folded_convs import round_weights
from chess_snn.nets.model.config import net_config

SPECS = {name: get_game(name).spec for name in ("chess", "2048")}
BASELINE = net_config("tiny", activation="relu", ticks=1)


def planes_of(spec, number=40):
    generator = torch.Generator().manual_seed(2)
    shape = (number, spec.num_planes, *spec.board_shape)
    return (torch.rand(shape, generator=generator) < 0.1).float()


def fire(layer, inputs, shortcut=None):
    """Values in steps, and the currents: sums of integers, rounded as in play."""
    conv = fuse_conv_bn_eval(layer.conv, layer.norm)
    weights, scales = round_weights(conv.weight.detach())
    sums = conv2d(inputs.double(), weights.double(), padding=conv.padding)
    currents = sums.float() * scales.view(-1, 1, 1) + conv.bias.detach().view(-1, 1, 1)
    currents = currents.bfloat16()
    if shortcut is not None:
        currents = (currents.float() + shortcut.float()).bfloat16()
    return (currents.float() + 0.5).floor().clamp(0, LEVELS), currents


@pytest.mark.parametrize("game", SPECS)
@pytest.mark.parametrize("layers", ["separate", None])
def test_values_are_those_of_sums_of_integers(game, layers):
    network, planes = lively_network(SPECS[game], BASELINE), planes_of(SPECS[game])
    rounded = in_eight_bits(network)
    values, shortcut = fire(rounded.stem, planes)
    for block in rounded.blocks:
        inner, _ = fire(block.conv1, values)
        values, shortcut = fire(block.conv2, inner, shortcut)
    frozen = freeze(network, "int8", layers=layers)
    if layers is None:
        usual = can_compile_trunk(SPECS[game], eight_bit_config(BASELINE))
        assert (frozen.layers == "compiled") is usual
    with torch.inference_mode():
        seen, read = frozen._fire(planes)
    assert torch.equal(seen[0].float(), fire(rounded.value.conv, values)[0])
    assert torch.equal(read, fire(rounded.policy.conv, values)[0])
    assert len(read.unique()) > LEVELS // 2


@pytest.mark.parametrize("game", SPECS)
def test_in_steps_it_is_the_same_function(game):
    network, planes = lively_network(SPECS[game], BASELINE), planes_of(SPECS[game])
    rounded = in_eight_bits(network)
    assert rounded.config == replace(BASELINE, activation="ilif", levels=LEVELS, threshold=1.0)
    in_steps = Network(network.spec, BASELINE).eval()
    in_steps.load_state_dict(rounded.state_dict())
    with torch.inference_mode():
        expected, found = network(planes), in_steps(planes)
    for name in ("policy_logits_BA", "value_logits_BV", "plies_left_B"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name),
                                   rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("game", SPECS)
def test_rounding_changes_answers_little(game):
    network, planes = lively_network(SPECS[game], BASELINE), planes_of(SPECS[game])
    with torch.inference_mode():
        exact, rounded = (freeze(network, each)(planes) for each in ("fp32", "int8"))
    for name in ("policy_logits_BA", "value_logits_BV"):
        exact_BX, rounded_BX = (torch.softmax(getattr(each, name), 1) for each in (exact, rounded))
        assert (exact_BX - rounded_BX).abs().sum(1).mean() / 2 < 0.03


def test_spiking_networks_stay_as_they_are():
    network = lively_network(SPECS["chess"], net_config("tiny"))
    assert in_eight_bits(network) is network


def test_a_layer_that_is_never_above_0_is_0():
    network = lively_network(SPECS["chess"], BASELINE)
    torch.nn.init.zeros_(network.blocks[0].conv1.norm.weight)
    torch.nn.init.constant_(network.blocks[0].conv1.norm.bias, -1.0)
    with torch.inference_mode():
        exact, rounded = (
            freeze(network, each)(planes_of(SPECS["chess"])).value_logits_BV
            for each in ("fp32", "int8")
        )
    assert (exact.softmax(1) - rounded.softmax(1)).abs().max() < 0.05
