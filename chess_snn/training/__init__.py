"""Losses, the optimiser loop on one device or over ranks, and checkpoints."""

from chess_snn.training.checkpoint import WEIGHTS, load_trainer, save_checkpoint
from chess_snn.training.ranks import ALONE, RankPlace, Ranks, joined_ranks
from chess_snn.training.report import TrainingReport
from chess_snn.training.schedule import IterationPlan
from chess_snn.training.settings import TrainingSettings
from chess_snn.training.trainer import Trainer

__all__ = [
    "ALONE",
    "WEIGHTS",
    "IterationPlan",
    "RankPlace",
    "Ranks",
    "Trainer",
    "TrainingReport",
    "TrainingSettings",
    "joined_ranks",
    "load_trainer",
    "save_checkpoint",
]
