"""Networks with and without the planes that follow from the rules, from training to play."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from chess_snn.nets import (
    build_network,
    freeze,
    make_evaluator,
    net_config,
)
from chess_snn.nets.analysis.folded_layers import fold_layers
from chess_snn.nets.analysis.operations import count_operations

WITHOUT = net_config("tiny", blocks=1)
WITH = replace(WITHOUT, rule_planes=True)
CONFIGS = {"lif": WITHOUT, "ilif": WITHOUT.with_activation("ilif"), "relu": WITHOUT.baseline()}


def changed(positions, first):
    """The same positions, with every bit from the plane ``first`` on turned."""
    planes = positions.planes.copy()
    planes[:, first:] ^= np.uint64(2**64 - 1)
    return replace(positions, planes=planes)


def logits(network, positions):
    with torch.inference_mode():
        return network(positions.tensor()).policy_logits_BA


CASES = [
    (name, precision) for name in CONFIGS for precision in ("in training", "fp32", "bf16", "int8")
]


@pytest.mark.parametrize(("name", "precision"), CASES)
def test_a_network_sees_the_planes_of_its_settings_and_no_others(spec, positions, name, precision):
    for seeing in (CONFIGS[name], replace(CONFIGS[name], rule_planes=True)):
        network = build_network(spec, seeing, 3).eval()
        playing = network if precision == "in training" else freeze(network, precision)
        expected = logits(playing, positions)
        most = seeing.num_planes(spec)
        assert torch.equal(logits(playing, changed(positions, most)), expected)
        assert not torch.equal(logits(playing, changed(positions, most - 1)), expected)


@pytest.mark.parametrize("config", [WITHOUT, WITH], ids=["without", "with"])
def test_evaluators_take_all_planes_or_those_that_the_network_sees(spec, positions, config):
    network = build_network(spec, config, 4).eval()
    few = replace(
        positions, planes=np.ascontiguousarray(positions.planes[:, : config.num_planes(spec)])
    )
    with make_evaluator(network, precision="fp32") as evaluator:
        answer, expected = (
            evaluator.evaluate(each.planes, each.legal_actions, each.num_legal)
            for each in (positions, few)
        )
    np.testing.assert_array_equal(answer.legal_logits, expected.legal_logits)
    np.testing.assert_array_equal(answer.value_stm, expected.value_stm)


def test_all_count_the_planes_that_it_sees(spec):
    for config, num_planes in ((WITHOUT, 28), (WITH, 48)):
        network = build_network(spec, config, 6)
        assert network.stem.conv.in_channels == num_planes
        assert fold_layers(network).input_shape == (num_planes, 8, 8)
        stem = count_operations(spec, config).passes[0]
        assert (stem.name, stem.macs) == ("stem", 64 * 9 * num_planes * 32)
