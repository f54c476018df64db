"""The settings of training."""

import math
from dataclasses import replace
from typing import Final, Literal

from pydantic import Field

from chess_snn.errors import ConfigError
from chess_snn.nets import NetConfig
from chess_snn.settings import check_range, settings_class

Precision = Literal["fp32", "bf16"]
WINDOW_EXPONENT: Final = 0.7
"""a of the formula by which the replay window grows."""


@settings_class("training")
class TrainingSettings:
    """How a network learns from the replay window."""

    batch_size: int = Field(default=256, ge=2)
    """Positions of one optimiser step."""
    micro_batch: int = Field(default=128, ge=2)
    """Positions of a step that are normalised together; each CPU thread takes one such part at a
    time. The weights depend on this size, but not on the number of threads."""
    presentations: float = Field(default=4.0, gt=0, le=1000)
    """How often each new position is shown in total; determines the steps of an iteration."""
    learning_rate: float = Field(default=6e-3, gt=0, le=10)
    """Peak learning rate of AdamW, the most important setting. Tune it for each network size, and
    separately for a spiking network and its ReLU baseline."""
    final_learning_rate: float = Field(default=0.1, ge=0, le=1)
    """Learning rate at the end of the campaign, as a share of the peak."""
    warmup_steps: int = Field(default=50, ge=0)
    """Number of first steps over which the learning rate rises from zero."""
    weight_decay: float = Field(default=1e-4, ge=0, le=1)
    """Decoupled weight decay; normalisation layers and biases have none."""
    average_decay: float = Field(default=0.0, ge=0, lt=1)
    """Share of itself that a running average of the weights keeps in a step; 0 has no average.
    Above 0 the average plays; it keeps less of itself in the first steps."""
    skip_limit: int = Field(default=5, ge=0, le=1000)
    """Consecutive steps that may be skipped because their loss or gradient is not finite. One more
    stops the campaign and discards the generation. A skipped step changes nothing."""
    value_weight: float = Field(default=1.0, ge=0)
    """Weight of the value loss beside the policy loss."""
    root_value_share: float = Field(default=0.25, ge=0, le=1)
    """Share of the search's root value in the value target; the rest is the game's outcome."""
    td_lambda: float = Field(default=1.0, ge=0, le=1)
    """Lambda of the value target in a game with rewards. 1 sums all rewards up to the game's end,
    smaller values use more of the root values along the way."""
    final_td_lambda: float = Field(default=1.0, ge=0, le=1)
    """`td_lambda` at the end of the campaign, as a share of its first value. Long returns spread
    new values faster; short ones have less noise once values are known."""
    plies_left_weight: float = Field(default=0.1, ge=0, le=10)
    """Weight of the auxiliary loss: plies from a position to the end of its game."""
    spike_rate_weight: float = Field(default=0.0, ge=0, le=1000)
    """Weight of the spike-rate penalty in the loss. The rate is the share of neurons and ticks that
    spike, in [0, 1] (of `ilif` neurons, spikes as a share of `net.levels`). 0 does not measure it
    in training. For spiking networks only."""
    change_rate_weight: float = Field(default=0.0, ge=0, le=1000)
    """Weight of a penalty on spikes that change until the same player moves again. These are two
    plies in chess and one in 2048; half of a batch are then such neighbours of the other half. The
    rate is the mean difference, as a share like `training.spike_rate_weight`'s. For spiking
    networks only."""
    window_positions: int = Field(default=250_000, ge=2)
    """Initial size of the replay window in positions, at least `batch_size`; c of `window_growth`.
    The oldest games leave first."""
    window_growth: float = Field(default=0.4, ge=0, le=10)
    """b of the window's size c (1 + b ((n / c)^a - 1) / a) after n > c played positions, where a is
    0.7; 0 keeps the size at c."""
    surprise_share: float = Field(default=0.7, ge=0, le=1)
    """Share of the samples drawn by how much the search changed the policy; the rest is uniform."""
    precision: Precision = "bf16"
    """`bf16` computes convolutions in 16 bits (autocast); weights, logits and losses stay fp32.
    Processors without bfloat16 train in fp32."""

    def __post_init__(self) -> None:
        check_range("training.window_positions", self.window_positions, ge=self.batch_size)
        for name in ("batch_size", "micro_batch") if self.change_rate_weight else ():
            if getattr(self, name) % 2:
                raise ConfigError(
                    f"training.{name} must be even with training.change_rate_weight, got "
                    f"{getattr(self, name)}; use {getattr(self, name) + 1}"
                )

    def check_network(self, network: NetConfig) -> None:
        """Refuse settings that ``network`` cannot be trained with.

        Raises:
            ConfigError: one is for networks of other neurons.
        """
        for name in ("spike_rate_weight", "change_rate_weight"):
            if (weight := getattr(self, name)) and not network.is_spiking:
                raise ConfigError(
                    f"training.{name} = {weight:g} is for spikes, and "
                    f'net.activation = "relu" has none; set training.{name} = 0'
                )

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
        grown = (
            1 + self.window_growth * (math.pow(num_played / base, WINDOW_EXPONENT) - 1)
            / WINDOW_EXPONENT
        )
        return round(base * grown)

    def num_steps(self, num_new_positions: int) -> int:
        """Optimiser steps that present ``num_new_positions`` as often as asked; at least one."""
        return max(1, round(num_new_positions * self.presentations / self.batch_size))


@settings_class("supervised")
class SupervisedSettings:
    """Pretraining on a dataset of games, before a campaign or by `chess-snn games learn`.

    The policy learns the moves that were played, or the labels of a teacher or a search; the value
    learns the results and the labels. Everything else is as in `[training]`.
    """

    games: str = ""
    """Folder of the dataset: an import or a campaign. If set, a campaign begins with a network
    pretrained on it, otherwise with an untrained one."""
    digest: str = ""
    """Digest of the dataset, written when a campaign starts; a changed dataset is an error."""
    epochs: int = Field(default=1, ge=0, le=10_000)
    """Passes over the dataset; 0 leaves the network untrained."""
    learning_rate: float = Field(default=0.0, ge=0, le=10)
    """Peak learning rate; 0 takes `training.learning_rate`."""
    root_value_share: float = Field(default=0.75, ge=0, le=1)
    """Share of the teacher's or the search's value in the value target; the rest is the result. In
    games that were imported and not labelled, both are the result."""
    window_positions: int = Field(default=2_000_000, ge=1)
    """Positions in memory at a time; a larger dataset is read in chunks of whole shards."""
    checkpoint_minutes: float = Field(default=5.0, gt=0, le=1440)
    """Minutes of training between two checkpoints, and the most that a kill loses."""

    def __post_init__(self) -> None:
        if self.digest and not self.games:
            raise ConfigError(
                f'supervised.digest = "{self.digest}" is that of games, and supervised.games names '
                "none; set both or neither"
            )

    def applied_to(self, training: TrainingSettings) -> TrainingSettings:
        """Return the optimiser's settings, where ``training`` has those of a campaign."""
        return replace(
            training,
            learning_rate=self.learning_rate or training.learning_rate,
            presentations=1.0,
            root_value_share=self.root_value_share,
            surprise_share=0.0,
        )
