"""The optimiser loop on games that were really played."""

import math

import numpy as np
import pytest
import torch

from chess_snn.data import ReplayWindow
from chess_snn.errors import TrainingDivergedError
from chess_snn.games import ONGOING
from chess_snn.nets import expand_planes, load_network, network_digest
from chess_snn.rng import generator
from chess_snn.training import (
    WEIGHTS,
    IterationPlan,
    load_trainer,
    measure_holdout,
    save_checkpoint,
)
from chess_snn.training.batch import assemble, transform
from chess_snn.training.gradients import losses_of
from chess_snn.training.schedule import learning_rate
from chess_snn.training.step import CLIP_NORM


def plan(num_steps, iteration=0, num_iterations=4):
    first, last = iteration / num_iterations, (iteration + 1) / num_iterations
    return IterationPlan(num_steps, first, last)


@pytest.mark.parametrize("precision", ["fp32", pytest.param("bf16", marks=pytest.mark.slow)])
def test_one_small_window_can_be_overfitted(new_trainer, endgames, precision):
    trainer = new_trainer(precision=precision, learning_rate=2e-2, root_value_share=0.0)
    first = trainer.run(endgames, plan(140, num_iterations=1), stop_at=10)
    trainer.run(endgames, plan(140, num_iterations=1), stop_at=130)
    last = trainer.run(endgames, plan(140, num_iterations=1))
    assert last.value_loss < 0.5 * first.value_loss
    assert last.policy_loss < 0.7 * first.policy_loss
    assert last.plies_left_loss < 0.2 * first.plies_left_loss


def test_run_in_parts_equals_run_at_once(new_trainer, searched_window, assert_same_trainers):
    window = searched_window
    whole, parts = new_trainer(), new_trainer()
    whole.run(window, plan(7))
    for stop in (2, 3, 7):
        parts.run(window, plan(7), stop_at=stop)
        measure_holdout(parts, window)  # looking must not touch what is looked at
    assert_same_trainers(parts, whole)


def test_every_iteration_has_its_own_stream_of_samples(new_trainer):
    trainer = new_trainer(seed=7)

    def draws():
        return trainer.rng.integers(2**63, size=8).tolist()

    streams = []
    for iteration in (0, 1, 2):
        trainer.begin_iteration(iteration)
        streams.append(draws())
        assert streams[-1] == generator(7, "samples", iteration).integers(2**63, size=8).tolist()
    trainer.begin_iteration(1)
    assert draws() == streams[1]
    assert len({tuple(stream) for stream in streams}) == 3
    other = new_trainer(seed=8)
    assert other.rng.integers(2**63, size=8).tolist() != streams[0]


def test_an_iteration_starts_at_its_first_step_and_counts_on(new_trainer, window):
    trainer = new_trainer()
    trainer.run(window, plan(3))
    assert (trainer.step_in_iteration, trainer.steps_done) == (3, 3)
    trainer.begin_iteration(1)
    assert (trainer.step_in_iteration, trainer.steps_done) == (0, 3)
    trainer.run(window, plan(2, iteration=1))
    assert (trainer.step_in_iteration, trainer.steps_done) == (2, 5)


def test_report_is_what_the_steps_did(new_trainer, searched_window):
    """A duplicate takes the same steps by hand: torch's own AdamW, on the same samples."""
    window = searched_window
    trainer, duplicate = new_trainer(precision="fp32"), new_trainer(precision="fp32")
    told = []
    report = trainer.run(window, plan(4), on_progress=lambda *done: told.append(done))

    duplicate.network.train()
    optimizer = torch.optim.AdamW([
        {"params": [p for p in duplicate.network.parameters() if p.ndim > 1]},
        {"params": [p for p in duplicate.network.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ], weight_decay=duplicate.settings.weight_decay, fused=True)
    rng, steps = generator(7, "samples", 0), []
    for step in range(4):
        rate = learning_rate(duplicate.settings, step, plan(4).progress(step))
        samples = window.sample(32, rng, surprise_share=0.7)
        samples = transform(duplicate.game, samples, (rng.random(32) < 0.5).astype(np.uint8))
        losses = losses_of(duplicate.network, assemble(duplicate.game, samples), duplicate.settings)
        optimizer.zero_grad()
        losses.total.backward()
        norm = torch.nn.utils.clip_grad_norm_(duplicate.network.parameters(), CLIP_NORM)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        figures = (losses.value, losses.policy, losses.plies_left, losses.entropy,
                   losses.target_entropy, losses.value_mean_abs, losses.value_error, norm)
        steps.append([figure.item() for figure in figures])

    for one, other in zip(
        trainer.network.parameters(), duplicate.network.parameters(), strict=True
    ):
        assert torch.equal(one, other)
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert (report.steps, report.samples) == (4, 128)
    assert report.learning_rate == rate
    means = [report.value_loss, report.policy_loss, report.plies_left_loss, report.policy_entropy,
             report.target_entropy, report.value_mean_abs, report.value_error, report.gradient_norm]
    assert min(means) > 0
    assert means == pytest.approx(np.mean(steps, axis=0).tolist())
    assert report.samples_per_s == pytest.approx(128 / report.seconds)


def test_norms_and_biases_do_not_decay(new_trainer):
    trainer = new_trainer(weight_decay=0.25)
    decay_of = {id(parameter): group["weight_decay"]
                for group in trainer.optimizer.param_groups for parameter in group["params"]}
    decays = {name: decay_of[id(parameter)]
              for name, parameter in trainer.network.named_parameters()}
    for name, decay in decays.items():
        is_plain = ".norm." in name or name.endswith("bias")
        assert decay == (0.0 if is_plain else 0.25), name
    assert set(decays.values()) == {0.0, 0.25}


def test_gradient_is_clipped(new_trainer, window, monkeypatch):
    """AdamW's first moment after one step is a tenth of the gradient that it was given."""
    monkeypatch.setattr("chess_snn.training.step.CLIP_NORM", 1e-3)
    trainer = new_trainer(precision="fp32")
    report = trainer.run(window, plan(1))
    assert report.gradient_norm > 1e-2
    moments = [state["exp_avg"].norm() for state in trainer.optimizer.state.values()]
    assert torch.stack(moments).norm().item() == pytest.approx(1e-4, rel=1e-3)


class PoisonedWindow(ReplayWindow):
    """The same games; in some batches one number is spoilt of what a sample says."""

    column = "outcomes_stm"
    bad = math.nan
    batches = range(10**9)
    """Which batches, counted from 0."""
    num_gathered = 0

    def gather(self, rows):
        samples = super().gather(rows)
        if self.num_gathered in self.batches:
            getattr(samples, self.column)[5] = self.bad
        self.num_gathered += 1
        return samples


@pytest.fixture
def poisoned(game, shard):
    """Makes a window that is poisoned."""

    def make(**what):
        window = PoisonedWindow.load(game, [shard], capacity=100_000)
        for name, value in what.items():
            setattr(window, name, value)
        return window

    return make


POISONS = pytest.mark.parametrize(("column", "bad"), [
    ("target_weights", math.nan), ("outcomes_stm", math.inf),
])


@pytest.mark.fault(15)
@POISONS
@pytest.mark.parametrize("device", [
    "cpu",
    pytest.param("cuda", marks=[
        pytest.mark.gpu,
        pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    ]),
])
def test_a_poisoned_target_stops_training_before_it_does_harm(
    new_trainer, shard, game, state_of, poisoned, column, bad, device
):
    """On a GPU in a graph, which is captured in the fourth step."""
    clean = ReplayWindow.load(game, [shard], capacity=100_000)
    trainer = new_trainer(skip_limit=2, device=device)
    trainer.run(clean, plan(9), stop_at=5)
    before = state_of(trainer)
    with pytest.raises(TrainingDivergedError, match="step 7 "):
        trainer.run(poisoned(column=column, bad=bad), plan(9))
    for name, tensor in state_of(trainer).items():
        assert torch.equal(tensor, before[name]), name


@pytest.mark.fault(15)
@POISONS
def test_a_step_that_is_not_finite_is_skipped_and_counted(
    new_trainer, state_of, poisoned, column, bad
):
    """All that is learnt is what the steps around it taught."""
    trainer = new_trainer(skip_limit=1)
    report = trainer.run(poisoned(column=column, bad=bad, batches=(1, 3)), plan(6))
    assert (report.steps, report.skipped_steps, trainer.steps_done) == (4, 2, 6)
    assert math.isfinite(report.value_loss)
    assert all(tensor.isfinite().all() for tensor in state_of(trainer).values())


def test_a_skipped_step_changes_nothing(new_trainer, state_of, poisoned, shard, game):
    trainer, duplicate = new_trainer(), new_trainer()
    trainer.run(poisoned(batches=(2,)), plan(6), stop_at=3)
    duplicate.run(ReplayWindow.load(game, [shard], capacity=100_000), plan(6), stop_at=2)
    expected = state_of(duplicate)
    for name, tensor in state_of(trainer).items():
        assert torch.equal(tensor, expected[name]), name


def test_a_gradient_that_is_not_finite_is_divergence_where_the_loss_is(
    new_trainer, searched_window
):
    trainer = new_trainer(skip_limit=1)
    next(trainer.network.parameters()).register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(TrainingDivergedError, match=r"step 1 .*loss \d.*norm (nan|inf).* 1 "):
        trainer.run(searched_window, plan(9))


def test_an_iteration_of_skipped_steps_alone_is_given_up(new_trainer, poisoned):
    with pytest.raises(TrainingDivergedError, match="3 "):
        new_trainer(skip_limit=5).run(poisoned(), plan(3))


def test_without_surprises_the_stream_of_samples_has_no_draws_for_them(
    new_trainer, searched_window
):
    """An ablation must not change what it does not switch."""
    trainer, rng = new_trainer(surprise_share=0.0), generator(7, "samples", 0)
    trainer.run(searched_window, plan(2))
    for _ in range(2):
        samples = searched_window.sample(32, rng)
        rng.random(len(samples))  # views
    assert trainer.rng.bit_generator.state == rng.bit_generator.state


def test_about_half_the_samples_are_mirrored(new_trainer, searched_window, game):
    """A sample counts if its mirror image is another position."""
    trainer = new_trainer(batch_size=2000)
    draw = trainer._draw(searched_window)
    samples = searched_window.gather(draw.rows)
    states = samples.states
    seen = trainer._prepare(searched_window, draw).batch.words_BP.numpy()
    changed = (seen != assemble(game, samples).words_BP.numpy()).any(axis=1)
    everywhere, _ = game.transform(
        states, np.zeros((2000, 1), np.int16), np.ones(2000, np.uint8)
    )
    possible = (game.planes(everywhere) != game.planes(states)).any(axis=1)
    assert possible.sum() > 300
    assert not changed[~possible].any()
    share = changed[possible].mean()
    assert abs(share - 0.5) < 5 * 0.5 / math.sqrt(possible.sum())


@pytest.mark.slow
def test_held_out_value_loss_by_hand(new_trainer, searched_window, game, monkeypatch):
    window = searched_window  # its discount must not matter
    trainer = new_trainer()
    trainer.run(window, plan(5))
    total, rows = 0.0, window.rows("holdout")
    network = trainer.network.eval()
    for row in rows:
        played_in = np.searchsorted(window.records.game_offsets, row, side="right") - 1
        is_cut = window.records.terminations[played_in] == ONGOING
        column = window.records.cut_values_white if is_cut else window.records.outcomes_white
        white = float(column[played_in])
        state = window.records.states[row : row + 1]
        result = white if game.side_to_move(state)[0] == 0 else -white
        target = torch.tensor([max(result, 0), 1 - abs(result), max(-result, 0)]).double()
        words = torch.from_numpy(game.planes(state).view(np.int64))
        with torch.no_grad():
            planes = expand_planes(words, (8, 8), torch.float32)
            logits = network(planes).value_logits_BV[0].double()
        total -= (target * logits.log_softmax(0)).sum().item()
    by_hand = total / len(rows)
    for batch_size in (11, 1024):
        assert len(rows) % batch_size  # the last batch is a short one
        monkeypatch.setattr("chess_snn.training.supervised._BATCH", batch_size)
        network.train()  # its own batch statistics would make a row depend on the others
        assert measure_holdout(trainer, window).value_loss == pytest.approx(by_hand, rel=1e-4)


# The running average of the weights: its definition, and that it survives a stop.


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
