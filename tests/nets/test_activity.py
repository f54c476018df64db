"""Activity of single neurons, against the network's own counts and the neuron's equations."""

import numpy as np
import pytest

from chess_snn.nets import build_network, count_spikes, net_config, record_activity

CONFIGS = {
    "lif": net_config("tiny", ticks=3),
    "ilif": net_config("tiny").with_activation("ilif"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_spikes_of_single_neurons_add_up_to_the_counts(spec, positions, name):
    config = CONFIGS[name]
    network = build_network(spec, config, 0)
    planes = positions[:3].tensor()
    recorded = record_activity(network, planes)
    counted = count_spikes(network, planes).layers
    assert len(recorded) == 3
    for position in recorded:
        assert list(position) == list(counted)
        assert position["blocks.0.neurons1"].spikes_TX.shape == (
            config.ticks, config.channels, *spec.board_shape
        )
    for layer, counts in counted.items():
        total = sum(int(position[layer].spikes_TX.sum()) for position in recorded)
        assert total == counts.spikes


def test_a_leaky_neuron_fires_from_a_membrane_of_one_threshold_on(spec, positions):
    network = build_network(spec, CONFIGS["lif"], 0)
    (position,) = record_activity(network, positions[:1].tensor())
    for layer in position.values():
        assert np.array_equal(layer.spikes_TX, layer.membranes_TX >= 1)
    first = position["blocks.0.neurons1"]
    kept = np.where(first.spikes_TX[0], 0, first.membranes_TX[0]) * network.config.decay
    # The first layer's current is the same in all ticks.
    assert np.allclose(first.membranes_TX[1], kept + first.membranes_TX[0], atol=1e-6)


def test_an_integer_neuron_rounds_its_membrane(spec, positions):
    network = build_network(spec, CONFIGS["ilif"], 0)
    (position,) = record_activity(network, positions[:1].tensor())
    for layer in position.values():
        rounded = np.clip(np.floor(layer.membranes_TX + 0.5), 0, network.config.levels)
        assert np.array_equal(layer.spikes_TX, rounded)


def test_a_baseline_has_no_layers_and_its_mode_is_kept(spec, positions):
    baseline = build_network(spec, net_config("tiny").baseline(), 0).train()
    assert record_activity(baseline, positions[:2].tensor()) == [{}, {}]
    assert baseline.training
