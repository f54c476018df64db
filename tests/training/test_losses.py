"""The losses against numbers worked out by hand and against numpy in float64."""

import math

import numpy as np
import pytest
import torch

from chess_snn.games import get_game
from chess_snn.nets import LegalOutput, value_target
from chess_snn.training import TrainingSettings
from chess_snn.training.losses import (
    Targets,
    blended_value,
    compute_losses,
    plies_left_loss,
    value_loss,
)

ALONE = {"root_value_share": 0.0, "plies_left_weight": 0.0}
"""Outcome and policy, as they are."""
SEARCH = TrainingSettings(**ALONE)
SPEC = get_game("chess").spec
EVEN = [0.0, 0.0, 0.0]


def targets(legal, num_legal, actions, weights, outcomes, root_values=None, plies=None, ended=None):
    """``actions`` and ``weights`` name the policy target sparsely."""
    policy = np.zeros(np.shape(legal), np.float32)
    for b, row in enumerate(actions):
        for action, weight in zip(row, weights[b], strict=True):
            if weight:
                policy[b, list(legal[b]).index(action)] += weight
    floats = {
        "outcomes_stm_B": outcomes,
        "root_values_stm_B": np.zeros(len(outcomes)) if root_values is None else root_values,
        "log_plies_left_B": np.log1p(np.ones(len(outcomes)) if plies is None else plies),
        "ended_B": np.ones(len(outcomes)) if ended is None else ended,
    }
    return Targets(
        legal_actions_BL=torch.tensor(legal),
        num_legal_B=torch.tensor(num_legal),
        policy_BL=torch.from_numpy(policy),
        **{name: torch.tensor(column, dtype=torch.float32) for name, column in floats.items()},
    )


def losses_of(policy, wdl, wanted, settings, plies_left=None):
    if plies_left is None:
        plies_left = torch.zeros(len(wdl))
    legal_logits = policy.gather(1, wanted.legal_actions_BL)
    return compute_losses(SPEC, LegalOutput(legal_logits, wdl, plies_left), wanted, settings)


def logits(*rows, requires_grad=False):
    return torch.tensor(rows, dtype=torch.float32, requires_grad=requires_grad)


def test_wdl_target_is_the_outcome_without_win_and_loss_at_once():
    wdl = value_target(SPEC, torch.tensor([1.0, 0.0, -1.0, 0.25, -0.4]))
    expected = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.25, 0.75, 0], [0, 0.6, 0.4]]
    np.testing.assert_allclose(wdl, expected, atol=1e-7)


def test_value_loss_by_hand():
    # softmax of (ln 2, 0, ln 5) is (2, 1, 5) / 8; a half-won game is half a win and half a draw.
    wdl = logits([math.log(2), 0, math.log(5)], [math.log(2), 0, math.log(5)])
    loss = value_loss(SPEC, wdl, torch.tensor([-1.0, 0.5]))
    lost, half_won = math.log(8 / 5), 0.5 * math.log(8 / 2) + 0.5 * math.log(8 / 1)
    assert loss.item() == pytest.approx((lost + half_won) / 2)


def test_search_loss_is_cross_entropy_over_legal_actions_alone():
    # Legal logits ln 1, ln 2, ln 5: the policy is (1, 2, 5) / 8 whatever the illegal ones say.
    policy = logits([0, math.log(2), math.log(5), 50.0, -3.0])
    target = targets([[0, 1, 2]], [3], [[2, 0]], [[0.75, 0.25]], [0.0])
    losses = losses_of(policy, logits(EVEN), target, SEARCH)
    by_hand = 0.75 * math.log(8 / 5) + 0.25 * math.log(8)
    assert losses.policy.item() == pytest.approx(by_hand, rel=1e-6)
    assert losses.value.item() == pytest.approx(math.log(3))
    assert losses.total.item() == pytest.approx(by_hand + math.log(3), rel=1e-6)


def test_value_target_blends_outcome_and_root_value():
    wanted = targets([[0]] * 3, [1] * 3, [[0]] * 3, [[1.0]] * 3, [1.0, -0.5, 0.0],
                     root_values=[0.2, 1.0, -0.4])
    blends = {0.0: [1, -0.5, 0], 0.25: [0.8, -0.125, -0.1], 1.0: [0.2, 1, -0.4]}
    for share, expected in blends.items():
        np.testing.assert_allclose(blended_value(wanted, share), expected, atol=1e-7)


def test_plies_left_loss_by_hand():
    # Distances 0.5 (squared and halved) and 3 (less a half); the third game did not end.
    plies = np.array([9, 99, 7])
    said = torch.tensor([math.log(10) + 0.5, math.log(100) - 3, 50.0], requires_grad=True)
    wanted = targets([[0]] * 3, [1] * 3, [[0]] * 3, [[1.0]] * 3, [0.0] * 3, plies=plies,
                     ended=[1, 1, 0])
    loss = plies_left_loss(said, wanted)
    assert loss.item() == pytest.approx((0.125 + 2.5) / 2, rel=1e-5)
    loss.backward()
    np.testing.assert_allclose(said.grad, [0.25, -0.5, 0], rtol=1e-5)


def test_no_finished_game_teaches_nothing_of_plies_left():
    said = torch.tensor([3.0, 4.0], requires_grad=True)
    wanted = targets([[0]] * 2, [1] * 2, [[0]] * 2, [[1.0]] * 2, [0.0] * 2, ended=[0, 0])
    loss = plies_left_loss(said, wanted)
    assert loss.item() == 0
    loss.backward()
    assert (said.grad == 0).all()


@pytest.mark.parametrize("rubbish", [0, 4])
def test_columns_behind_lists_change_nothing(rubbish):
    """Two positions in one batch, of three legal actions and of one, padded with ``rubbish``."""

    def run(legal, num_legal, actions, weights, rows):
        policy = logits(*[[0.5, -1.0, 2.0, 0.1, 80.0]] * len(rows), requires_grad=True)
        wdl = logits(*[[0.2, 0.0, 0.7]] * len(rows), requires_grad=True)
        outcomes = [(1.0, -1.0)[row] for row in rows]
        losses = losses_of(
            policy, wdl, targets(legal, num_legal, actions, weights, outcomes), SEARCH
        )
        losses.total.backward()
        assert torch.isfinite(policy.grad).all()
        assert torch.isfinite(wdl.grad).all()
        values = [loss.item() for loss in (losses.total, losses.value, losses.policy,
                                           losses.entropy, losses.target_entropy)]
        return np.array(values), policy.grad, wdl.grad

    r = rubbish
    both, both_policy, both_wdl = run(
        [[0, 1, 2, r], [3, r, r, r]], [3, 1], [[2, 1], [3]], [[0.5, 0.5], [1.0]], (0, 1)
    )
    first, first_policy, first_wdl = run([[0, 1, 2]], [3], [[2, 1]], [[0.5, 0.5]], (0,))
    second, second_policy, second_wdl = run([[3]], [1], [[3]], [[1.0]], (1,))
    np.testing.assert_allclose(both, (first + second) / 2, rtol=1e-6)
    np.testing.assert_allclose(both_policy, torch.cat([first_policy, second_policy]) / 2, atol=1e-7)
    np.testing.assert_allclose(both_wdl, torch.cat([first_wdl, second_wdl]) / 2, atol=1e-7)
    assert (both_policy[:, 4] == 0).all()
    assert second[3] == 0  # one legal action: no entropy


def test_losses_match_numpy_on_random_batches():
    rng = np.random.default_rng(4)
    B, A, L, K = 50, 30, 12, 4
    policy, wdl = rng.normal(size=(B, A)), rng.normal(size=(B, 3))
    legal = np.stack([rng.permutation(A)[:L] for _ in range(B)])
    num_legal = rng.integers(K, L + 1, size=B)
    weights = rng.dirichlet(np.ones(K), size=B)
    outcomes = rng.integers(-1, 2, size=B).astype(float)
    root_values = rng.uniform(-1, 1, size=B)
    plies, ended, plies_left = rng.integers(1, 90, B), rng.integers(0, 2, B), rng.normal(3, 1, B)
    settings = TrainingSettings(value_weight=0.7, root_value_share=0.4, plies_left_weight=0.2)

    value, expected, cross_entropy, entropy = (np.zeros(B) for _ in range(4))
    for b in range(B):
        probabilities = np.exp(policy[b, legal[b, : num_legal[b]]])
        probabilities /= probabilities.sum()
        win, draw, loss = np.exp(wdl[b]) / np.exp(wdl[b]).sum()
        blend = 0.6 * outcomes[b] + 0.4 * root_values[b]
        value[b] = -max(blend, 0) * np.log(win) - max(-blend, 0) * np.log(loss)
        value[b] -= (1 - abs(blend)) * np.log(draw)
        expected[b] = win - loss
        cross_entropy[b] = -(weights[b] * np.log(probabilities[:K])).sum()
        entropy[b] = -(probabilities * np.log(probabilities)).sum()

    misses = np.abs(plies_left - np.log1p(plies))
    distance = np.where(misses < 1, misses**2 / 2, misses - 0.5)[ended == 1].mean()

    losses = losses_of(
        torch.tensor(policy, dtype=torch.float32), torch.tensor(wdl, dtype=torch.float32),
        targets(legal.tolist(), num_legal.tolist(), legal[:, :K].tolist(), weights.tolist(),
                outcomes.tolist(), root_values.tolist(), plies, ended),
        settings, torch.tensor(plies_left, dtype=torch.float32),
    )
    assert losses.plies_left.item() == pytest.approx(distance, rel=1e-5)
    assert losses.value_mean_abs.item() == pytest.approx(np.abs(expected).mean(), rel=1e-5)
    target_entropy = -(weights * np.log(weights)).sum(axis=1).mean()
    assert losses.target_entropy.item() == pytest.approx(target_entropy, rel=1e-4)
    assert losses.value.item() == pytest.approx(value.mean(), rel=1e-5)
    assert losses.policy.item() == pytest.approx(cross_entropy.mean(), rel=1e-5, abs=1e-6)
    assert losses.entropy.item() == pytest.approx(entropy.mean(), rel=1e-5)
    total = cross_entropy.mean() + 0.7 * value.mean() + 0.2 * distance
    assert losses.total.item() == pytest.approx(total, rel=1e-5)
