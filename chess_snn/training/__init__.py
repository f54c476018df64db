"""Losses, the optimiser loop on one device or over ranks, datasets, and checkpoints."""

from typing import TYPE_CHECKING

from chess_snn.later import exports

if TYPE_CHECKING:
    from chess_snn.known import WEIGHTS
    from chess_snn.training.checkpoint import (
        load_trainer,
        load_weights,
        load_weights_alone,
        save_checkpoint,
    )
    from chess_snn.training.checkpoint_files import check_checkpoint, step_checkpoints
    from chess_snn.training.ranks import ALONE, RankInfo, Ranks, joined_ranks
    from chess_snn.training.report import (
        StepLines,
        StepListener,
        StepLosses,
        TrainingReport,
        thin,
    )
    from chess_snn.training.schedule import (
        DatasetShard,
        IterationPlan,
        TrainingSchedule,
        plan_schedule,
    )
    from chess_snn.training.settings import SupervisedSettings, TrainingSettings
    from chess_snn.training.supervised import (
        HoldoutReport,
        Points,
        check_newest,
        measure_holdout,
        train_supervised,
    )
    from chess_snn.training.trainer import Trainer
else:
    __getattr__ = exports(__name__)
