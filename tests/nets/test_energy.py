"""The three models of energy, by hand and against each other."""

import math

import pytest
import torch

from chess_snn.nets import NetConfig, build_network, count_work, net_config
from chess_snn.nets.analysis.energy import estimate_energy

NUM_POSITIONS = 4
FAIR_TERMS = {
    "accumulates", "multiply-accumulates", "neurons", "weights", "activations", "shortcuts",
    "membranes",
}
ILIF = net_config("tiny").with_activation("ilif")


def estimates_of(spec, positions, config):
    network = build_network(spec, config, 0)
    work = count_work(network, positions[:NUM_POSITIONS].tensor())
    return {each.name: each for each in estimate_energy(spec, config, work)}, work


@pytest.mark.parametrize(("config", "names"), [
    (net_config("tiny"), ["spiking", "2-bit, zeros skipped", "int8", "ReLU, float32"]),
    (net_config("tiny", ticks=4), ["spiking", "3-bit, zeros skipped", "int8", "ReLU, float32"]),
    (ILIF, ["spiking", "3-bit, zeros skipped", "int8", "ReLU, float32"]),
    (net_config("tiny").baseline(), ["8-bit, zeros skipped", "int8", "ReLU, float32"]),
])
def test_a_baseline_has_as_many_bits_as_spikes_say(spec, positions, config, names):
    estimates, _ = estimates_of(spec, positions, config)
    assert list(estimates) == names
    for each in estimates.values():
        assert set(each.fair) == FAIR_TERMS
        assert set(each.convention) == {"accumulates", "multiply-accumulates"}
        assert set(each.chip) == (
            set() if each.name == "ReLU, float32" else {"synaptic operations", "neurons", "events"}
        )


def test_the_convention_prices_operations_alone(spec, positions):
    estimates, work = estimates_of(spec, positions, ILIF)
    assert estimates["spiking"].convention == pytest.approx({
        "accumulates": 0.9 * work.total("accumulates") / NUM_POSITIONS,
        "multiply-accumulates": 4.6 * work.total("multiply_accumulates") / NUM_POSITIONS,
    })
    stem = work.synapses["stem"].merged_dense
    assert estimates["ReLU, float32"].convention == pytest.approx({
        "accumulates": 0.9 * stem / NUM_POSITIONS,
        "multiply-accumulates": 4.6 * (work.total("merged_dense") - stem) / NUM_POSITIONS,
    })
    assert estimates["int8"].convention == estimates["ReLU, float32"].convention


def test_with_one_binary_tick_the_baseline_is_the_network_itself(spec, positions):
    """One bit, no membrane to keep: the same work in other words."""
    estimates, _ = estimates_of(spec, positions, net_config("tiny", ticks=1))
    ours, baseline = estimates["spiking"].fair, estimates["1-bit, zeros skipped"].fair
    operations = ("accumulates", "multiply-accumulates")
    assert sum(ours[term] for term in operations) == pytest.approx(
        sum(baseline[term] for term in operations)
    )
    for term in FAIR_TERMS.difference(operations):
        assert ours[term] == pytest.approx(baseline[term]), term
    assert ours["membranes"] == 0


def test_terms_of_the_fair_model_by_hand(spec, positions):
    config = NetConfig(blocks=1, channels=2, ticks=3, value_channels=1, value_hidden=5)
    estimates, work = estimates_of(spec, positions, config)
    fair, layer = estimates["spiking"].fair, 2 * 64
    weights = (
        9 * 2 * spec.num_planes + 3 * 9 * 2 * 2 + 4 * 2  # convolutions of 3x3 and their biases
        + 2 * spec.policy_planes + spec.policy_planes
        + 2 + 1 + 64 * 5 + 5 + 5 * 3 + 3
    )
    assert fair["weights"] == pytest.approx(
        8 * weights * 100 / 64 * math.sqrt(weights / 2**20)
    )
    # 16 bits each: what the stem hands on, then read, added to in three ticks, and written.
    assert fair["shortcuts"] == pytest.approx(16 * 20 / 64 * (layer + layer + 3 * layer))
    neurons = 4 * layer + 64 + 5
    assert fair["membranes"] == pytest.approx(16 * 20 / 64 * 2 * (3 - 1) * neurons)
    spikes = 3 * (3 * layer + 64)  # bits written in three ticks; two layers write rates
    seen = 64 * spec.num_planes + 3 * (4 * layer + 64)  # the trunk's last spikes are read twice
    rates = 2 * (layer + 5)  # counts from 0 to 3 have two bits, and are written and read
    assert fair["activations"] == pytest.approx(20 / 64 * (spikes + seen + 2 * rates))
    assert fair["neurons"] == pytest.approx(
        4 * 0.1 * work.total("membrane_updates") / NUM_POSITIONS
    )
    int8 = estimates["int8"].fair
    assert int8["neurons"] == pytest.approx(4 * 0.1 * neurons)
    stem = work.synapses["stem"].merged_dense
    assert int8["multiply-accumulates"] == pytest.approx(
        0.3 * (work.total("merged_dense") - stem) / NUM_POSITIONS
    )


def test_layers_add_up(spec, positions):
    estimates, _ = estimates_of(spec, positions, ILIF)
    for each in estimates.values():
        for kind in ("convention", "fair", "chip"):
            layers = [sum(getattr(layer, kind).values()) for layer in each.layers.values()]
            assert sum(layers) == pytest.approx(sum(getattr(each, kind).values()))


def test_the_chip_prices_what_is_sent(spec, positions):
    estimates, work = estimates_of(spec, positions, ILIF)
    chip, updates = estimates["spiking"].chip, work.total("membrane_updates") / NUM_POSITIONS
    ticks = ILIF.virtual_ticks * work.total("num_neurons") / NUM_POSITIONS
    assert chip == pytest.approx({
        "synaptic operations": 23.6 * NUM_POSITIONS**-1 * (
            work.total("accumulates") + work.total("multiply_accumulates")
        ),
        "neurons": 81 * updates + 52 * (ticks - updates),
        "events": 1.7 * work.total("active") / NUM_POSITIONS,
    })


def test_changes_cost_what_differs(spec, positions):
    """Nothing where nothing changed, but weights and idle neurons; from rest, every event."""
    planes = positions[:NUM_POSITIONS].tensor()
    network = build_network(spec, ILIF, 0)
    work = count_work(network, planes)

    def changes(before):
        found = estimate_energy(spec, ILIF, work, count_work(network, planes, before))
        estimates = {each.name: each for each in found}
        return estimates["3-bit, changes"], estimates["3-bit, zeros skipped"]

    still, _ = changes(planes)
    neurons = work.total("num_neurons") / NUM_POSITIONS
    assert still.chip == pytest.approx(
        {"synaptic operations": 0, "neurons": 52 * neurons, "events": 0}
    )
    assert {term for term, energy in still.fair.items() if energy} == {"weights", "shortcuts"}
    rest, skipped = changes(torch.zeros_like(planes))
    for term in ("synaptic operations", "events"):
        assert rest.chip[term] == pytest.approx(skipped.chip[term])
    assert rest.convention == pytest.approx(skipped.convention)
