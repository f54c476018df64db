"""Losses, the optimiser loop on one device or over ranks, datasets, and checkpoints."""

from chess_snn.training.checkpoint import (
    WEIGHTS,
    check_checkpoint,
    load_trainer,
    load_weights,
    load_weights_alone,
    save_checkpoint,
)
from chess_snn.training.ranks import ALONE, RankInfo, Ranks, joined_ranks
from chess_snn.training.report import (
    StepLines,
    StepListener,
    StepLosses,
    TrainingReport,
    thin,
)
from chess_snn.training.schedule import DatasetShard, IterationPlan, TrainingSchedule, plan_schedule
from chess_snn.training.settings import SupervisedSettings, TrainingSettings
from chess_snn.training.supervised import (
    HoldoutReport,
    Points,
    check_newest,
    measure_holdout,
    step_checkpoints,
    train_supervised,
)
from chess_snn.training.trainer import Trainer

__all__ = [
    "ALONE",
    "WEIGHTS",
    "DatasetShard",
    "HoldoutReport",
    "IterationPlan",
    "Points",
    "RankInfo",
    "Ranks",
    "StepLines",
    "StepListener",
    "StepLosses",
    "SupervisedSettings",
    "Trainer",
    "TrainingReport",
    "TrainingSchedule",
    "TrainingSettings",
    "check_checkpoint",
    "check_newest",
    "joined_ranks",
    "load_trainer",
    "load_weights",
    "load_weights_alone",
    "measure_holdout",
    "plan_schedule",
    "save_checkpoint",
    "step_checkpoints",
    "thin",
    "train_supervised",
]
