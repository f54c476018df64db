"""The losses, in fp32, over one batch of positions.

Dimensions: B positions, L columns for legal actions, K columns of the sparse policy target.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from chess_snn.training.settings import TrainingSettings


@dataclass(frozen=True, slots=True)
class Losses:
    """Scalar tensors of one batch, means over its positions."""

    total: Tensor
    """What is minimised."""
    value: Tensor
    """Cross-entropy of the WDL prediction, nats."""
    policy: Tensor
    """The policy term, weighted where the target is a played action."""
    entropy: Tensor
    """Entropy of the policy over the legal actions, nats."""


@dataclass(frozen=True, slots=True)
class Targets:
    """What the network should say of B positions, on the device."""

    legal_actions_BL: Tensor
    """int64; any valid action behind the list."""
    num_legal_B: Tensor
    """int64."""
    target_actions_BK: Tensor
    """int64; any valid action where the weight is 0."""
    target_weights_BK: Tensor
    """float32; rows sum to 1."""
    outcomes_stm_B: Tensor
    """float32 in [-1, 1]: how the game ended, side to move's view."""


def wdl_target(outcomes_stm_B: Tensor) -> Tensor:
    """WDL float32[B, 3] whose win minus loss is the outcome, and without win *and* loss at once."""
    win_B, loss_B = outcomes_stm_B.clamp_min(0), (-outcomes_stm_B).clamp_min(0)
    return torch.stack([win_B, 1 - win_B - loss_B, loss_B], dim=1)


def value_loss(wdl_logits_B3: Tensor, outcomes_stm_B: Tensor) -> Tensor:
    """Mean cross-entropy with :func:`wdl_target`, nats."""
    return F.cross_entropy(wdl_logits_B3, wdl_target(outcomes_stm_B))


def value_stm(wdl_logits_B3: Tensor) -> Tensor:
    """float32[B] in [-1, 1]: win minus loss probability."""
    wdl_B3 = wdl_logits_B3.softmax(dim=1)
    return wdl_B3[:, 0] - wdl_B3[:, 2]


def compute_losses(
    policy_logits_BA: Tensor, wdl_logits_B3: Tensor, targets: Targets, settings: TrainingSettings
) -> Losses:
    """The losses of one batch.

    With ``policy_loss = "advantage"`` each position's cross-entropy is weighted by how much better
    the game went than the network itself expected (REINFORCE with a baseline; Williams 1992, §4):
    a positive advantage makes the played action likelier, a negative one less likely. The baseline
    is not differentiated.
    """
    logits_BL = policy_logits_BA.gather(1, targets.legal_actions_BL)
    behind_BL = (
        torch.arange(logits_BL.shape[1], device=logits_BL.device) >= targets.num_legal_B[:, None]
    )
    logits_BL = logits_BL.masked_fill(behind_BL, float("-inf"))
    normaliser_B1 = logits_BL.logsumexp(dim=1, keepdim=True)
    # 0 behind the list: 0 * -inf would poison the gradient.
    log_policy_BL = (logits_BL - normaliser_B1).masked_fill(behind_BL, 0.0)
    policy_BL = log_policy_BL.exp().masked_fill(behind_BL, 0.0)
    entropy = -(policy_BL * log_policy_BL).sum(dim=1).mean()

    log_target_BK = policy_logits_BA.gather(1, targets.target_actions_BK) - normaliser_B1
    cross_entropy_B = -(targets.target_weights_BK * log_target_BK).sum(dim=1)
    if settings.policy_loss == "advantage":
        advantage_B = targets.outcomes_stm_B - value_stm(wdl_logits_B3).detach()
        limit = settings.advantage_clip
        cross_entropy_B = cross_entropy_B * advantage_B.clamp(-limit, limit)
    policy = cross_entropy_B.mean()

    value = value_loss(wdl_logits_B3, targets.outcomes_stm_B)
    total = policy + settings.value_weight * value - settings.entropy_bonus * entropy
    return Losses(total=total, value=value, policy=policy, entropy=entropy)
