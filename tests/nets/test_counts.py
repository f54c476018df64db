"""Counts of operations without zeros, by hand; tests/nets/test_neurobench.py has the oracle."""

import math

import numpy as np
import pytest
import torch

from chess_snn.nets import (
    NetConfig,
    build_network,
    count_spikes,
    count_work,
    in_eight_bits,
    net_config,
    record_activity,
)

EDGE_SUM = 22
"""Outputs that the squares of a line of 8 reach with a kernel of 3: 6 of 3, and 2 of 2."""
CONFIGS = {
    "lif": net_config("tiny", ticks=3),
    "ilif": net_config("tiny").with_activation("ilif"),
    "relu": net_config("tiny").baseline(),
}


def work_of(spec, config, planes, change=lambda network: None):
    network = build_network(spec, config, 0)
    with torch.no_grad():
        change(network)
    return count_work(network, planes), network


@pytest.mark.parametrize("name", CONFIGS)
def test_dense_operations_leave_out_the_padding(spec, positions, name):
    config = CONFIGS[name]
    work, _ = work_of(spec, config, positions[:2].tensor())
    dense = {layer: counts.dense / 2 for layer, counts in work.synapses.items()}
    ticks = config.virtual_ticks
    assert dense["stem"] == EDGE_SUM**2 * spec.num_planes * 32
    assert dense["blocks.1.conv2"] == ticks * EDGE_SUM**2 * 32 * 32
    assert dense["value.hidden"] == ticks * 8 * 64 * 64
    assert dense["policy.readout"] == 64 * 32 * spec.policy_planes
    merged = work.synapses["blocks.1.conv2"].merged_dense / 2
    assert merged == EDGE_SUM**2 * 32 * 32


@pytest.mark.parametrize("name", CONFIGS)
def test_parts_add_up_to_the_whole_and_the_network_is_left_as_it_was(spec, positions, name):
    planes = positions[:70].tensor()
    network = build_network(spec, CONFIGS[name], 0).train()
    before = {key: tensor.clone() for key, tensor in network.state_dict().items()}
    whole, parts = count_work(network, planes), [
        count_work(network, part) for part in (planes[:5], planes[5:])
    ]
    for count in ("accumulates", "multiply_accumulates", "merged", "active", "membrane_updates"):
        assert whole.total(count) == sum(part.total(count) for part in parts)
    assert network.training
    assert all(not module._forward_hooks for module in network.modules())
    assert all(torch.equal(before[key], tensor) for key, tensor in network.state_dict().items())


@pytest.mark.parametrize("name", ["lif", "ilif"])
def test_active_neurons_are_the_spikes(spec, positions, name):
    planes = positions[:8].tensor()
    work, network = work_of(spec, CONFIGS[name], planes)
    spikes = count_spikes(network, planes)
    assert {layer: counts.active for layer, counts in work.neurons.items()} == {
        layer: counts.spikes for layer, counts in spikes.layers.items()
    }
    assert work.activation_sparsity == pytest.approx(1 - spikes.rate)
    for layer in spikes.layers.values():
        assert len(layer.by_tick) == CONFIGS[name].ticks
        assert layer.rate == pytest.approx(np.mean(layer.rates_by_tick))


def test_a_spike_costs_the_weights_it_passes(spec, positions):
    """Every neuron fires in every tick: all operations are effective; without weights none is."""
    planes = positions[:2].tensor()

    def saturate(network):
        for block in network.blocks:
            block.conv1.norm.bias.fill_(100.0)

    work, _ = work_of(spec, CONFIGS["ilif"], planes, saturate)
    layer = work.synapses["blocks.0.conv2"]
    assert layer.accumulates == layer.dense == 4 * layer.merged
    assert work.neurons["blocks.0.neurons2"].active == work.neurons["blocks.0.neurons2"].chances

    def cut(network):
        saturate(network)
        network.blocks[0].conv2.conv.weight[:24].zero_()

    fewer, _ = work_of(spec, CONFIGS["ilif"], planes, cut)
    assert fewer.synapses["blocks.0.conv2"].accumulates == layer.accumulates / 4
    assert fewer.synapses["blocks.0.conv2"].dense == layer.dense
    weights = fewer.total("weights")
    assert fewer.connection_sparsity == pytest.approx(24 * 32 * 9 / weights)


def test_membranes_of_silent_neurons_approach_their_limit(spec):
    """Without a spike v[t] = (2 - 2**(1 - t)) x for decay 0.5: it changes in every tick."""
    config = NetConfig(
        blocks=1, channels=2, ticks=4, value_channels=1, value_hidden=3, threshold=100.0
    )
    planes = torch.ones(1, spec.num_planes, 8, 8)
    work, _ = work_of(spec, config, planes)
    # Later layers get no spikes; their currents are 0 but for biases of normalisation, here 0.
    assert work.neurons["blocks.0.neurons1"].membrane_updates == 4 * 2 * 64
    assert work.neurons["blocks.0.neurons2"].membrane_updates == 2 * 64
    assert math.isclose(work.activation_sparsity, 1.0)


def plain_changes(network, new, old):
    """Events and operations of a line of two evaluations, with loops and one position at a time."""
    now, then = (record_activity(network, planes[None])[0] for planes in (new, old))
    steps = {
        name: layer.spikes_TX.astype(int) - then[name].spikes_TX for name, layer in now.items()
    }
    layers = dict(network.named_modules())
    operations = 0
    for first, second in (("stem", None), ("blocks.0.conv2", "blocks.0.neurons2")):
        planes = (new - old).abs().numpy()[: network.num_planes]
        change = np.abs(steps[second][0]) if second else planes
        weights = layers[first].conv.weight.detach().numpy() != 0
        for c, y, x in np.argwhere(change):
            for ky, kx in np.ndindex(3, 3):
                if 0 <= y + 1 - ky < 8 and 0 <= x + 1 - kx < 8:
                    operations += int(change[c, y, x]) * int(weights[:, c, ky, kx].sum())
    return steps, operations


@pytest.mark.parametrize("pairs", [8, pytest.param(1000, marks=pytest.mark.slow)])
def test_changes_are_those_of_a_plain_reference(spec, positions, pairs):
    config = net_config("tiny", blocks=1, channels=4, levels=4).with_activation("ilif")
    network = build_network(spec, config, 0)
    with torch.no_grad():
        network.blocks[0].conv2.conv.weight[1].zero_()
    rows = np.random.default_rng(0).integers(len(positions.planes), size=(2, pairs))
    new, old = (positions[row].tensor() for row in rows)
    work = count_work(network, new, old)
    events, spikes, operations = 0, 0, 0
    for k in range(pairs):
        steps, done = plain_changes(network, new[k], old[k])
        events += sum(int((step != 0).sum()) for step in steps.values())
        spikes += sum(int(np.abs(step).sum()) for step in steps.values())
        operations += done
    assert (work.total("senders"), work.total("active")) == (events, spikes)
    counted = [work.synapses[name].accumulates for name in ("stem", "blocks.0.conv2")]
    assert sum(counted) == operations > 0
    assert work.sender_share == pytest.approx(
        events / pairs / sum(step[0].size for step in steps.values())
    )


@pytest.mark.parametrize("name", CONFIGS)
def test_nothing_changes_after_the_same_position_and_all_is_sent_from_rest(spec, positions, name):
    planes = positions[:6].tensor()
    network = in_eight_bits(build_network(spec, CONFIGS[name], 0))
    same, rest = count_work(network, planes, planes), count_work(network, planes, 0 * planes)
    counts = ("active", "senders", "accumulates", "multiply_accumulates", "merged", "received")
    assert not any(same.total(count) for count in (*counts, "membrane_updates"))
    alone = count_work(network, planes)
    assert {count: rest.total(count) for count in counts} == {
        count: alone.total(count) for count in counts
    }
