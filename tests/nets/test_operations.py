"""Operations and spikes, counted layer by layer."""

from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from chess_snn.games.base import ValueKind
from chess_snn.nets import (
    NetConfig,
    build_network,
    count_operations,
    count_spikes,
    freeze,
    net_config,
    num_parameters,
)
from chess_snn.nets.analysis.operations import POLICY_READOUT

BATCH = 3
CONFIGS = {
    "tiny": net_config("tiny"),
    "small": net_config("small"),
    "baseline": net_config("small").baseline(),
    "odd": NetConfig(blocks=1, channels=5, ticks=3, value_channels=2, value_hidden=7),
}


OTHER_GAME = {
    "num_actions": 4, "policy_steps": (), "num_planes": 16, "board_shape": (4, 5),
    "value_kind": ValueKind.RETURN,
}
"""Another board, a dense policy and a return."""


@pytest.mark.parametrize(
    ("name", "changes"), [*((name, {}) for name in CONFIGS), ("odd", OTHER_GAME)]
)
def test_equal_those_that_torch_counts(spec, name, changes):
    """Numbers written are those of convolutions and linear layers, as hooks see them."""
    spec, config, written = replace(spec, **changes), CONFIGS[name], []
    trained = build_network(spec, config, seed=0)
    network = freeze(trained, "fp32")
    for layer in network.modules():
        if isinstance(layer, torch.nn.Conv2d | torch.nn.Linear):
            layer.register_forward_hook(lambda *seen: written.append(seen[-1].numel()))
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network(torch.ones(BATCH, spec.num_planes, *spec.board_shape))
    counted = count_operations(spec, config)
    assert counter.get_total_flops() == 2 * counted.macs * BATCH
    assert counted.parameters == sum(p.numel() for p in network.parameters())
    assert num_parameters(spec, config) == trained.num_parameters
    found = sum(each.numbers_written for each in counted.passes if not each.is_neurons)
    assert found * BATCH == sum(written)


def test_a_tiny_network_by_hand(spec):
    config = NetConfig(blocks=1, channels=1, ticks=2, value_channels=1, value_hidden=1)
    passes = {each.name: each for each in count_operations(spec, config).passes}
    assert passes["stem"].macs == 64 * 9 * spec.num_planes
    assert passes["blocks.0.conv1"].macs == 2 * 64 * 9
    assert passes[POLICY_READOUT].macs == spec.num_actions
    # All of 64 squares: the current once; spikes of two ticks.
    first = passes["stem.neurons"]
    assert (first.numbers_read, first.numbers_written) == (64, 2 * 64)
    # Two ticks of currents and one of the shortcut; two ticks of sums and of spikes.
    last = passes["blocks.0.neurons2"]
    assert (last.numbers_read, last.numbers_written) == (3 * 64, 4 * 64)


# Spike rates by layer.


TINY = net_config("tiny")


def rates_of(counts):
    return {name: layer.rate for name, layer in counts.layers.items()}


def spikes_of(counts):
    return sum(layer.spikes for layer in counts.layers.values())


def test_every_layer_has_a_rate_and_the_network_is_left_as_it_was(spec, positions):
    network = build_network(spec, TINY, 0).train()
    planes = positions[:8].tensor()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    rates = rates_of(count_spikes(network, planes))
    assert list(rates) == [
        *(f"blocks.{block}.neurons{layer}" for block in range(3) for layer in (1, 2)),
        "neurons", "policy.neurons", "value.neurons1", "value.neurons2",
    ]
    assert all(0 < rate < 1 for rate in rates.values())
    assert network.training
    assert all(not module._forward_hooks for module in network.modules())
    assert all(torch.equal(before[name], t) for name, t in network.state_dict().items())


def test_the_total_is_the_rates_times_neurons_and_ticks(spec, positions):
    network = build_network(spec, TINY, 0)
    planes = positions[:8].tensor()
    counts = count_spikes(network, planes)
    rates = rates_of(counts)
    sizes = dict.fromkeys(rates, 32 * 64) | {"value.neurons1": 8 * 64, "value.neurons2": 64}
    expected = sum(rate * sizes[name] * TINY.ticks for name, rate in rates.items())
    assert spikes_of(counts) / len(planes) == pytest.approx(expected, rel=1e-6)
    share = expected / (sum(sizes.values()) * TINY.ticks)
    assert counts.rate == pytest.approx(share, rel=1e-6)


def test_hooks_are_gone_after_an_error(spec):
    network = build_network(spec, TINY, 0)
    with pytest.raises(RuntimeError):
        count_spikes(network, torch.zeros(1, 3, 8, 8))
    assert all(not module._forward_hooks for module in network.modules())


def test_the_twin_has_no_spikes(spec, positions):
    baseline, planes = build_network(spec, TINY.baseline(), 0), positions[:2].tensor()
    counts = count_spikes(baseline, planes)
    assert counts.layers == {}
    assert counts.rate == 0
