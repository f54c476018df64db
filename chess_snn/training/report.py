"""What training steps come to: figures fetched from the device, and their means."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from chess_snn.errors import TrainingDivergedError
from chess_snn.training.step import FIGURES

StepFigures = dict[str, float]
"""By the names of :data:`chess_snn.training.step.FIGURES`, of one step."""


@dataclass(frozen=True, slots=True)
class MicroBatchUse:
    """From which step on micro-batches had which size."""

    step: int
    """Of the campaign."""
    micro_batch: int
    """As set, or halved where memory ran out."""


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What one call of :meth:`Trainer.run` did; losses are means over its steps."""

    steps: int
    samples: int
    value_loss: float
    """Cross-entropy with outcome and root value blended, nats."""
    policy_loss: float
    """With `policy_loss = "search"`, less ``target_entropy`` it is the divergence from the search's
    policy to the network's, nats."""
    plies_left_loss: float
    policy_entropy: float
    """Nats, over legal actions."""
    target_entropy: float
    """Of the policy target, nats."""
    value_mean_abs: float
    """Mean size of the predicted value, in [0, 1]."""
    gradient_norm: float
    """Before clipping."""
    learning_rate: float
    """At the last step."""
    seconds: float
    """Mean over ranks."""
    micro_batches: tuple[MicroBatchUse, ...]
    """The size at the beginning, and each that memory forced."""
    shares: tuple[int, ...]
    """Micro-batches a step of each rank, at the end."""

    @property
    def samples_per_s(self) -> float:
        """Training speed."""
        return self.samples / self.seconds if self.seconds else 0.0


class FigureLog:
    """The figures of steps, fetched from the device ``every`` so many steps at a time.

    Whoever asks a GPU for a number waits for all it has to do.
    """

    def __init__(self, first_step: int, every: int) -> None:
        self.steps: list[StepFigures] = []
        """Of the steps fetched so far."""
        self._first_step, self._every = first_step, every
        self._on_device: list[Tensor] = []

    def add(self, figures_F: Tensor) -> None:
        """Note a step.

        Raises:
            TrainingDivergedError: as :meth:`fetch` does.
        """
        self._on_device.append(figures_F)
        if len(self._on_device) >= self._every:
            self.fetch()

    def fetch(self) -> None:
        """Fetch what is still on the device.

        Raises:
            TrainingDivergedError: a loss or gradient is not finite; names the step.
        """
        if not self._on_device:
            return
        for numbers in torch.stack(self._on_device).tolist():
            figures = dict(zip(FIGURES, numbers, strict=True))
            if not math.isfinite(figures["gradient_norm"]) or not math.isfinite(figures["total"]):
                raise TrainingDivergedError(
                    f"training step {self._first_step + len(self.steps)} is not finite: loss "
                    f"{figures['total']:g}, gradient norm {figures['gradient_norm']:g}; lower "
                    "training.learning_rate or set training.precision = \"fp32\""
                )
            self.steps.append(figures)
        self._on_device.clear()


def make_report(
    steps: Sequence[StepFigures], batch_size: int, learning_rate: float, seconds: float,
    micro_batches: tuple[MicroBatchUse, ...], shares: tuple[int, ...],
) -> TrainingReport:
    """The report of ``steps``; without any, its means are 0."""

    def mean(name: str) -> float:
        return sum(step[name] for step in steps) / max(1, len(steps))

    return TrainingReport(
        steps=len(steps),
        samples=len(steps) * batch_size,
        value_loss=mean("value"),
        policy_loss=mean("policy"),
        plies_left_loss=mean("plies_left"),
        policy_entropy=mean("entropy"),
        target_entropy=mean("target_entropy"),
        value_mean_abs=mean("value_mean_abs"),
        gradient_norm=mean("gradient_norm"),
        learning_rate=learning_rate,
        seconds=seconds,
        micro_batches=micro_batches,
        shares=shares,
    )
