"""Reports of training steps: figures fetched from the device, their means, curves and lines.

The losses by optimiser step are thinned to a curve that is small enough to keep. While a network
trains, lines for people show how far it is, the latest losses, and the pace.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from chess_snn.errors import TrainingDivergedError
from chess_snn.training.settings import TrainingSettings
from chess_snn.training.step import FIGURES
from chess_snn.types import LogFn

StepFigures = dict[str, float]
"""One optimiser step: ``step``, counted from 1 since the network was untrained, ``learning_rate``,
and the names of :data:`chess_snn.training.step.FIGURES`."""
StepLosses = list[dict[str, float]]
"""Points of a loss curve, rising by ``step``; see :func:`thin`."""

MOST_POINTS: Final = 100
_KEPT: Final = (
    "total", "policy", "value", "plies_left", "entropy", "gradient_norm", "learning_rate",
)
_DIGITS: Final = 6
_PERIOD_S: Final = 1.0
_SHOWN: Final = ("total", "policy", "value")
_HINT: Final = 'lower training.learning_rate or set training.precision = "fp32"'

StepListener = Callable[[StepFigures], None]
"""Called with the figures of each step that was taken, when they have come from the device."""


def thin(steps: Sequence[StepFigures]) -> StepLosses:
    """Thin to at most 100 points, each the mean over a run of consecutive steps.

    Args:
        steps: those that were taken, in their order.

    Returns:
        For each run the ``step`` of its last step, and the means of ``total``, ``policy``,
        ``value``, ``plies_left`` (losses), ``entropy`` (of the policy, nats), ``gradient_norm`` and
        ``learning_rate``, rounded to 6 digits.
    """
    length = math.ceil(len(steps) / MOST_POINTS)
    runs = [steps[first : first + length] for first in range(0, len(steps), max(1, length))]
    return [
        {"step": run[-1]["step"]} | {name: _mean(run, name) for name in _KEPT} for run in runs
    ]


def _mean(run: Sequence[StepFigures], name: str) -> float:
    return float(f"{math.fsum(step[name] for step in run) / len(run):.{_DIGITS}g}")


class StepLines:
    """Says a line about once a second, and at the last step.

    ``step 120/3000  loss 3.21 (policy 2.40, value 0.81)  4,800 samples/s``: losses are means over
    the steps since the line before, and so is the pace.
    """

    def __init__(self, say: LogFn, batch_size: int) -> None:
        """Say lines by ``say``; a step has ``batch_size`` samples."""
        self._say, self._batch_size = say, batch_size
        self._steps: list[StepFigures] = []
        self._said_s: float | None = None

    def on_step(self, figures: StepFigures) -> None:
        """Note the losses of a step; to be given to training as ``on_step``."""
        self._steps.append(figures)

    def on_progress(self, done: int, total: int) -> None:
        """Note that a step is done; to be given to training as ``on_progress``."""
        now_s = time.monotonic()
        if self._said_s is not None and now_s - self._said_s < _PERIOD_S and done < total:
            return
        line = f"step {done}/{total}"
        if self._steps:
            loss, policy, value = (
                sum(step[name] for step in self._steps) / len(self._steps) for name in _SHOWN
            )
            line += f"  loss {loss:.2f} (policy {policy:.2f}, value {value:.2f})"
            if self._said_s is not None:  # the first step compiles and allocates
                pace = len(self._steps) * self._batch_size / (now_s - self._said_s)
                line += f"  {pace:,.0f} samples/s"
        self._say(line)
        self._steps, self._said_s = [], now_s


@dataclass(frozen=True, slots=True)
class MicroBatchUse:
    """Size of micro-batches, and the step from which on it was used."""

    step: int
    """Step of the campaign."""
    micro_batch: int
    """Samples as set, or halved where memory ran out."""


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """Report of one call of :meth:`Trainer.run`; losses are means over the steps taken."""

    steps: int
    """Taken, without those that were skipped."""
    skipped_steps: int
    """Whose loss or gradient was not finite; they changed nothing."""
    samples: int
    total_loss: float
    """Loss to minimise: the weighted sum of the others."""
    value_loss: float
    """Cross-entropy with outcome and root value blended, nats."""
    policy_loss: float
    """Cross-entropy with the policy target, nats; less ``target_entropy`` it is the divergence from
    the search's policy to the network's."""
    plies_left_loss: float
    policy_entropy: float
    """Nats, over legal actions."""
    target_entropy: float
    """Entropy of the policy target, nats."""
    value_mean_abs: float
    """Mean size of the predicted value, in [0, ``GameSpec.value_limit``]."""
    value_error: float
    """Mean distance of the predicted value from its target, in the same units."""
    spike_rate: float | None
    """Share of neurons and virtual ticks that spiked, in [0, 1]; None without a penalty on it."""
    change_rate: float | None
    """The same of the differences in pairs of positions; None without a penalty on it."""
    gradient_norm: float
    """Before clipping."""
    learning_rate: float
    """Learning rate of the last step."""
    seconds: float
    """Mean over ranks."""
    micro_batches: tuple[MicroBatchUse, ...]
    """The size at the beginning, and each that memory forced."""
    shares: tuple[int, ...]
    """Micro-batches a step of each rank, at the end."""
    step_losses: StepLosses
    """Losses by optimiser step, at most 100 points."""

    @property
    def samples_per_s(self) -> float:
        """Training speed."""
        return self.samples / self.seconds if self.seconds else 0.0


class FigureLog:
    """The figures of steps, fetched from the device ``every`` so many steps at a time.

    Reading a number from a GPU waits for all its work.
    """

    def __init__(
        self, first_step: int, every: int, skip_limit: int, on_step: StepListener | None = None
    ) -> None:
        """Begin at step ``first_step`` of the campaign; see ``training.skip_limit``."""
        self.steps: list[StepFigures] = []
        """Figures of the steps fetched so far that were taken."""
        self.num_skipped = 0
        """Steps fetched so far that were not finite, and so not taken."""
        self._first_step, self._every, self._skip_limit = first_step, every, skip_limit
        self._on_step = on_step
        self._num_in_a_row = 0
        self._on_device: list[Tensor] = []
        self._rates: list[float] = []

    def add(self, figures_F: Tensor, learning_rate: float = 0.0) -> None:
        """Note a step, and the learning rate that it was made with.

        Raises:
            TrainingDivergedError: as :meth:`fetch` does.
        """
        self._on_device.append(figures_F)
        self._rates.append(learning_rate)
        if len(self._on_device) >= self._every:
            self.fetch()

    def fetch(self) -> None:
        """Fetch what is still on the device.

        Raises:
            TrainingDivergedError: more steps in a row than may be skipped are not finite; names
                the last.
        """
        if not self._on_device:
            return
        for numbers, rate in zip(
            torch.stack(self._on_device).tolist(), self._rates, strict=True
        ):
            figures: StepFigures = dict(zip(FIGURES, numbers, strict=True))
            if all(map(math.isfinite, numbers)):
                self._take(figures | {"step": self._next_step() + 1, "learning_rate": rate})
            else:
                self._skip(figures)
        self._on_device.clear()
        self._rates.clear()

    def end(self) -> None:
        """Fetch what is still on the device, after the last step.

        Raises:
            TrainingDivergedError: as :meth:`fetch` does, or no step was taken at all.
        """
        self.fetch()
        if self.num_skipped and not self.steps:
            raise TrainingDivergedError(
                f"none of {self.num_skipped} training steps was finite; {_HINT}"
            )

    def _next_step(self) -> int:
        """The number of the first step that was not fetched yet."""
        return self._first_step + len(self.steps) + self.num_skipped

    def _take(self, figures: StepFigures) -> None:
        self.steps.append(figures)
        self._num_in_a_row = 0
        if self._on_step is not None:
            self._on_step(figures)

    def _skip(self, figures: StepFigures) -> None:
        step = self._next_step()
        self.num_skipped += 1
        self._num_in_a_row += 1
        if self._num_in_a_row > self._skip_limit:
            raise TrainingDivergedError(
                f"training step {step} is not finite: loss {figures['total']:g}, gradient norm "
                f"{figures['gradient_norm']:g}, after {self._num_in_a_row - 1} skipped before it; "
                f"{_HINT}"
            )


def make_report(
    log: FigureLog, settings: TrainingSettings, learning_rate: float, seconds: float,
    micro_batches: tuple[MicroBatchUse, ...], shares: tuple[int, ...],
) -> TrainingReport:
    """The report of the steps in ``log``; without any, its means are 0."""
    steps: Sequence[StepFigures] = log.steps

    def mean(name: str) -> float:
        return sum(step[name] for step in steps) / max(1, len(steps))

    return TrainingReport(
        steps=len(steps),
        skipped_steps=log.num_skipped,
        samples=len(steps) * settings.batch_size,
        total_loss=mean("total"),
        value_loss=mean("value"),
        policy_loss=mean("policy"),
        plies_left_loss=mean("plies_left"),
        policy_entropy=mean("entropy"),
        target_entropy=mean("target_entropy"),
        value_mean_abs=mean("value_mean_abs"),
        value_error=mean("value_error"),
        spike_rate=mean("spike_rate") if settings.spike_rate_weight else None,
        change_rate=mean("change_rate") if settings.change_rate_weight else None,
        gradient_norm=mean("gradient_norm"),
        learning_rate=learning_rate,
        seconds=seconds,
        micro_batches=micro_batches,
        shares=shares,
        step_losses=thin(steps),
    )
