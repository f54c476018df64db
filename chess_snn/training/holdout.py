"""What a network says of games that no step was ever made on.

Dimensions: B positions, L columns for legal actions.
"""

from dataclasses import dataclass
from typing import Final

import torch

from chess_snn.data import ReplayWindow
from chess_snn.training.batch import as_tensor, assemble
from chess_snn.training.losses import log_policy, value_loss
from chess_snn.training.trainer import Trainer

MOST_POSITIONS: Final = 16_384
"""The first so many held-out positions are enough for three digits."""
_BATCH: Final = 1024


@dataclass(frozen=True, slots=True)
class HoldoutReport:
    """Means over held-out positions, in fp32, by running statistics."""

    positions: int
    value_loss: float
    """Cross-entropy with ``Samples.results_stm``, nats: how the games ended, without discount or
    root value, and in a game with returns the lambda-returns."""
    policy_loss: float
    """Cross-entropy with the policy target, nats."""
    policy_accuracy: float
    """Share of positions where the likeliest action has the most weight in the target: of games
    without search, where it is the one that was played."""


@torch.no_grad()
@torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
def measure_holdout(trainer: Trainer, window: ReplayWindow) -> HoldoutReport | None:
    """Measure the trainer's network on held-out games of ``window``; None where it has none.

    Ranks take every so many batches each, and come to the same numbers.
    """
    network, ranks = trainer.network.eval(), trainer.ranks
    totals = torch.zeros(3, dtype=torch.float64)
    count = 0
    for number, samples in enumerate(window.iterate(_BATCH, subset="holdout")):
        if count >= MOST_POSITIONS:
            break
        count += len(samples)
        if number % ranks.size != ranks.rank:
            continue
        batch = assemble(trainer.game, samples).to(trainer.device)
        targets = batch.targets
        output = network.legal_output(
            batch.planes_BPHW, targets.legal_actions_BL, targets.num_legal_B
        )
        log_policy_BL = log_policy(output.legal_logits_BL, targets)
        likeliest_B1 = log_policy_BL.argmax(dim=1, keepdim=True)
        is_right_B = targets.policy_BL.gather(1, likeliest_B1)[:, 0] == targets.policy_BL.amax(1)
        means = torch.stack([
            value_loss(
                trainer.game.spec, output.value_logits_BV,
                as_tensor(samples.results_stm).to(trainer.device),
            ),
            -(targets.policy_BL * log_policy_BL).sum(dim=1).mean(),
            is_right_B.float().mean(),
        ])
        totals += means.double().cpu() * len(batch)
    totals = totals.to(trainer.device)
    ranks.add_up(totals)
    return HoldoutReport(count, *(totals / count).tolist()) if count else None
