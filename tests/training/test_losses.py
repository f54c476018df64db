"""The losses against numbers worked out by hand and against numpy in float64."""

import math

import numpy as np
import pytest
import torch

from chess_snn.training import TrainingSettings
from chess_snn.training.losses import Targets, compute_losses, value_loss, value_stm, wdl_target

SEARCH = TrainingSettings(policy_loss="search", entropy_bonus=0.0)
ADVANTAGE = TrainingSettings(policy_loss="advantage", entropy_bonus=0.0)
EVEN = [0.0, 0.0, 0.0]


def targets(legal, num_legal, actions, weights, outcomes):
    return Targets(
        legal_actions_BL=torch.tensor(legal),
        num_legal_B=torch.tensor(num_legal),
        target_actions_BK=torch.tensor(actions),
        target_weights_BK=torch.tensor(weights, dtype=torch.float32),
        outcomes_stm_B=torch.tensor(outcomes, dtype=torch.float32),
    )


def one_position(action=1, outcome=0.0, legal=(0, 1, 2)):
    """A position whose legal actions are 0, 1 and 2, and where ``action`` was played."""
    return targets([list(legal)], [len(legal)], [[action]], [[1.0]], [outcome])


def logits(*rows, requires_grad=False):
    return torch.tensor(rows, dtype=torch.float32, requires_grad=requires_grad)


def test_wdl_target_is_the_outcome_without_win_and_loss_at_once():
    wdl = wdl_target(torch.tensor([1.0, 0.0, -1.0, 0.25, -0.4]))
    expected = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.25, 0.75, 0], [0, 0.6, 0.4]]
    np.testing.assert_allclose(wdl, expected, atol=1e-7)


def test_value_loss_by_hand():
    # softmax of (ln 2, 0, ln 5) is (2, 1, 5) / 8; a half-won game is half a win and half a draw.
    wdl = logits([math.log(2), 0, math.log(5)], [math.log(2), 0, math.log(5)])
    loss = value_loss(wdl, torch.tensor([-1.0, 0.5]))
    lost, half_won = math.log(8 / 5), 0.5 * math.log(8 / 2) + 0.5 * math.log(8 / 1)
    assert loss.item() == pytest.approx((lost + half_won) / 2)


def test_value_is_win_minus_loss():
    assert value_stm(logits([math.log(2), 0, math.log(5)])).item() == pytest.approx(-3 / 8)


def test_search_loss_is_cross_entropy_over_legal_actions_alone():
    # Legal logits ln 1, ln 2, ln 5: the policy is (1, 2, 5) / 8 whatever the illegal ones say.
    policy = logits([0, math.log(2), math.log(5), 50.0, -3.0])
    target = targets([[0, 1, 2]], [3], [[2, 0]], [[0.75, 0.25]], [0.0])
    losses = compute_losses(policy, logits(EVEN), target, SEARCH)
    by_hand = 0.75 * math.log(8 / 5) + 0.25 * math.log(8)
    assert losses.policy.item() == pytest.approx(by_hand, rel=1e-6)
    assert losses.value.item() == pytest.approx(math.log(3))
    assert losses.total.item() == pytest.approx(by_hand + math.log(3), rel=1e-6)


@pytest.mark.parametrize(
    ("outcome", "clip", "weight"),
    [(1.0, 1.0, 1.0), (-1.0, 1.0, -0.625), (0.0, 1.0, 0.375), (1.0, 0.5, 0.5), (-1.0, 0.5, -0.5)],
)
def test_advantage_loss_weighs_the_played_action(outcome, clip, weight):
    # The network expects -3/8, so a won game was worth 11/8 more than that.
    wdl = logits([math.log(2), 0, math.log(5)])
    policy = logits([0, math.log(2), math.log(5), 50.0])
    settings = TrainingSettings(advantage_clip=clip, entropy_bonus=0.0)
    losses = compute_losses(policy, wdl, one_position(action=1, outcome=outcome), settings)
    assert losses.policy.item() == pytest.approx(weight * math.log(8 / 2), rel=1e-6)


def test_entropy_and_total_by_hand():
    policy = logits([0, math.log(2), math.log(5), 9.0])
    settings = TrainingSettings(policy_loss="search", entropy_bonus=0.1, value_weight=0.5)
    losses = compute_losses(policy, logits(EVEN), one_position(action=2), settings)
    entropy = sum(p * math.log(1 / p) for p in (1 / 8, 2 / 8, 5 / 8))
    assert losses.entropy.item() == pytest.approx(entropy, rel=1e-6)
    total = math.log(8 / 5) + 0.5 * math.log(3) - 0.1 * entropy
    assert losses.total.item() == pytest.approx(total, rel=1e-6)


def probability_after_a_step(outcome, action=1):
    """Probability of the played action before and after one step against the gradient."""
    policy = logits([0.3, -0.2, 0.8, 2.0], requires_grad=True)
    target = one_position(action=action, outcome=outcome)
    compute_losses(policy, logits(EVEN), target, ADVANTAGE).total.backward()
    before = policy[0, :3].softmax(0)[action].item()
    after = (policy - 0.1 * policy.grad)[0, :3].softmax(0)[action].item()
    return before, after


@pytest.mark.parametrize("action", [0, 1, 2])
def test_a_won_game_makes_its_action_likelier(action):
    before, after = probability_after_a_step(1.0, action)
    assert after > before + 1e-3


@pytest.mark.parametrize("action", [0, 1, 2])
def test_a_lost_game_makes_its_action_less_likely(action):
    before, after = probability_after_a_step(-1.0, action)
    assert after < before - 1e-3


def test_a_game_that_went_as_expected_teaches_the_policy_nothing():
    before, after = probability_after_a_step(0.0)
    assert after == before


def test_policy_loss_does_not_move_the_baseline():
    wdl = logits([0.2, 0.0, 0.7], requires_grad=True)
    settings = TrainingSettings(value_weight=0.0)
    policy = logits([0.0, 1.0, 2.0], requires_grad=True)
    # A draw, because a clipped advantage would not move it in any case.
    compute_losses(policy, wdl, one_position(outcome=0.0), settings).total.backward()
    assert policy.grad.abs().max() > 0
    assert (wdl.grad == 0).all()


@pytest.mark.parametrize("settings", [SEARCH, ADVANTAGE, TrainingSettings(entropy_bonus=1.0)])
@pytest.mark.parametrize("rubbish", [0, 4])
def test_columns_behind_lists_change_nothing(settings, rubbish):
    """Two positions in one batch, of three legal actions and of one, padded with ``rubbish``."""

    def run(legal, num_legal, actions, weights, rows):
        policy = logits(*[[0.5, -1.0, 2.0, 0.1, 80.0]] * len(rows), requires_grad=True)
        wdl = logits(*[[0.2, 0.0, 0.7]] * len(rows), requires_grad=True)
        outcomes = [(1.0, -1.0)[row] for row in rows]
        losses = compute_losses(
            policy, wdl, targets(legal, num_legal, actions, weights, outcomes), settings
        )
        losses.total.backward()
        assert torch.isfinite(policy.grad).all()
        assert torch.isfinite(wdl.grad).all()
        values = [loss.item() for loss in (losses.total, losses.value, losses.policy,
                                           losses.entropy)]
        return np.array(values), policy.grad, wdl.grad

    r = rubbish
    both, both_policy, both_wdl = run(
        [[0, 1, 2, r], [3, r, r, r]], [3, 1], [[2, 1], [3, r]], [[0.5, 0.5], [1.0, 0.0]], (0, 1)
    )
    first, first_policy, first_wdl = run([[0, 1, 2]], [3], [[2, 1]], [[0.5, 0.5]], (0,))
    second, second_policy, second_wdl = run([[3]], [1], [[3]], [[1.0]], (1,))
    np.testing.assert_allclose(both, (first + second) / 2, rtol=1e-6)
    np.testing.assert_allclose(both_policy, torch.cat([first_policy, second_policy]) / 2, atol=1e-7)
    np.testing.assert_allclose(both_wdl, torch.cat([first_wdl, second_wdl]) / 2, atol=1e-7)
    assert (both_policy[:, 4] == 0).all()
    assert second[3] == 0  # one legal action: no entropy


@pytest.mark.parametrize("policy_loss", ["search", "advantage"])
def test_losses_match_numpy_on_random_batches(policy_loss):
    rng = np.random.default_rng(4)
    B, A, L, K = 50, 30, 12, 4
    policy, wdl = rng.normal(size=(B, A)), rng.normal(size=(B, 3))
    legal = np.stack([rng.permutation(A)[:L] for _ in range(B)])
    num_legal = rng.integers(K, L + 1, size=B)
    weights = rng.dirichlet(np.ones(K), size=B)
    outcomes = rng.integers(-1, 2, size=B).astype(float)
    settings = TrainingSettings(policy_loss=policy_loss, advantage_clip=0.8, entropy_bonus=0.3,
                                value_weight=0.7)

    value, cross_entropy, entropy = np.zeros(B), np.zeros(B), np.zeros(B)
    for b in range(B):
        probabilities = np.exp(policy[b, legal[b, : num_legal[b]]])
        probabilities /= probabilities.sum()
        win, draw, loss = np.exp(wdl[b]) / np.exp(wdl[b]).sum()
        value[b] = -np.log({1: win, 0: draw, -1: loss}[int(outcomes[b])])
        cross_entropy[b] = -(weights[b] * np.log(probabilities[:K])).sum()
        if policy_loss == "advantage":
            cross_entropy[b] *= min(0.8, max(-0.8, outcomes[b] - (win - loss)))
        entropy[b] = -(probabilities * np.log(probabilities)).sum()

    losses = compute_losses(
        torch.tensor(policy, dtype=torch.float32), torch.tensor(wdl, dtype=torch.float32),
        targets(legal.tolist(), num_legal.tolist(), legal[:, :K].tolist(), weights.tolist(),
                outcomes.tolist()),
        settings,
    )
    assert losses.value.item() == pytest.approx(value.mean(), rel=1e-5)
    assert losses.policy.item() == pytest.approx(cross_entropy.mean(), rel=1e-5, abs=1e-6)
    assert losses.entropy.item() == pytest.approx(entropy.mean(), rel=1e-5)
    total = cross_entropy.mean() + 0.7 * value.mean() - 0.3 * entropy.mean()
    assert losses.total.item() == pytest.approx(total, rel=1e-5)
