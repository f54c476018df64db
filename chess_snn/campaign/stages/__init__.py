"""The stages of an iteration, and networks trained without a campaign.

Each stage reads what earlier ones committed, does its work, commits the outcome and returns facts
about it. Run again, it finds the outcome and returns the same facts: the caller may be killed
and may repeat. Nothing here knows which process or machine it runs in: where the campaign folder is
not seen, a stage is given the values that depend on it, and finds the committed files that it reads
under the same paths.
"""

from typing import TYPE_CHECKING

from chess_snn.later import exports

if TYPE_CHECKING:
    from chess_snn.campaign.stages.first_generation import (
        commit_first_generation,
        first_entropy_ratio,
        prepare_first_generation,
    )
    from chess_snn.campaign.stages.self_play import play_shard
    from chess_snn.campaign.stages.training import (
        check_training_inputs,
        step_losses,
        train_generation,
        trained_before,
    )
    from chess_snn.campaign.stages.window import window_shards
else:
    __getattr__ = exports(__name__)
