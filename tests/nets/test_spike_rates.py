"""Spike rates by layer."""

import pytest
import torch

from chess_snn.nets import build_network, count_spikes, net_config

TINY = net_config("tiny")


def rates_of(counts):
    return {name: layer.rate for name, layer in counts.layers.items()}


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
    assert counts.per_evaluation == pytest.approx(expected, rel=1e-6)
    share = expected / (sum(sizes.values()) * TINY.ticks)
    assert counts.rate == pytest.approx(share, rel=1e-6)


def test_rates_follow_the_threshold(spec, positions):
    planes = positions[:8].tensor()
    silent = build_network(spec, net_config("tiny", threshold=100.0), 0)
    counts = count_spikes(silent, planes)
    assert set(rates_of(counts).values()) == {0.0}
    assert counts.per_evaluation == 0


def test_hooks_are_gone_after_an_error(spec):
    network = build_network(spec, TINY, 0)
    with pytest.raises(RuntimeError):
        count_spikes(network, torch.zeros(1, 3, 8, 8))
    assert all(not module._forward_hooks for module in network.modules())


def test_the_twin_has_no_spikes(spec, positions):
    baseline, planes = build_network(spec, TINY.baseline(), 0), positions[:2].tensor()
    counts = count_spikes(baseline, planes)
    assert counts.layers == {}
    assert (counts.per_evaluation, counts.rate) == (0, 0)
