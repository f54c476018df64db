"""The scale of the loss, for gradients in fp16: kept and changed on the device, without waiting.

fp16 ends at 6e-8, and many gradients are smaller. So the loss is multiplied by a scale before the
backward pass, and the gradients are divided by it after (Micikevicius et al. 2018,
arXiv 1710.03740, §3.2). A scale at which gradients overflow is halved, and one that held for many
steps is doubled. Rule and numbers are those of ``torch.amp.GradScaler``
(docs.pytorch.org/docs/stable/amp.html), but for the least scale. That class judges a step by its
gradients alone; here a step is judged once, by its losses too, and the same way on all ranks.
"""

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from chess_snn.training.settings import Precision

FIRST_SCALE: Final = 2.0**16
GROWTH: Final = 2.0
BACKOFF: Final = 0.5
GROWTH_INTERVAL: Final = 2000
"""Steps in a row, all taken, after which the scale is tried larger."""
LEAST_SCALE: Final = 1.0
"""What overflows at this scale overflows by itself, and no smaller one is tried."""


class LossScale:
    """No scale: what the other precisions need."""

    def __init__(self, device: torch.device | str) -> None:
        self.factor = torch.ones((), device=device)
        """float32[]: what the loss is multiplied by. It stays where it is in memory."""

    def scaled(self, loss: Tensor) -> Tensor:
        """What to go backward from, where ``loss`` float32[] is what is minimised."""
        return loss

    def unscale(self, gradients: Sequence[Tensor]) -> None:
        """Divide ``gradients``, float32 of any shapes, by the scale, in place."""

    def update(self, found_inf: Tensor) -> None:
        """After a step: make the scale that of the next one.

        Args:
            found_inf: float32[]: 1 where a figure of the step was not finite, so that it was left
                out, and else 0.
        """

    def state(self) -> dict[str, Tensor]:
        """All that training goes on with, by name; a tensor filled in place is taken over."""
        return {}

    def value(self) -> float | None:
        """The scale, for which the device is waited for; None where there is none."""
        return None


class DynamicLossScale(LossScale):
    """As large a scale as gradients allow. It is a power of two, so that scaling rounds nothing."""

    def __init__(
        self, device: torch.device | str, first: float = FIRST_SCALE,
        growth_interval: int = GROWTH_INTERVAL,
    ) -> None:
        """Begin with the scale ``first``, a power of two and at least ``LEAST_SCALE``."""
        super().__init__(device)
        self.factor.fill_(first)
        self._good_steps = torch.zeros((), dtype=torch.int32, device=device)
        self._growth_interval = growth_interval

    def scaled(self, loss: Tensor) -> Tensor:
        """As :meth:`LossScale.scaled`."""
        return loss * self.factor

    def unscale(self, gradients: Sequence[Tensor]) -> None:
        """As :meth:`LossScale.unscale`; what is not finite stays so."""
        torch._foreach_mul_(list(gradients), self.factor.reciprocal())

    def update(self, found_inf: Tensor) -> None:
        """As :meth:`LossScale.update`."""
        torch._amp_update_scale_(
            self.factor, self._good_steps, found_inf, GROWTH, BACKOFF, self._growth_interval
        )
        self.factor.clamp_(min=LEAST_SCALE)

    def state(self) -> dict[str, Tensor]:
        """As :meth:`LossScale.state`: float32[] and int32[]."""
        return {"factor": self.factor, "good_steps": self._good_steps}

    def value(self) -> float | None:
        """As :meth:`LossScale.value`."""
        return self.factor.item()


def make_loss_scale(precision: Precision, device: torch.device | str) -> LossScale:
    """The scale that gradients in ``precision`` need, on ``device``."""
    return DynamicLossScale(device) if precision == "fp16" else LossScale(device)
