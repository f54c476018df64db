"""The spike-rate penalty is the rate that counting finds, and training lowers it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from chess_snn.errors import ConfigError
from chess_snn.nets import Network, count_spikes, measuring_spike_rate
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
    currents = []
    handle = network.value.neurons2.register_forward_hook(
        lambda _layer, inputs, _outputs: currents.append(inputs[0])
    )
    losses_of(network, batch, SETTINGS).spike_rate.backward()
    handle.remove()
    config = network.config
    inside = (currents[0] >= 0) & (currents[0] <= config.threshold * config.levels)
    counts = count_spikes(network, batch.planes(network.num_planes))
    chances = sum(layer.chances for layer in counts.layers.values())
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


def test_without_a_penalty_nothing_is_measured(game, tiny_network, searched_window, monkeypatch):
    def never(network: Network):
        raise AssertionError("measured")

    monkeypatch.setattr("chess_snn.training.gradients.measuring_spike_rate", never)
    report, _ = trained(game, tiny_network(), searched_window, spike_rate_weight=0.0)
    assert report.steps == 40
    with pytest.raises(AssertionError, match="measured"):
        trained(game, tiny_network(), searched_window)


def test_micro_batches_count_by_their_size(new_trainer, batch):
    parts = [batch.split(20)[0], batch.split(20)[1]]
    trainer = new_trainer(precision="fp32", micro_batch=20, spike_rate_weight=WEIGHT)
    figures = trainer._step.gradients.compute(batch)
    rates = [
        losses_of(new_trainer().network, part, trainer.settings).spike_rate.item()
        for part in parts
    ]
    found = figures[LOSS_FIGURES.index("spike_rate")].item()
    assert found == pytest.approx(np.average(rates, weights=[20, 12]))


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
