"""Positions on which every network of a game is measured, whatever games its campaign plays.

Held-out games become harder as a network improves: fewer are drawn, and its opponent, itself, errs
less. So their figures may get worse while it learns. These positions stay, and an engine has said
what to play and how they stand; docs/architecture.md has the commands that made them.
"""

from pathlib import Path
from typing import Final

from chess_snn.data import ReplayWindow
from chess_snn.games.base import Game
from chess_snn.training import Trainer, measure_holdout

_FOLDER: Final = Path(__file__).parents[2] / "evaluation" / "data"
_MOST_POSITIONS: Final = 1_000_000
_HELD_OUT: Final = 2**30
"""One game in so many: none."""


def reference_shard(game: Game) -> Path:
    """The shard of the labelled games of ``game``, which may not exist."""
    return _FOLDER / f"reference-{game.spec.name}"


def measure_reference(trainer: Trainer) -> dict[str, float]:
    """Metrics of the trainer's network on the positions; none in a game that has none.

    ``reference_policy_accuracy`` is the share of positions in which its likeliest action is the
    engine's best; ``reference_value_loss`` the cross-entropy with the engine's value, nats. That
    with the engine's policy is left out: of a network that is sure of its moves, and often right,
    it is higher than of one that knows nothing.

    Raises:
        CorruptDataError: the shard is damaged.
    """
    shard = reference_shard(trainer.game)
    if not shard.exists():
        return {}
    window = ReplayWindow.load(trainer.game, [shard], _MOST_POSITIONS, _HELD_OUT)
    report = measure_holdout(trainer, window, "training", root_value_share=1.0)
    if report is None:
        return {}
    return {
        "reference_policy_accuracy": report.policy_accuracy,
        "reference_value_loss": report.value_target_loss,
    }
