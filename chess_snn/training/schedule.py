"""The learning rate over a whole campaign, not over an iteration."""

import math
from dataclasses import dataclass

from chess_snn.training.settings import TrainingSettings


@dataclass(frozen=True, slots=True)
class IterationPlan:
    """Where one iteration's training stands in its campaign."""

    num_steps: int
    """Optimiser steps of this iteration."""
    progress_first: float
    """Share of the campaign done when it starts, in [0, 1]."""
    progress_last: float
    """Share done when it ends, as far as one knows before."""

    def progress(self, step: int) -> float:
        """Share of the campaign done before ``step`` of this iteration, in [0, 1]."""
        gain = self.progress_last - self.progress_first
        return min(1.0, self.progress_first + gain * step / self.num_steps)


def learning_rate(settings: TrainingSettings, steps_done: int, progress: float) -> float:
    """Linear warm-up by optimiser steps, cosine decay by the campaign's progress."""
    warmup = min(1.0, (steps_done + 1) / (settings.warmup_steps + 1))
    floor = settings.final_learning_rate
    decay = floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress))
    return settings.learning_rate * warmup * decay
