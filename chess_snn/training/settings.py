"""The settings of training."""

import math
from dataclasses import replace
from typing import Literal

from pydantic import Field

from chess_snn.config import check_range
from chess_snn.errors import ConfigError
from chess_snn.settings import settings_class

Precision = Literal["fp32", "bf16", "fp16"]
PolicyLoss = Literal["advantage", "search"]
Backend = Literal["auto", "nccl", "gloo"]
"""What ranks exchange by; ``auto`` is NCCL where each rank has a GPU of its own, else gloo."""


@settings_class("training")
class TrainingSettings:
    """How a network learns from the replay window."""

    batch_size: int = Field(default=256, ge=2)
    """Positions of one optimiser step."""
    micro_batch: int = Field(default=128, ge=2)
    """Positions of a step that are normalised together; CPU threads each take one such part at a
    time. What is learnt depends on it, and not on the number of threads."""
    presentations: float = Field(default=4.0, gt=0, le=1000)
    """How often each new position is shown in all; sets the steps of an iteration."""
    learning_rate: float = Field(default=6e-3, gt=0, le=10)
    """Peak learning rate of AdamW. It dominates everything else; tune it for each network size and
    never share it between a spiking network and its ReLU baseline."""
    final_learning_rate: float = Field(default=0.1, ge=0, le=1)
    """Learning rate at the end of the campaign, as a share of the peak."""
    warmup_steps: int = Field(default=50, ge=0)
    """First steps of the campaign, over which the learning rate rises from zero."""
    weight_decay: float = Field(default=1e-4, ge=0, le=1)
    """Decoupled weight decay; normalisation layers and biases have none."""
    clip_norm: float = Field(default=1.0, gt=0)
    """Largest norm of the whole gradient."""
    skip_limit: int = Field(default=5, ge=0, le=1000)
    """Steps in a row that may be skipped because their loss or gradient is not finite; one more
    halts the campaign, and the generation is given up. A skipped step changes nothing. Steps that
    overflow in fp16 because the loss is scaled too much are not counted."""
    policy_loss: PolicyLoss = "search"
    """`advantage`: the played action weighted by its clipped advantage over the value, for games
    played without search. `search`: cross-entropy with the search's policy target."""
    advantage_clip: float = Field(default=1.0, gt=0)
    """Advantages are clipped to this size on both sides."""
    entropy_bonus: float = Field(default=0.0, ge=0)
    """Weight of the policy's entropy, which the loss rewards; for games without search."""
    value_weight: float = Field(default=1.0, ge=0)
    """Weight of the value loss beside the policy loss."""
    root_value_share: float = Field(default=0.25, ge=0, le=1)
    """Share of the search's root value in the value target; the rest is the game's outcome."""
    td_lambda: float = Field(default=1.0, ge=0, le=1)
    """In a game with rewards, the weight of the rewards that were played in the value target; what
    is left to 1 goes to the root values along the way. 1 takes all rewards to the game's end."""
    final_td_lambda: float = Field(default=1.0, ge=0, le=1)
    """`td_lambda` at the end of the campaign, as a share of what it is at the start. Long returns
    carry news of a value far at once; short ones have less noise once values are known."""
    plies_left_weight: float = Field(default=0.1, ge=0, le=10)
    """Weight of the auxiliary loss: plies from a position to the end of its game."""
    window_positions: int = Field(default=250_000, ge=2)
    """Positions of the replay window while the campaign has not played more; c of `window_growth`.
    At least `batch_size`. The oldest games leave first."""
    window_growth: float = Field(default=0.4, ge=0, le=10)
    """How the window grows when n > c positions were played: to c (1 + b ((n / c)^a - 1) / a), of
    which this is b; 0 keeps it at c."""
    window_exponent: float = Field(default=0.7, gt=0, le=1)
    """a of the same formula."""
    surprise_share: float = Field(default=0.7, ge=0, le=1)
    """Share of the samples drawn by how far the search moved the policy; the rest is uniform."""
    surprise_cap: float = Field(default=2.0, ge=1, le=1000)
    """Most weight of one position in that draw, in units of the mean weight."""
    mirror: bool = True
    """Whether each sample is shown in a random view among those that the rules cannot tell apart
    (chess: mirrored, left to right, where no castling right is left)."""
    precision: Precision = "bf16"
    """`bf16` and `fp16` run convolutions in 16 bits (autocast); weights, logits and losses stay
    fp32. `fp16` rounds 8 times finer, over a narrower range: the loss is scaled to fit. It is for
    GPUs; CPUs run it many times slower than fp32. Processors without bfloat16 train in fp32."""

    def __post_init__(self) -> None:
        check_range("training.window_positions", self.window_positions, ge=self.batch_size)

    @property
    def num_micro_batches(self) -> int:
        """Parts of a step's batch; the last one may be short."""
        return -(-self.batch_size // self.micro_batch)

    def td_lambda_at(self, progress: float) -> float:
        """`td_lambda` after the share ``progress`` of the campaign: a straight line."""
        return self.td_lambda * (1 + (self.final_td_lambda - 1) * progress)

    def window_capacity(self, num_played: int) -> int:
        """Positions of the window after ``num_played`` positions of self-play in all."""
        base = self.window_positions
        if num_played <= base:
            return base
        exponent = self.window_exponent
        grown = 1 + self.window_growth * (math.pow(num_played / base, exponent) - 1) / exponent
        return round(base * grown)

    def num_steps(self, num_new_positions: int) -> int:
        """Optimiser steps that present ``num_new_positions`` as often as asked; at least one."""
        return max(1, round(num_new_positions * self.presentations / self.batch_size))


@settings_class("supervised")
class SupervisedSettings:
    """Learning from given games, before a campaign's first iteration or by `chess-snn games learn`.

    The policy learns the moves that were played and the value how the games ended. What is not here
    is as `[training]` says.
    """

    games: str = ""
    """Folder of the games: an import's or a campaign's. Where it is set, a campaign begins with a
    network that has learnt from them, otherwise with an untrained one."""
    digest: str = ""
    """Of these games; noted when a campaign starts. Others in that folder are refused."""
    epochs: int = Field(default=1, ge=0, le=10_000)
    """How often the network goes through the games; 0 leaves it untrained."""
    learning_rate: float = Field(default=0.0, ge=0, le=10)
    """Peak learning rate; 0 takes `training.learning_rate`."""
    window_positions: int = Field(default=2_000_000, ge=1)
    """Positions in memory at a time. More are learnt from in portions of whole shards."""
    checkpoint_minutes: float = Field(default=5.0, gt=0, le=1440)
    """Training between two checkpoints: about the most that a kill costs."""

    def __post_init__(self) -> None:
        if self.digest and not self.games:
            raise ConfigError(
                f'supervised.digest = "{self.digest}" is that of games, and supervised.games names '
                "none; set both or neither"
            )

    def applied_to(self, training: TrainingSettings) -> TrainingSettings:
        """What the optimiser is to do, where ``training`` is what it does in a campaign."""
        return replace(
            training,
            learning_rate=self.learning_rate or training.learning_rate,
            presentations=1.0,
            policy_loss="search",
            entropy_bonus=0.0,
            root_value_share=0.0,
            surprise_share=0.0,
        )
