"""Gradients by micro-batches: the mean of theirs, whoever computes them."""

import numpy as np
import pytest
import torch

from chess_snn.training import IterationPlan
from chess_snn.training.batch import assemble
from chess_snn.training.gradients import LOSS_FIGURES, Gradients, LossScale, losses_of


@pytest.fixture
def batch(new_trainer, searched_window):
    return assemble(new_trainer().game, searched_window.gather(np.arange(0, 600, 20)))


def gradients_of(network):
    return [parameter.grad.clone() for parameter in network.parameters()]


def statistics_of(network):
    return [b.clone() for b in network.buffers() if b.is_floating_point()]


def test_a_batch_in_one_part_is_the_plain_gradient(new_trainer, batch):
    ours = new_trainer(precision="fp32", micro_batch=64)
    plain = new_trainer(precision="fp32")
    figures = ours._step.gradients.compute(batch)
    losses = losses_of(plain.network, batch, plain.settings)
    losses.total.backward()
    assert figures.tolist() == [getattr(losses, name).item() for name in LOSS_FIGURES]
    for one, other in zip(gradients_of(ours.network), gradients_of(plain.network), strict=True):
        assert torch.equal(one, other)


def test_parts_of_unlike_size_count_by_their_size(new_trainer, batch):
    """30 positions in parts of 12, 12 and 6, beside a network of its own for each part."""
    ours = new_trainer(precision="fp32", micro_batch=12)
    figures = ours._step.gradients.compute(batch)
    expected_gradients, expected_statistics, expected_figures = None, None, 0
    for part, share in zip(batch.split(12), (0.4, 0.4, 0.2), strict=True):
        alone = new_trainer(precision="fp32")
        losses = losses_of(alone.network, part, alone.settings)
        losses.total.backward()
        found = [gradients_of(alone.network), statistics_of(alone.network)]
        found = [[share * tensor for tensor in tensors] for tensors in found]
        if expected_gradients is None:
            expected_gradients, expected_statistics = found
        else:
            expected_gradients = [a + b for a, b in zip(expected_gradients, found[0], strict=True)]
            expected_statistics = [
                a + b for a, b in zip(expected_statistics, found[1], strict=True)
            ]
        expected_figures += share * np.array([getattr(losses, name).item()
                                              for name in LOSS_FIGURES])
    np.testing.assert_allclose(figures, expected_figures, rtol=1e-5)
    torch.testing.assert_close(gradients_of(ours.network), expected_gradients)
    torch.testing.assert_close(statistics_of(ours.network), expected_statistics)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_any_number_of_threads_gives_the_same_bits(
    new_trainer, searched_window, assert_same_trainers, precision
):
    before = torch.get_num_threads()
    trainers = []
    try:
        for num_threads in (1, 2, 3):
            # torch's own threads, which are to change nothing, are one each in the pool.
            torch.set_num_threads(num_threads)
            trainer = new_trainer(precision=precision, batch_size=48, micro_batch=16)
            trainer.run(searched_window, IterationPlan(4, 0.0, 1.0))
            trainers.append(trainer)
    finally:
        torch.set_num_threads(before)
    assert_same_trainers(trainers[0], trainers[1])
    assert_same_trainers(trainers[0], trainers[2])


def test_copies_have_the_parameters_of_the_network_at_every_step(new_trainer, searched_window):
    trainer = new_trainer(batch_size=48, micro_batch=16)
    trainer.run(searched_window, IterationPlan(3, 0.0, 1.0))
    for duplicate in trainer._step.gradients._copies:
        for ours, theirs in zip(duplicate.parameters(), trainer.network.parameters(), strict=True):
            assert ours.data_ptr() == theirs.data_ptr()


def test_threads_end_with_the_block(new_trainer):
    gradients = Gradients(
        new_trainer().network, new_trainer(micro_batch=8).settings, LossScale("fp32", "cpu")
    )
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with gradients:
            assert gradients._threads is not None
        assert gradients._threads is None
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
