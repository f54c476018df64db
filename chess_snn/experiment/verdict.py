"""Verdicts over seeds: the mean difference of a variant, its interval, and what that says.

Seeds differ by more than most changes do, so the seed is the unit: Student's interval of the
differences, one a seed, holds both the variance between seeds and that within a match (Agarwal et
al. 2021, "Deep reinforcement learning at the edge of the statistical precipice", section 3, on what
few seeds can say).

Who looks after each seed, and stops once the interval excludes 0, errs more often than an interval
says. The error rate is then shared evenly among the looks (Bonferroni), so that all of them
together err at most that often.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

import numpy as np

ERROR_RATE: Final = 0.05
MOST_SEEDS: Final = 200
"""More are not proposed."""
_NUM_ANGLES: Final = 20_001

Words = Literal["better", "worse", "not decided"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of some seeds."""

    mean: float
    low: float
    high: float
    """95 % interval, or a wider one for several looks; infinite for one seed."""
    num_seeds: int
    more_seeds: int | None
    """About so many would decide it, if they differ as these; None if that is not known, or is
    more than :data:`MOST_SEEDS`."""

    @property
    def words(self) -> Words:
        """Whether the variant is better or worse than the first one."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "not decided"

    def __str__(self) -> str:
        """``better``, or ``not decided; about 3 more seeds``."""
        if self.words != "not decided" or self.more_seeds is None:
            return self.words
        return f"{self.words}; about {self.more_seeds} more seeds"


def over_seeds(
    differences: Sequence[float], errors: Sequence[float], *, looks: int = 1
) -> Verdict:
    """Judge a variant by its difference to the first one with each seed.

    Args:
        differences: one a seed, above 0 where the variant is better.
        errors: standard error of each difference by itself. They count where all differences are
            equal, which says nothing of the variance between seeds.
        looks: how often such a verdict is asked for before the experiment ends at the latest.
    """
    number, mean = len(differences), float(np.mean(differences))
    if number == 1:
        return Verdict(mean, -math.inf, math.inf, 1, None)
    spread = float(np.std(differences, ddof=1)) or float(np.sqrt(np.mean(np.square(errors))))

    def half(seeds: int) -> float:
        return student_quantile(1 - ERROR_RATE / looks, seeds - 1) * spread / math.sqrt(seeds)

    more = next((n - number for n in range(number, MOST_SEEDS) if half(n) < abs(mean)), None)
    return Verdict(mean, mean - half(number), mean + half(number), number, more)


@cache
def student_quantile(confidence: float, degrees: int) -> float:
    """The two-sided quantile of Student's t, also for the fewest degrees of freedom.

    With t = sqrt(degrees) tan(angle) the density is a power of a cosine, which is summed.
    """
    angles = np.linspace(0.0, np.pi / 2, _NUM_ANGLES)
    density = np.cos(angles) ** (degrees - 1)
    below = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    angle = np.interp(confidence, below / below[-1], angles)
    return math.sqrt(degrees) * math.tan(float(angle))
