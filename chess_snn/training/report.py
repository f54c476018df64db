"""What training steps come to: figures fetched from the device once a step, and their means."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from chess_snn.training.losses import Losses

StepFigures = dict[str, float]
"""The fields of :class:`Losses` and ``gradient_norm``, of one step."""


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

    @property
    def samples_per_s(self) -> float:
        """Training speed."""
        return self.samples / self.seconds if self.seconds else 0.0


def fetch_figures(losses: Losses, gradient_norm: Tensor) -> StepFigures:
    """The figures of one step, in one transfer from the device."""
    tensors = {field.name: getattr(losses, field.name) for field in fields(losses)}
    tensors["gradient_norm"] = gradient_norm
    numbers = torch.stack([tensor.detach() for tensor in tensors.values()]).tolist()
    return dict(zip(tensors, numbers, strict=True))


def make_report(
    steps: Sequence[StepFigures], batch_size: int, learning_rate: float, seconds: float
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
    )
