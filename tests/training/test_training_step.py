"""A step's figures and batches; the captured step against the same kernels launched one by one."""

import math

import numpy as np
import pytest
import torch

from chess_snn.errors import TrainingDivergedError
from chess_snn.rng import generator
from chess_snn.training import IterationPlan
from chess_snn.training.batch import assemble
from chess_snn.training.gradients import losses_of
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
    samples = searched_window.sample(32, generator(0, "samples"), surprise_share=0.0,
                                     surprise_cap=2.0)
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
    assert not torch.equal(one.planes_BPHW, other.planes_BPHW)
    one.copy_from(other)
    assert one.words_BP.data_ptr() == memory
    assert torch.equal(one.planes_BPHW, other.planes_BPHW)
    assert torch.equal(one.targets.policy_BL, other.targets.policy_BL)
    assert torch.equal(one.targets.outcomes_stm_B, other.targets.outcomes_stm_B)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
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
    assert then == -(-first // 2)
    assert math.isfinite(report.policy_loss)
