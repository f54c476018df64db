"""Losses, the optimiser loop and checkpoints."""

from chess_snn.training.checkpoint import WEIGHTS, load_trainer, save_checkpoint
from chess_snn.training.report import TrainingReport
from chess_snn.training.schedule import IterationPlan
from chess_snn.training.settings import TrainingSettings
from chess_snn.training.trainer import Trainer

__all__ = [
    "WEIGHTS",
    "IterationPlan",
    "Trainer",
    "TrainingReport",
    "TrainingSettings",
    "load_trainer",
    "save_checkpoint",
]
