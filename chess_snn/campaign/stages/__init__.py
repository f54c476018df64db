"""The stages of an iteration, as functions of the campaign folder alone; networks without one.

Each stage reads what earlier ones committed, does its work, commits the outcome and returns facts
about it. Run again, it finds the outcome and returns the same facts: whoever calls may be killed
and may repeat. Nothing here knows which process or machine it runs in.
"""

from chess_snn.campaign.stages.first_generation import (
    commit_first_generation,
    first_entropy_ratio,
    prepare_first_generation,
)
from chess_snn.campaign.stages.self_play import play_shard, shards_played_before
from chess_snn.campaign.stages.training import (
    check_training_inputs,
    step_losses,
    train_generation,
    trained_before,
)
from chess_snn.campaign.stages.window import window_shards

__all__ = [
    "check_training_inputs",
    "commit_first_generation",
    "first_entropy_ratio",
    "play_shard",
    "prepare_first_generation",
    "shards_played_before",
    "step_losses",
    "train_generation",
    "trained_before",
    "window_shards",
]
