"""The running average of the weights: its definition, and that it survives a stop."""

import pytest
import torch

from chess_snn.nets import load_network, network_digest
from chess_snn.training import WEIGHTS, IterationPlan, load_trainer, save_checkpoint

PLAN = IterationPlan(num_steps=6, progress_first=0.0, progress_last=0.5)
DECAY = 0.7


def copies(network):
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def assert_same_state(one, other):
    for (name, ours), theirs in zip(one.items(), other.values(), strict=True):
        assert torch.equal(ours, theirs), name


def test_the_average_is_the_recursion_over_all_steps(new_trainer, window):
    trainer = new_trainer(average_decay=DECAY)
    expected, decays = copies(trainer.network), []
    for step in range(1, PLAN.num_steps + 1):
        trainer.run(window, PLAN, stop_at=step)
        # The first steps count for more: a tenth of those taken is remembered.
        decay = min(DECAY, step / (step + 10))
        decays.append(decay)
        for name, newest in trainer.network.state_dict().items():
            if newest.is_floating_point():
                expected[name] = decay * expected[name] + (1 - decay) * newest
            else:
                expected[name] = newest.clone()
    assert decays[0] == pytest.approx(1 / 11)
    for name, tensor in trainer.playing_network.state_dict().items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-5, atol=1e-6)
    assert network_digest(trainer.playing_network) != network_digest(trainer.network)


def test_the_decay_has_its_value_after_the_first_steps(new_trainer, window):
    trainer = new_trainer(average_decay=DECAY)
    trainer.steps_done = 1000
    before = copies(trainer.playing_network)
    trainer.run(window, PLAN, stop_at=1)
    for name, newest in trainer.network.state_dict().items():
        if newest.is_floating_point():
            expected = DECAY * before[name] + (1 - DECAY) * newest
            torch.testing.assert_close(trainer.average.state_dict()[name], expected)


def test_an_average_does_not_change_what_is_trained(new_trainer, window):
    with_average, without = new_trainer(average_decay=DECAY), new_trainer()
    for trainer in (with_average, without):
        trainer.run(window, PLAN)
    assert_same_state(copies(with_average.network), copies(without.network))
    assert without.playing_network is without.network


def test_resumed_training_has_the_average_of_training_that_never_stopped(
    new_trainer, window, game, tmp_path, assert_same_trainers
):
    whole = new_trainer(average_decay=DECAY)
    whole.run(window, PLAN)
    stopped = new_trainer(average_decay=DECAY)
    stopped.run(window, PLAN, stop_at=2)
    save_checkpoint(tmp_path / "gen", stopped, {})
    stored = load_network(tmp_path / "gen" / WEIGHTS)
    assert_same_state(copies(stored), copies(stopped.average))

    resumed = load_trainer(tmp_path / "gen", game)
    assert_same_trainers(resumed, stopped)
    resumed.run(window, PLAN)
    assert_same_trainers(resumed, whole)
    assert_same_state(copies(resumed.average), copies(whole.average))


def test_an_average_that_begins_later_begins_at_the_weights(new_trainer, window, game, tmp_path):
    before = new_trainer()
    before.run(window, PLAN)
    save_checkpoint(tmp_path / "gen", before, {})
    settings = new_trainer(average_decay=DECAY).settings
    later = load_trainer(tmp_path / "gen", game, settings=settings)
    assert_same_state(copies(later.average), copies(before.network))
