"""Training in a game with chance and returns: losses by hand, afterstates, and that it learns."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.random_data import play_random_games, with_search_targets
from chess_snn.data import ReplayWindow, state_rows, write_shard
from chess_snn.games import get_game
from chess_snn.nets import LegalOutput, build_network, net_config, read_value
from chess_snn.nets.model.values import NUM_BINS, return_bins
from chess_snn.training import Trainer, TrainingSettings
from chess_snn.training.batch import assemble, show_afterstates, transform
from chess_snn.training.gradients import losses_of
from chess_snn.training.losses import Targets, compute_losses
from chess_snn.training.schedule import IterationPlan
from chess_snn.training.supervised import measure_holdout

GAME = get_game("2048")
SPEC = GAME.spec
TINY = net_config("tiny", blocks=1, channels=8, value_channels=4, value_hidden=16)
WIDER = net_config("tiny", blocks=1, channels=16, value_hidden=32)
NATURE_PLANE = SPEC.num_planes - 1


def empty_cells(states):
    """int[B]: of boards of 16 cells with 4 bits each."""
    shifts = np.arange(16, dtype=np.uint64) * np.uint64(4)
    return (((states[:, :1] >> shifts) & np.uint64(15)) == 0).sum(axis=1)


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    """Random games whose root values count the empty cells; lambda is 0.

    So an afterstate is worth its empty cells less the one that the next tile takes.
    """
    played = with_search_targets(GAME, play_random_games(GAME, 60, 400))
    records = replace(played, values_stm=empty_cells(played.states).astype(np.float32))
    folder = tmp_path_factory.mktemp("games") / "iter-000000" / "shard-0000"
    write_shard(folder, records, {"game": "2048"})
    return ReplayWindow.load(GAME, [folder], 100_000, holdout_every=6, td_lambda=0.0)


def new_trainer(config=TINY, **settings):
    defaults = {"batch_size": 64, "micro_batch": 32, "warmup_steps": 3, "learning_rate": 1e-2,
                "root_value_share": 0.0, "plies_left_weight": 0.0}
    return Trainer(
        GAME, build_network(SPEC, config, 0), TrainingSettings(**(defaults | settings)), seed=7
    )


def test_losses_by_hand():
    """A decision worth bin 3 and an afterstate half way between bins 1 and 2; flat predictions."""
    bins = return_bins(SPEC)
    values = torch.stack([bins[3], (bins[1] + bins[2]) / 2])
    targets = Targets(
        legal_actions_BL=torch.tensor([[0, 2], [0, 0]], dtype=torch.int16),
        num_legal_B=torch.tensor([2, 0], dtype=torch.int32),
        policy_BL=torch.tensor([[0.25, 0.75], [0.0, 0.0]]),
        outcomes_stm_B=values, root_values_stm_B=torch.zeros(2),
        log_plies_left_B=torch.zeros(2), ended_B=torch.zeros(2),
    )
    policy = torch.tensor([[0.0, math.log(3)], [-math.inf, -math.inf]], requires_grad=True)
    logits = torch.zeros(2, NUM_BINS, requires_grad=True)
    settings = TrainingSettings(root_value_share=0.0, plies_left_weight=0.0, value_weight=2.0)
    losses = compute_losses(SPEC, LegalOutput(policy, logits, torch.zeros(2)), targets, settings)
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    mean = bins.mean().item()
    assert losses.value.item() == pytest.approx(math.log(NUM_BINS), rel=1e-5)
    assert losses.policy.item() == pytest.approx(entropy, rel=1e-5)
    assert losses.entropy.item() == pytest.approx(entropy, rel=1e-5)
    assert losses.target_entropy.item() == pytest.approx(entropy, rel=1e-5)
    assert losses.total.item() == pytest.approx(entropy + 2 * math.log(NUM_BINS), rel=1e-5)
    assert losses.value_mean_abs.item() == pytest.approx(mean, rel=1e-5)
    assert losses.value_error.item() == pytest.approx(mean - values.mean().item(), rel=1e-5)
    losses.total.backward()
    # Softmax less target: of value_weight / B.
    expected = torch.full((2, NUM_BINS), 1 / NUM_BINS)
    expected[0, 3] -= 1
    expected[1, 1:3] -= 0.5
    torch.testing.assert_close(logits.grad, expected, rtol=1e-3, atol=1e-4)
    assert (policy.grad == 0).all(), "it is right where it decides, and nature decides elsewhere"


def test_an_afterstate_has_a_value_and_no_policy(window):
    samples = window.gather(np.arange(200))
    chosen = np.arange(200) % 3 == 0
    shown = show_afterstates(GAME, samples, chosen)
    batch = GAME.allocate(200)
    GAME.reset(batch, np.arange(200), state_rows(SPEC, samples.states))
    GAME.step(batch, samples.actions)
    np.testing.assert_array_equal(shown.states[chosen], batch.state[chosen])
    np.testing.assert_array_equal(shown.outcomes_stm[chosen], samples.after_stm[chosen])
    np.testing.assert_array_equal(shown.values_stm[chosen], samples.after_stm[chosen])
    np.testing.assert_allclose(
        shown.outcomes_stm[chosen], np.maximum(0, empty_cells(shown.states[chosen]) - 1)
    )
    for name in ("states", "outcomes_stm", "values_stm", "target_actions", "target_weights"):
        np.testing.assert_array_equal(
            getattr(shown, name)[~chosen], getattr(samples, name)[~chosen]
        )
    assembled = assemble(GAME, shown)
    targets = assembled.targets
    np.testing.assert_array_equal(targets.num_legal_B.numpy() == 0, chosen)
    np.testing.assert_array_equal(targets.policy_BL.sum(1).numpy() == 0, chosen)
    planes = assembled.planes(SPEC.num_planes)
    np.testing.assert_array_equal(planes[:, NATURE_PLANE].any((1, 2)), chosen)
    assert targets.legal_actions_BL.shape[1] <= SPEC.num_actions


@pytest.mark.parametrize("chosen", [np.ones(6, np.bool_), np.zeros(6, np.bool_)])
def test_losses_are_finite_without_one_of_the_kinds(window, chosen):
    samples = show_afterstates(GAME, window.gather(np.arange(6)), chosen)
    trainer = new_trainer()
    losses = losses_of(trainer.network, assemble(GAME, samples), trainer.settings)
    losses.total.backward()
    assert (losses.policy.item() == 0) == chosen.all()
    for parameter in trainer.network.parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all()


def test_a_view_of_the_afterstate_is_the_afterstate_of_the_view(window):
    samples = window.gather(np.arange(300))
    symmetries = (np.arange(300) % SPEC.num_symmetries).astype(np.uint8)
    everywhere = np.ones(300, np.bool_)
    ours = show_afterstates(GAME, transform(GAME, samples, symmetries), everywhere)
    plain = show_afterstates(GAME, samples, everywhere)
    expected, _ = GAME.transform(plain.states, plain.target_actions, symmetries)
    np.testing.assert_array_equal(ours.states, expected)
    assert (ours.states != plain.states).any()


def test_half_of_what_is_drawn_are_afterstates(window):
    trainer = new_trainer(batch_size=2048)
    draw = trainer._draw(window)
    assert 0.45 < draw.are_afterstates.mean() < 0.55
    assert set(draw.symmetries) == set(range(8))
    prepared = trainer._prepare(window, draw).batch
    is_after = (prepared.targets.num_legal_B == 0).numpy()
    np.testing.assert_array_equal(is_after, draw.are_afterstates)


@pytest.mark.parametrize(
    "config",
    [pytest.param(WIDER.baseline(), id="baseline", marks=pytest.mark.slow),
     pytest.param(WIDER, id="spiking")],
)
def test_values_of_both_kinds_of_positions_are_learnt(window, config):
    """Both are a fixed function of the board: its empty cells, less one in an afterstate.

    They differ from their median by 2.6 on average.
    """
    trainer = new_trainer(config, precision="fp32")
    samples = window.gather(window.rows("holdout")[:512])

    def errors():
        found = []
        for are_afterstates in (False, True):
            shown = show_afterstates(GAME, samples, np.full(len(samples), are_afterstates))
            with torch.no_grad():
                planes = assemble(GAME, shown).planes(SPEC.num_planes)
                logits = trainer.network.eval()(planes).value_logits_BV
                _, values = read_value(SPEC, logits)
            found.append(np.abs(values.numpy() - shown.outcomes_stm).mean())
        return np.array(found)

    assert (errors() > 2.6).all()
    report = trainer.run(window, IterationPlan(400, 0.0, 1.0), stop_at=200)
    assert (errors() < 1.3).all()
    assert report.value_error > 0
    holdout = measure_holdout(trainer, window)
    assert holdout.value_loss > 0, "games score points, whatever their roots said"
    assert 0 <= holdout.policy_accuracy <= 1
