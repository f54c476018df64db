"""The losses of a training by optimiser step, thinned to a curve that is small enough to keep."""

import math
from collections.abc import Sequence
from typing import Final

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


def thin(steps: Sequence[StepFigures]) -> StepLosses:
    """At most 100 points, each the mean over a run of consecutive steps.

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
