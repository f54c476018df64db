"""Lines for people while a network trains: how far it is, the latest losses, and the pace."""

import time
from collections.abc import Callable
from typing import Final

from chess_snn.training.step_losses import StepFigures

_PERIOD_S: Final = 1.0
_SHOWN: Final = ("total", "policy", "value")


class StepLines:
    """Says a line about once a second, and at the last step.

    ``step 120/3000  loss 3.21 (policy 2.40, value 0.81)  4,800 samples/s``: losses are means over
    the steps since the line before, and so is the pace.
    """

    def __init__(
        self, say: Callable[[str], None], batch_size: int, period_s: float = _PERIOD_S
    ) -> None:
        """Say lines by ``say``; a step has ``batch_size`` samples."""
        self._say, self._batch_size, self._period_s = say, batch_size, period_s
        self._steps: list[StepFigures] = []
        self._said_s: float | None = None

    def on_step(self, figures: StepFigures) -> None:
        """Note the losses of a step; to be given to training as ``on_step``."""
        self._steps.append(figures)

    def on_progress(self, done: int, total: int) -> None:
        """Note that a step is done; to be given to training as ``on_progress``."""
        now_s = time.monotonic()
        if self._said_s is not None and now_s - self._said_s < self._period_s and done < total:
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
