"""With any-tick training the losses are means over networks of 1, 2, ..., T ticks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from chess_snn.campaign import load_config
from chess_snn.errors import ConfigError
from chess_snn.games import get_game
from chess_snn.nets import build_network, net_config
from chess_snn.nets.layers import running_means
from chess_snn.rng import generator
from chess_snn.training import IterationPlan, Trainer, TrainingSettings
from chess_snn.training.batch import assemble
from chess_snn.training.gradients import LOSS_FIGURES, losses_of

TICKS = 3
SETTINGS = TrainingSettings(
    batch_size=32, warmup_steps=3, learning_rate=1e-2, precision="fp32", any_tick=True
)
AFTER_ALL = replace(SETTINGS, any_tick=False)


@pytest.fixture
def network(tiny_network):
    return tiny_network(ticks=TICKS)


@pytest.fixture(scope="module")
def batch(game, searched_window):
    samples = searched_window.sample(
        32, generator(3, "samples"), surprise_share=0.0, surprise_cap=2.0
    )
    return assemble(game, samples)


def test_running_means_by_hand():
    fired = torch.tensor([[[1.0], [0.0]], [[0.0], [0.0]], [[1.0], [1.0]]])
    assert running_means(fired)[:, 0].tolist() == pytest.approx([1, 0, 0.5, 0, 2 / 3, 1 / 3])


@pytest.mark.parametrize("policy_loss", ["search", "advantage"])
def test_losses_are_means_over_networks_of_fewer_ticks(network, batch, policy_loss):
    network.eval()
    settings = replace(SETTINGS, policy_loss=policy_loss)
    alone = replace(settings, any_tick=False)
    found = losses_of(network, batch, settings)
    parts = [losses_of(network.with_ticks(t), batch, alone) for t in range(1, TICKS + 1)]
    assert len({part.policy.item() for part in parts}) == TICKS
    for name in LOSS_FIGURES:
        mean = np.mean([getattr(part, name).item() for part in parts])
        assert getattr(found, name).item() == pytest.approx(mean, rel=1e-5, abs=1e-6), name


def test_gradients_are_means_too(network, batch):
    network.eval()
    losses_of(network, batch, SETTINGS).total.backward()
    found = {name: p.grad.clone() for name, p in network.named_parameters()}
    expected = {name: torch.zeros_like(p) for name, p in network.named_parameters()}
    for ticks in range(1, TICKS + 1):
        alone = network.with_ticks(ticks)
        losses_of(alone, batch, AFTER_ALL).total.backward()
        for name, parameter in alone.named_parameters():
            expected[name] += parameter.grad / TICKS
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-4, atol=1e-6, msg=name)


def test_a_stochastic_game_counts_its_decisions_at_every_tick():
    """Rows of nature have no policy; repeated, they are left out as often."""
    game = get_game("2048")
    states = game.initial_states(np.arange(4, dtype=np.uint64))
    legal_actions, num_legal = game.legal_actions(states)
    shape = net_config("tiny", blocks=1, channels=8, ticks=2)
    network = build_network(game.spec, shape, 0).eval()
    planes = torch.ones(4, game.spec.num_planes, *game.spec.board_shape)
    lists = torch.from_numpy(legal_actions), torch.from_numpy(num_legal)
    both = network.legal_output(
        planes, lists[0].repeat(2, 1), lists[1].repeat(2), running_means
    )
    for ticks in (1, 2):
        alone = network.with_ticks(ticks).legal_output(planes, *lists)
        rows = slice(4 * (ticks - 1), 4 * ticks)
        torch.testing.assert_close(both.legal_logits_BL[rows], alone.legal_logits_BL)
        torch.testing.assert_close(both.value_logits_BV[rows], alone.value_logits_BV)


def test_the_first_tick_learns(game, tiny_network, searched_window, batch):
    """After as many steps the network of one tick is better than one trained after all ticks."""
    losses = {}
    for name, settings in {"any": SETTINGS, "last": AFTER_ALL}.items():
        trainer = Trainer(game, tiny_network(ticks=4), settings, seed=7)
        report = trainer.run(searched_window, IterationPlan(60, 0.0, 1.0))
        assert report.skipped_steps == 0
        with torch.no_grad():
            one = losses_of(trainer.network.with_ticks(1), batch, AFTER_ALL)
        losses[name] = one.total.item()
    assert losses["any"] < losses["last"]


def test_networks_of_one_tick_refuse_it(game, tiny_network):
    with pytest.raises(ConfigError, match=r"set training\.any_tick = false"):
        Trainer(game, tiny_network(ticks=1), SETTINGS, seed=7)
    with pytest.raises(ConfigError, match=r"training\.any_tick is for networks of several ticks"):
        load_config(settings=["training.any_tick=true", "net.activation=ilif"])
    assert load_config(settings=["training.any_tick=true"]).training.any_tick
