"""Penalties on spikes and on changes are the rates that counting finds; training lowers them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from chess_snn.errors import ConfigError
from chess_snn.nets import changes_of_pairs, count_spikes, measuring_spike_rate
from chess_snn.nets.model.layers import Neurons
from chess_snn.rng import generator
from chess_snn.training import IterationPlan, Trainer, TrainingSettings
from chess_snn.training.batch import assemble
from chess_snn.training.gradients import LOSS_FIGURES, losses_of

SHAPES = {
    "lif": {"ticks": 3},
    "ilif": {"activation": "ilif", "ticks": 1, "levels": 3},
}
WEIGHT = 0.25
SETTINGS = TrainingSettings(
    batch_size=32, warmup_steps=3, learning_rate=1e-2, precision="fp32", spike_rate_weight=WEIGHT
)


PAIRED = replace(SETTINGS, spike_rate_weight=0.0, change_rate_weight=WEIGHT)


@pytest.fixture(params=SHAPES)
def network(request, tiny_network):
    return tiny_network(**SHAPES[request.param])


@pytest.fixture(scope="module")
def batch(game, searched_window):
    samples = searched_window.sample(
        32, generator(3, "samples"), surprise_share=0.0
    )
    return assemble(game, samples)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_penalty_is_the_counted_rate(network, batch, precision):
    network.eval()
    settings = replace(SETTINGS, precision=precision)
    losses = losses_of(network, batch, settings)
    free = losses_of(network, batch, replace(settings, spike_rate_weight=0.0))
    counted = count_spikes(network, batch.planes(network.num_planes)).rate
    # Currents rounded to bfloat16 let some spikes fall otherwise.
    assert losses.spike_rate.item() == pytest.approx(counted, rel=1e-6 if precision == "fp32"
                                                     else 0.02)
    assert 0.01 < counted < 0.9
    assert (losses.total - free.total).item() == pytest.approx(
        WEIGHT * losses.spike_rate.item(), rel=1e-4
    )
    assert free.spike_rate.item() == 0
    for name in set(LOSS_FIGURES) - {"total", "spike_rate"}:
        assert torch.equal(getattr(losses, name), getattr(free, name)), name


def test_the_gradient_reaches_all_weights_before_neurons(network, batch):
    network.train()
    losses_of(network, batch, SETTINGS).spike_rate.backward()
    for name, parameter in network.named_parameters():
        if "readout" in name:
            assert parameter.grad is None, name
        else:
            assert parameter.grad.abs().max() > 0, name


def test_integer_neurons_have_the_gradient_of_their_rectangle(tiny_network, batch):
    """d rate / d current is 1 / (threshold levels) a neuron inside the rectangle, seen at the bias
    of the last hidden layer, behind which no other neuron stands."""
    network = tiny_network(**SHAPES["ilif"]).eval()
    losses_of(network, batch, SETTINGS).spike_rate.backward()
    seen, config = spikes_by_layer(network, batch.planes(network.num_planes)), network.config
    _, currents = seen["value.neurons2"]
    inside = (currents >= 0) & (currents <= config.threshold * config.levels)
    chances = config.levels * sum(spikes.numel() for spikes, _ in seen.values())
    expected = inside.sum((0, 1)) / config.threshold / chances
    torch.testing.assert_close(network.value.hidden.bias.grad, expected)


def trained(game, network, window, **settings):
    trainer = Trainer(game, network, replace(SETTINGS, **settings), seed=7)
    report = trainer.run(window, IterationPlan(40, 0.0, 1.0))
    return report, trainer.count_spikes(window).rate


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_strong_penalty_lowers_the_rate(game, tiny_network, searched_window, shape):
    free, free_rate = trained(
        game, tiny_network(**SHAPES[shape]), searched_window, spike_rate_weight=0.0
    )
    paid, paid_rate = trained(
        game, tiny_network(**SHAPES[shape]), searched_window, spike_rate_weight=30.0
    )
    assert paid_rate < 0.7 * free_rate
    assert free.spike_rate is None
    assert 0 < paid.spike_rate < 1


def test_without_a_penalty_nothing_is_measured(tiny_network, batch, monkeypatch):
    def never(*_arguments):
        raise AssertionError("measured")

    monkeypatch.setattr("chess_snn.training.gradients.measuring_spike_rate", never)
    network = tiny_network()
    losses_of(network, batch, replace(SETTINGS, spike_rate_weight=0.0))
    with pytest.raises(AssertionError, match="measured"):
        losses_of(network, batch, SETTINGS)


def test_listening_ends_with_the_block(network, batch):
    planes = batch.planes(network.num_planes)
    network.train()
    with measuring_spike_rate(network) as rate:
        network(planes)
    assert network.training
    assert 0 < rate().item() < 1
    assert all(not module._forward_hooks for module in network.modules())


def test_a_baseline_has_no_spikes_to_pay_for(game, tiny_network):
    with pytest.raises(ConfigError, match=r"set training\.spike_rate_weight = 0"):
        Trainer(game, tiny_network(activation="relu", ticks=1), SETTINGS, seed=7)


def spikes_by_layer(network, planes):
    """The spikes of each layer, and the currents they come from."""
    seen = {}
    handles = [
        layer.register_forward_hook(
            lambda _layer, inputs, outputs, name=name: seen.update({name: (outputs, inputs[0])})
        )
        for name, layer in network.named_modules() if isinstance(layer, Neurons)
    ]
    network(planes)
    for handle in handles:
        handle.remove()
    return seen


def test_the_penalty_on_changes_is_the_difference_within_pairs(network, batch):
    network.eval()
    losses = losses_of(network, batch, PAIRED)
    planes = batch.planes(network.num_planes)
    firsts, seconds = (spikes_by_layer(network, planes[place::2]) for place in (0, 1))
    changed = sum((firsts[name][0] - seconds[name][0]).abs().sum().item() for name in firsts)
    chances = network.config.most_spikes * sum(each.numel() for each, _ in firsts.values())
    assert losses.change_rate.item() == pytest.approx(changed / chances, rel=1e-5)
    assert 0.01 < losses.change_rate.item() < 0.9
    free = losses_of(network, batch, replace(PAIRED, change_rate_weight=0.0))
    assert (losses.total - free.total).item() == pytest.approx(
        WEIGHT * losses.change_rate.item(), rel=1e-4
    )
    assert free.change_rate.item() == 0


def test_its_gradient_is_that_of_the_smooth_surrogate(tiny_network, batch):
    """By finite differences of currents / threshold within [0, levels], with the signs of the
    changes; seen at the bias of the last hidden layer, behind which no other neuron stands."""
    network, step = tiny_network(**SHAPES["ilif"]).eval(), 1e-3
    losses_of(network, batch, PAIRED).change_rate.backward()
    seen = spikes_by_layer(network, batch.planes(network.num_planes))
    spikes, currents = seen["value.neurons2"]
    pairs = (spikes[0, ::2] - spikes[0, 1::2]).sign()
    signs = torch.stack([pairs, -pairs], dim=1).flatten(0, 1).double()
    config = network.config

    def smooth(moved):
        within = (currents[0].double() + moved) / config.threshold
        return (signs * within.clamp(0, config.levels)).sum(0)

    chances = config.levels * sum(each.numel() // 2 for each, _ in seen.values())
    expected = (smooth(step) - smooth(-step)) / (2 * step) / chances
    torch.testing.assert_close(
        network.value.hidden.bias.grad.double(), expected, rtol=1e-3, atol=1e-7
    )


def test_half_of_a_batch_are_neighbours_of_the_other_half(game, tiny_network, searched_window):
    trainer = Trainer(game, tiny_network(), PAIRED, seed=7)
    draw = trainer._draw(searched_window)
    assert len(draw.rows) == PAIRED.batch_size
    firsts, seconds = draw.rows[::2], draw.rows[1::2]
    offsets = searched_window.records.game_offsets
    games = [np.searchsorted(offsets, rows, side="right") for rows in (firsts, seconds)]
    assert (games[0] == games[1]).all()
    lengths = np.diff(offsets)[games[0] - 1]
    assert (np.abs(firsts - seconds) == np.where(lengths > 2, 2, 0)).mean() > 0.9
    assert set(np.abs(firsts - seconds)) <= {0, 2}
    assert (draw.symmetries[::2] == draw.symmetries[1::2]).all()


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_strong_penalty_lowers_changes(game, tiny_network, searched_window, shape):
    rates = []
    for weight in (0.0, 30.0):
        network = tiny_network(**SHAPES[shape])
        trainer = Trainer(game, network, replace(PAIRED, change_rate_weight=weight), seed=7)
        report = trainer.run(searched_window, IterationPlan(40, 0.0, 1.0))
        assert (report.change_rate is None) is (weight == 0)
        rows = searched_window.rows("training")[:200]
        pairs = np.stack([rows, searched_window.neighbours(rows)], axis=1).ravel()
        pairs_batch = assemble(game, searched_window.gather(pairs))
        with torch.no_grad(), measuring_spike_rate(network.eval(), changes_of_pairs) as rate:
            network(pairs_batch.planes(network.num_planes))
        rates.append(rate().item())
    assert rates[1] < 0.7 * rates[0]


@pytest.mark.parametrize("name", ["batch_size", "micro_batch"])
def test_pairs_need_even_numbers(name):
    with pytest.raises(ConfigError, match=name):
        replace(PAIRED, **{name: 31})
