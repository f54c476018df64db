"""A step's figures and batches; the captured step against the same kernels launched one by one."""

import math

import numpy as np
import pytest
import torch

from chess_snn.errors import TrainingDivergedError
from chess_snn.rng import generator
from chess_snn.training import IterationPlan, StepLines, thin
from chess_snn.training.batch import assemble
from chess_snn.training.gradients import LOSS_FIGURES, Gradients, losses_of
from chess_snn.training.report import FigureLog
from chess_snn.training.step import FIGURES, TrainingStep


def figures(total):
    return torch.full((len(FIGURES),), 1.0).index_fill(0, torch.tensor(0), total)


def test_figures_are_fetched_every_so_many_steps_and_at_the_end():
    log = FigureLog(first_step=0, every=3, skip_limit=0)
    counts = []
    for total in range(7):
        log.add(figures(total))
        counts.append(len(log.steps))
    assert counts == [0, 0, 3, 3, 3, 6, 6]
    log.fetch()
    log.fetch()
    assert [step["total"] for step in log.steps] == list(range(7))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_the_step_that_diverged_is_named_however_late_it_is_seen(bad):
    log = FigureLog(first_step=40, every=4, skip_limit=0)
    for total in (1.0, 2.0, bad):
        log.add(figures(total))
    with pytest.raises(TrainingDivergedError, match="42"):
        log.add(figures(3.0))


def test_a_batch_of_every_column_says_the_same(new_trainer, searched_window):
    trainer = new_trainer(precision="fp32")
    samples = searched_window.sample(32, generator(0, "samples"), surprise_share=0.0)
    narrow, wide = (assemble(trainer.game, samples, all_columns) for all_columns in (False, True))
    assert wide.targets.policy_BL.shape == (32, trainer.game.spec.max_legal)
    assert narrow.targets.policy_BL.shape[1] == int(narrow.targets.num_legal_B.max())
    ours, expected = (
        losses_of(trainer.network, batch, trainer.settings) for batch in (wide, narrow)
    )
    torch.testing.assert_close(ours.total, expected.total)


def test_a_batch_takes_the_numbers_of_another(new_trainer, searched_window):
    game = new_trainer().game
    rows = [searched_window.gather(np.arange(lo, lo + 8)) for lo in (0, 100)]
    one, other = (assemble(game, samples, all_columns=True) for samples in rows)
    memory = one.words_BP.data_ptr()
    assert not torch.equal(one.words_BP, other.words_BP)
    one.copy_from(other)
    assert one.words_BP.data_ptr() == memory
    assert torch.equal(one.words_BP, other.words_BP)
    assert torch.equal(one.targets.policy_BL, other.targets.policy_BL)
    assert torch.equal(one.targets.outcomes_stm_B, other.targets.outcomes_stm_B)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_captured_steps_learn_what_eager_ones_learn(new_trainer, searched_window, precision):
    reports = []
    for captured in (True, False):
        trainer = new_trainer(precision=precision, device="cuda", captured=captured)
        reports.append(trainer.run(searched_window, IterationPlan(40, 0.0, 1.0)))
    one, other = reports
    assert one.value_loss == pytest.approx(other.value_loss, rel=0.02)
    assert one.policy_loss == pytest.approx(other.policy_loss, rel=0.02)
    assert one.learning_rate == other.learning_rate


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_memory_that_runs_out_in_the_capture_ends_the_training_bug(
    new_trainer, searched_window, monkeypatch
):
    share_of, faults = TrainingStep.share_of, iter([True])

    def short_of_memory(step, batch):
        if torch.cuda.is_current_stream_capturing() and next(faults, False):
            raise torch.OutOfMemoryError("no room for the graph")
        return share_of(step, batch)

    monkeypatch.setattr(TrainingStep, "share_of", short_of_memory)
    trainer = new_trainer(precision="fp32", device="cuda", captured=True)
    report = trainer.run(searched_window, IterationPlan(12, 0.0, 1.0))
    first, then = (use.micro_batch for use in report.micro_batches)
    assert then == -(-min(first, trainer.settings.batch_size) // 2)
    assert math.isfinite(report.policy_loss)


# Loss curves by optimiser step: at most 100 points, means over all steps, whoever listens.


def steps(count, first=1):
    return [
        dict.fromkeys(FIGURES, float(step)) | {"step": first + step, "learning_rate": 0.01 * step}
        for step in range(count)
    ]


@pytest.mark.parametrize(("count", "points"), [(0, 0), (1, 1), (100, 100), (101, 51), (1234, 95)])
def test_a_curve_has_at_most_100_points_and_ends_with_the_last_step(count, points):
    curve = thin(steps(count))
    assert len(curve) == points
    assert [point["step"] for point in curve] == sorted({point["step"] for point in curve})
    assert not curve or curve[-1]["step"] == count


def test_a_point_is_the_mean_over_its_steps_in_6_digits():
    curve = thin(steps(300, first=41))
    assert [point["step"] for point in curve[:2]] == [43, 46]
    assert curve[1]["total"] == curve[1]["policy"] == 4.0
    assert curve[1]["learning_rate"] == 0.04
    third = [{**steps(1)[0], "total": 1.0}, {**steps(1)[0], "total": 0.0}] * 100
    assert thin([*third, steps(1)[0]])[0]["total"] == 0.666667


def test_training_reports_its_curve_and_each_step_to_the_listener(new_trainer, searched_window):
    trainer, heard = new_trainer(), []
    trainer.steps_done = 10
    report = trainer.run(searched_window, IterationPlan(5, 0.0, 1.0), on_step=heard.append)
    assert [point["step"] for point in report.step_losses] == [11, 12, 13, 14, 15]
    assert [step["step"] for step in heard] == [11, 12, 13, 14, 15]
    assert report.step_losses[2]["policy"] == pytest.approx(heard[2]["policy"], rel=1e-5)
    assert heard[0]["learning_rate"] > heard[-1]["learning_rate"] == report.learning_rate
    mean = sum(step["total"] for step in heard) / 5
    assert report.total_loss == pytest.approx(mean)
    weighted = report.policy_loss + report.value_loss + 0.1 * report.plies_left_loss
    assert report.total_loss == pytest.approx(weighted, rel=1e-5)


# The lines that training prints: steps, mean losses and pace, about once a second.


def step_figures(total):
    return {"total": total, "policy": total - 1, "value": 0.5}


def test_lines_are_thinned_and_tell_the_mean_since_the_line_before(monkeypatch):
    now_s, said = [0.0], []
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    lines = StepLines(said.append, batch_size=32)
    for step in range(1, 8):
        lines.on_step(step_figures(float(step)))
        lines.on_progress(step, 7)
        now_s[0] += 0.4
    assert said == [
        "step 1/7  loss 1.00 (policy 0.00, value 0.50)",
        "step 4/7  loss 3.00 (policy 2.00, value 0.50)  80 samples/s",
        "step 7/7  loss 6.00 (policy 5.00, value 0.50)  80 samples/s",
    ]


def test_steps_whose_losses_have_not_come_from_the_device_yet_are_counted():
    said = []
    StepLines(said.append, batch_size=32).on_progress(3, 9)
    assert said == ["step 3/9"]


# Gradients by micro-batches: the mean of theirs, whoever computes them.


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
    settings = {"precision": "fp32", "spike_rate_weight": 0.25}
    ours = new_trainer(micro_batch=12, **settings)
    figures = ours._step.gradients.compute(batch)
    found = []
    for part in batch.split(12):
        alone = new_trainer(**settings)
        losses = losses_of(alone.network, part, alone.settings)
        losses.total.backward()
        found.append([
            *gradients_of(alone.network), *statistics_of(alone.network),
            *(getattr(losses, name).detach() for name in LOSS_FIGURES),
        ])
    assert losses.spike_rate > 0
    torch.testing.assert_close(
        [*gradients_of(ours.network), *statistics_of(ours.network), *figures],
        [0.4 * a + 0.4 * b + 0.2 * c for a, b, c in zip(*found, strict=True)],
    )


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
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
    for member in trainer._step.gradients._members:
        for ours, theirs in zip(member.parameters, trainer.network.parameters(), strict=True):
            assert ours.data_ptr() == theirs.data_ptr()


def test_threads_end_with_the_block(new_trainer):
    gradients = Gradients(new_trainer().network, new_trainer(micro_batch=8).settings)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with gradients:
            assert gradients._threads is not None
        assert gradients._threads is None
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
