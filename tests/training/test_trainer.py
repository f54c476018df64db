"""The optimiser loop on games that were really played."""

import math

import numpy as np
import pytest
import torch

from chess_snn.data import ReplayWindow
from chess_snn.errors import TrainingDivergedError
from chess_snn.nets import expand_planes
from chess_snn.rng import generator
from chess_snn.training import IterationPlan
from chess_snn.training.schedule import learning_rate


def plan(num_steps, iteration=0, num_iterations=4):
    return IterationPlan(iteration, num_iterations, num_steps)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_one_small_window_can_be_overfitted(new_trainer, endgames, precision):
    trainer = new_trainer(
        policy_loss="search", precision=precision, learning_rate=2e-2, entropy_bonus=0.0
    )
    first = trainer.run(endgames, plan(140, num_iterations=1), stop_at=10)
    trainer.run(endgames, plan(140, num_iterations=1), stop_at=130)
    last = trainer.run(endgames, plan(140, num_iterations=1))
    assert last.value_loss < 0.5 * first.value_loss
    assert last.policy_loss < 0.7 * first.policy_loss


def test_advantage_training_prefers_the_winners_actions(new_trainer, endgames):
    """After it, what winners played is likelier and what losers played less likely than before."""
    trainer = new_trainer(policy_loss="advantage", learning_rate=2e-2, precision="fp32")

    def likelihood(sign):
        rows = endgames.rows("training")
        samples = endgames.gather(rows)
        samples = endgames.gather(rows[samples.outcomes_stm == sign])
        planes = expand_planes(
            torch.from_numpy(trainer.game.planes(samples.states).view(np.int64)), (8, 8),
            torch.float32,
        )
        with torch.no_grad():
            logits = trainer.network.eval()(planes).policy_logits_BA.numpy()
        legal, num_legal = trainer.game.legal_actions(samples.states)
        log_policy = [
            logits[b, action] - np.logaddexp.reduce(logits[b, legal[b, : num_legal[b]]])
            for b, action in enumerate(samples.actions)
        ]
        return np.mean(log_policy)

    won, lost = likelihood(1), likelihood(-1)
    trainer.run(endgames, plan(40, num_iterations=1))
    assert likelihood(1) > won + 0.1
    assert likelihood(-1) < lost - 0.1


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_training_again_gives_the_same_bits(new_trainer, window, assert_same_trainers, precision):
    trainers = [new_trainer(precision=precision) for _ in range(2)]
    reports = []
    for trainer in trainers:
        trainer.begin_iteration(2)
        reports.append(trainer.run(window, plan(6, iteration=2)))
    assert_same_trainers(*trainers)
    assert reports[0].value_loss == reports[1].value_loss
    assert reports[0].gradient_norm == reports[1].gradient_norm


def test_run_in_parts_equals_run_at_once(new_trainer, window, assert_same_trainers):
    whole, parts = new_trainer(), new_trainer()
    whole.run(window, plan(7))
    for stop in (2, 3, 7):
        parts.run(window, plan(7), stop_at=stop)
        parts.holdout_value_loss(window)  # looking must not touch what is looked at
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


def test_report_is_what_the_steps_did(new_trainer, window):
    """A twin takes the same steps by hand: torch's own AdamW, on the same samples."""
    trainer, twin = new_trainer(precision="fp32"), new_trainer(precision="fp32")
    told = []
    report = trainer.run(window, plan(4), on_progress=lambda *done: told.append(done))

    twin.network.train()
    optimizer = torch.optim.AdamW([
        {"params": [p for p in twin.network.parameters() if p.ndim > 1]},
        {"params": [p for p in twin.network.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ], weight_decay=twin.settings.weight_decay, fused=True)
    rng, steps = generator(7, "samples", 0), []
    for step in range(4):
        rate = learning_rate(twin.settings, step, plan(4).progress(step))
        losses = twin.losses(window.sample(32, rng))
        optimizer.zero_grad()
        losses.total.backward()
        norm = torch.nn.utils.clip_grad_norm_(twin.network.parameters(), twin.settings.clip_norm)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        figures = (losses.value, losses.policy, losses.entropy, norm)
        steps.append([figure.item() for figure in figures])

    for one, other in zip(trainer.network.parameters(), twin.network.parameters(), strict=True):
        assert torch.equal(one, other)
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert (report.steps, report.samples) == (4, 128)
    assert report.learning_rate == rate
    means = [report.value_loss, report.policy_loss, report.policy_entropy, report.gradient_norm]
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


def test_gradient_is_clipped(new_trainer, window):
    """AdamW's first moment after one step is a tenth of the gradient that it was given."""
    trainer = new_trainer(clip_norm=1e-3, precision="fp32")
    report = trainer.run(window, plan(1))
    assert report.gradient_norm > 1e-2
    moments = [state["exp_avg"].norm() for state in trainer.optimizer.state.values()]
    assert torch.stack(moments).norm().item() == pytest.approx(1e-4, rel=1e-3)


@pytest.mark.parametrize("column", ["target_weights", "outcomes_stm"])
def test_a_poisoned_target_stops_training_before_it_does_harm(
    new_trainer, shard, game, state_of, column
):
    class PoisonedWindow(ReplayWindow):
        """The same games, with one number spoilt in what a sample says."""

        def gather(self, rows):
            samples = super().gather(rows)
            getattr(samples, column)[5] = np.nan
            return samples

    clean = ReplayWindow.load(game, [shard], capacity=100_000)
    trainer = new_trainer()
    trainer.run(clean, plan(5), stop_at=2)
    parameters = {name for name, _ in trainer.network.named_parameters()}
    before = state_of(trainer)
    poisoned = PoisonedWindow.load(game, [shard], capacity=100_000)
    with pytest.raises(TrainingDivergedError, match=r"step 2 is not finite: loss nan.* lower"):
        trainer.run(poisoned, plan(5))
    assert trainer.steps_done == trainer.step_in_iteration == 2
    for name, tensor in state_of(trainer).items():
        if name.startswith("optimizer.") or name.removeprefix("network.") in parameters:
            assert torch.equal(tensor, before[name]), name


def test_held_out_value_loss_by_hand(new_trainer, window, game):
    trainer = new_trainer()
    trainer.run(window, plan(5))
    total, rows = 0.0, window.rows("holdout")
    network = trainer.network.eval()
    for row in rows:
        played_in = np.searchsorted(window.records.game_offsets, row, side="right") - 1
        white = int(window.records.outcomes_white[played_in])
        state = window.records.states[row : row + 1]
        outcome = white if game.side_to_move(state)[0] == 0 else -white
        words = torch.from_numpy(game.planes(state).view(np.int64))
        with torch.no_grad():
            logits = network(expand_planes(words, (8, 8), torch.float32)).wdl_logits_B3[0].double()
        total -= logits.log_softmax(0)[{1: 0, 0: 1, -1: 2}[outcome]].item()
    by_hand = total / len(rows)
    assert len(rows) % 7  # the last batch is a short one
    for batch_size in (7, 1024):
        network.train()  # its own batch statistics would make a row depend on the others
        assert trainer.holdout_value_loss(window, batch_size) == pytest.approx(by_hand, rel=1e-4)


def test_no_held_out_game_gives_no_number(new_trainer, endgames):
    assert math.isnan(new_trainer().holdout_value_loss(endgames))
