"""Losses, the optimiser loop on one device or over ranks, given games, and checkpoints."""

from chess_snn.training.checkpoint import (
    WEIGHTS,
    check_checkpoint,
    load_trainer,
    load_weights,
    load_weights_alone,
    save_checkpoint,
)
from chess_snn.training.course import Course, GivenShard, plan_course
from chess_snn.training.holdout import HoldoutReport, measure_holdout
from chess_snn.training.ranks import ALONE, RankPlace, Ranks, joined_ranks
from chess_snn.training.report import StepListener, TrainingReport
from chess_snn.training.schedule import IterationPlan
from chess_snn.training.settings import SupervisedSettings, TrainingSettings
from chess_snn.training.step_lines import StepLines
from chess_snn.training.step_losses import StepFigures, StepLosses, thin
from chess_snn.training.supervised import (
    Points,
    check_newest,
    step_checkpoint,
    step_checkpoints,
    supervised_progress,
    train_supervised,
)
from chess_snn.training.trainer import Trainer

__all__ = [
    "ALONE",
    "WEIGHTS",
    "Course",
    "GivenShard",
    "HoldoutReport",
    "IterationPlan",
    "Points",
    "RankPlace",
    "Ranks",
    "StepFigures",
    "StepLines",
    "StepListener",
    "StepLosses",
    "SupervisedSettings",
    "Trainer",
    "TrainingReport",
    "TrainingSettings",
    "check_checkpoint",
    "check_newest",
    "joined_ranks",
    "load_trainer",
    "load_weights",
    "load_weights_alone",
    "measure_holdout",
    "plan_course",
    "save_checkpoint",
    "step_checkpoint",
    "step_checkpoints",
    "supervised_progress",
    "thin",
    "train_supervised",
]
