"""The losses, in fp32, over one batch of positions.

The aims of learning at a position: the policy of the search, the value of the game, and how long it
lasts. Read ``compute_losses``. File 12 of 16 of the spine in docs/architecture.md.

Dimensions: B positions, L columns for legal actions.
"""

from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from chess_snn.games.base import GameSpec
from chess_snn.nets import LegalOutput, read_value, value_target
from chess_snn.training.settings import TrainingSettings

_BEHIND: Final = -1e9
"""A logit so low that its probability is 0 and its product with 0 is 0."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Scalar tensors of one batch: means over its positions, of the policy where a player moves."""

    total: Tensor
    """Loss that is minimised."""
    value: Tensor
    """Cross-entropy of the value prediction, nats."""
    policy: Tensor
    """Cross-entropy with the policy target, nats."""
    plies_left: Tensor
    """Smooth L1 distance of log(1 + plies left), over the positions whose game ended on the board;
    0 where none did."""
    entropy: Tensor
    """Entropy of the policy over the legal actions, nats."""
    target_entropy: Tensor
    """Entropy of the policy target, nats: the least that the policy loss can be."""
    value_mean_abs: Tensor
    """Mean size of the predicted value, in [0, ``GameSpec.value_limit``]; in a game of win and loss
    near 0 where everything looks like a draw."""
    value_error: Tensor
    """Mean distance of the predicted value from its target."""
    spike_rate: Tensor
    """Share of neurons and virtual ticks that spiked, in [0, 1]; 0 where it was not measured."""
    change_rate: Tensor
    """The same of the difference between the positions of a pair."""


@dataclass(frozen=True, slots=True)
class Targets:
    """The answers that the network should give for B positions, on the device."""

    legal_actions_BL: Tensor
    """int16; any valid action behind the list."""
    num_legal_B: Tensor
    """int32; 0 where nature is to move."""
    policy_BL: Tensor
    """float32: weight of each listed legal action; rows sum to 1, 0 behind the list."""
    outcomes_stm_B: Tensor
    """float32: how the game ended, discounted, side to move's view; or its lambda-return."""
    root_values_stm_B: Tensor
    """float32: what the search said, side to move's view."""
    log_plies_left_B: Tensor
    """float32: log(1 + plies to the end of the game)."""
    ended_B: Tensor
    """float32 in {0, 1}: whether the game ended on the board, so that the plies left are true."""


def value_loss(spec: GameSpec, value_logits_BV: Tensor, values_stm_B: Tensor) -> Tensor:
    """Mean cross-entropy with :func:`chess_snn.nets.value_target`, nats.

    A value v is the target win v, draw 1 - v, or draw 1 + v, loss -v; a return that of two bins.
    """
    return F.cross_entropy(value_logits_BV, value_target(spec, values_stm_B))


def blended_value(targets: Targets, root_value_share: float) -> Tensor:
    """float32[B]: discounted outcome or lambda-return and, to the share given, root value."""
    return torch.lerp(targets.outcomes_stm_B, targets.root_values_stm_B, root_value_share)


def plies_left_loss(plies_left_B: Tensor, targets: Targets) -> Tensor:
    """Smooth L1 distance (Girshick, arXiv 1504.08083, equation 3) where the truth is known."""
    distance_B = F.smooth_l1_loss(plies_left_B, targets.log_plies_left_B, reduction="none")
    return (distance_B * targets.ended_B).sum() / targets.ended_B.sum().clamp_min(1)


def compute_losses(
    spec: GameSpec, output: LegalOutput, targets: Targets, settings: TrainingSettings,
    spike_rate: Tensor | None = None, change_rate: Tensor | None = None,
) -> Losses:
    """The losses of one batch of positions of the game ``spec``.

    ``spike_rate`` and ``change_rate`` float32[], if given, are those of the batch; the settings say
    how much they cost.
    """
    log_policy_BL = log_policy(output.legal_logits_BL, targets)
    policy_BL = log_policy_BL.exp()
    entropy = _policy_mean(spec, -(policy_BL * log_policy_BL).sum(dim=1), targets)
    _, expected_B = read_value(spec, output.value_logits_BV.detach())

    policy = _policy_mean(spec, -(targets.policy_BL * log_policy_BL).sum(dim=1), targets)
    wanted_B = blended_value(targets, settings.root_value_share)
    value = value_loss(spec, output.value_logits_BV, wanted_B)
    plies_left = plies_left_loss(output.plies_left_B, targets)
    total = policy + settings.value_weight * value + settings.plies_left_weight * plies_left
    if spike_rate is not None:
        total = total + settings.spike_rate_weight * spike_rate
    if change_rate is not None:
        total = total + settings.change_rate_weight * change_rate
    return Losses(
        total=total, value=value, policy=policy, plies_left=plies_left, entropy=entropy,
        target_entropy=_policy_mean(
            spec, torch.special.entr(targets.policy_BL).sum(dim=1), targets
        ),
        value_mean_abs=expected_B.abs().mean(),
        value_error=(expected_B - wanted_B).abs().mean(),
        spike_rate=total.new_zeros(()) if spike_rate is None else spike_rate,
        change_rate=total.new_zeros(()) if change_rate is None else change_rate,
    )


def _policy_mean(spec: GameSpec, figure_B: Tensor, targets: Targets) -> Tensor:
    """The mean over the positions where a player is to move."""
    if not spec.is_stochastic:
        return figure_B.mean()
    decides_B = (targets.num_legal_B > 0).float()
    return (figure_B * decides_B).sum() / decides_B.sum().clamp_min(1)


def log_policy(logits_BL: Tensor, targets: Targets) -> Tensor:
    """Log probabilities float32[B, L] of the legal actions, a very large negative one behind."""
    columns_L = torch.arange(logits_BL.shape[1], device=logits_BL.device)
    behind_BL = columns_L >= targets.num_legal_B.unsqueeze(1)
    # Not -inf: 0 * -inf would poison the sums and the gradient.
    return logits_BL.masked_fill(behind_BL, _BEHIND).log_softmax(dim=1)
