"""The settings of training."""

from dataclasses import dataclass
from typing import Literal

from chess_snn.config import check_choice, check_range

Precision = Literal["fp32", "bf16"]
PolicyLoss = Literal["advantage", "search"]


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How a network learns from the replay window."""

    batch_size: int = 256
    """Positions of one optimiser step."""
    presentations: float = 4.0
    """How often each new position is shown in all; sets the steps of an iteration."""
    learning_rate: float = 6e-3
    """Peak learning rate of AdamW. It dominates everything else; tune it for each network size and
    never share it between a spiking network and its ordinary twin."""
    final_learning_rate: float = 0.1
    """Learning rate at the end of the campaign, as a share of the peak."""
    warmup_steps: int = 50
    """First steps of the campaign, over which the learning rate rises from zero."""
    weight_decay: float = 1e-4
    """Decoupled weight decay; normalisation layers and biases have none."""
    clip_norm: float = 1.0
    """Largest norm of the whole gradient."""
    policy_loss: PolicyLoss = "advantage"
    """`advantage`: the played action weighted by its clipped advantage over the value, for games
    played without search. `search`: cross-entropy with the search's policy target."""
    advantage_clip: float = 1.0
    """Advantages are clipped to this size on both sides."""
    entropy_bonus: float = 0.01
    """Weight of the policy's entropy, which the loss rewards."""
    value_weight: float = 1.0
    """Weight of the value loss beside the policy loss."""
    window_positions: int = 250_000
    """Most positions the replay window holds; the oldest games leave first."""
    precision: Precision = "bf16"
    """`bf16` runs convolutions in bfloat16 (autocast); weights, logits and losses stay fp32."""

    def __post_init__(self) -> None:
        check_range("training.batch_size", self.batch_size, ge=2)
        check_range("training.presentations", self.presentations, gt=0, le=1000)
        check_range("training.learning_rate", self.learning_rate, gt=0, le=10)
        check_range("training.final_learning_rate", self.final_learning_rate, ge=0, le=1)
        check_range("training.warmup_steps", self.warmup_steps, ge=0)
        check_range("training.weight_decay", self.weight_decay, ge=0, le=1)
        check_range("training.clip_norm", self.clip_norm, gt=0)
        check_choice("training.policy_loss", self.policy_loss, ("advantage", "search"))
        check_range("training.advantage_clip", self.advantage_clip, gt=0)
        check_range("training.entropy_bonus", self.entropy_bonus, ge=0)
        check_range("training.value_weight", self.value_weight, ge=0)
        check_range("training.window_positions", self.window_positions, ge=self.batch_size)
        check_choice("training.precision", self.precision, ("fp32", "bf16"))

    def num_steps(self, num_new_positions: int) -> int:
        """Optimiser steps that present ``num_new_positions`` as often as asked; at least one."""
        return max(1, round(num_new_positions * self.presentations / self.batch_size))
