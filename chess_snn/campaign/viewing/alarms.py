"""Alarms: what commonly goes wrong when a network teaches itself, read off a campaign's receipts.

:func:`find_alarms` is called after each iteration. A figure that was not measured raises no alarm,
and iterations without it (not every generation is evaluated) are passed over. The same trouble is
reported again while it lasts, with the same ``(name, since_iteration)``; that pair is new when the
trouble is.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Figures = Mapping[str, float | None]
"""One iteration's, by name: a row of :func:`.result_rows`."""

SOFT_START: Final = 0.7
"""Least entropy of an untrained policy, as a share of a uniform one's: the best runs of an hour
began with 0.83 to 0.90, and networks of the ablation "soft start" have 0.42 to 0.54."""
DRAW_COLLAPSE: Final = 0.95
"""Share of draws among games from ordinary starts."""
LEAST_DECISIVE: Final = 0.1
"""Share of games with a winner from which a value of nothing but zeros is suspicious."""
LEAST_VALUE_SHARE: Final = 0.2
"""Mean size of the value over the share of games with a winner; 1 would be a perfect judge."""
COLLAPSED_ENTROPY: Final = 0.15
FLAT_ENTROPY: Final = 0.97
FLAT_ITERATIONS: Final = 10
"""Iterations after which a policy should prefer something."""
ELDER_SCORE: Final = 0.5
SCORE_DROP: Final = 0.1
SCORE_WINDOW: Final = 3
"""Scores whose mean is compared: one alone is too noisy."""
POINTS_DROP: Final = 0.2
"""Drop below the best mean of points, as a share."""
LEAST_CONVERSION: Final = 0.5
CONVERSION_ITERATIONS: Final = 5
"""Iterations after which simple wins should be won, and games end by themselves."""
MOST_PRESENTATIONS: Final = 16.0
"""Samples drawn for each new position; more is learning by heart."""
LEAST_WINDOW_BATCHES: Final = 8
PATIENCE: Final = 3
"""Measurements in a row that must look wrong, where one alone may be chance."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One thing that looks wrong now."""

    name: str
    since_iteration: int
    """First iteration of the unbroken run, up to the newest, that looks so."""
    saw: str
    """The figures, in words."""
    advice: str
    """Advice, with the names of settings."""

    def __str__(self) -> str:
        """All of it on one line."""
        return f"{self.name} since iteration {self.since_iteration}: {self.saw}; {self.advice}"


@dataclass(frozen=True, slots=True)
class _Rule:
    """An alarm that is raised when the figures of the newest iterations look wrong."""

    name: str
    metrics: tuple[str, ...]
    """Only iterations that measured all of them count."""
    is_wrong: Callable[..., bool]
    """Test of the metrics of one iteration, in this order."""
    saw: Callable[..., str]
    """The metrics of the newest iteration in words."""
    advice: str
    patience: int = PATIENCE
    """Measurements in a row that must look wrong."""
    least_iterations: int = 0
    """Iterations of the campaign before which nothing is wrong."""

    def find(self, history: Sequence[Figures]) -> Alarm | None:
        measured = _measured(history, self.metrics)
        wrong = list(itertools.takewhile(lambda row: self.is_wrong(*row[1]), reversed(measured)))
        if len(wrong) < self.patience or len(history) < self.least_iterations:
            return None
        return Alarm(self.name, wrong[-1][0], self.saw(*wrong[0][1]), self.advice)


@dataclass(frozen=True, slots=True)
class _Falling:
    """An alarm that is raised when the newest mean of a metric is far below its best mean."""

    name: str
    metric: str
    form: str
    least: Callable[[float], float]
    """The lowest mean without an alarm, from the best mean."""

    def find(self, history: Sequence[Figures]) -> Alarm | None:
        measured = _measured(history, (self.metric,))
        scores = [score for _, (score,) in measured]
        means = [
            sum(scores[first : first + SCORE_WINDOW]) / SCORE_WINDOW
            for first in range(len(scores) - SCORE_WINDOW + 1)
        ]
        if not means or means[-1] >= self.least(max(means)):
            return None
        best = means.index(max(means))
        since, _ = measured[best + SCORE_WINDOW]
        return Alarm(
            self.name, since,
            f"the last {SCORE_WINDOW} have a mean of {means[-1]:{self.form}}, and before iteration "
            f"{since} it was {means[best]:{self.form}}",
            "lower training.learning_rate or training.presentations, or raise "
            "training.window_positions",
        )


def find_alarms(rows: Sequence[Figures]) -> list[Alarm]:
    """Find what looks wrong after the newest of the iterations.

    Args:
        rows: those of iterations 0, 1, …, the newest last.

    Returns:
        At most one alarm of each name, in a fixed order; empty where all is well or unknown.
    """
    if not rows:
        return []
    found = (_hard_start(rows),
             *(rule.find(rows) for rule in _rules(len(rows))))
    return [alarm for alarm in found if alarm is not None]


def _hard_start(history: Sequence[Figures]) -> Alarm | None:
    ratio = history[0].get("entropy_ratio")
    if ratio is None or ratio >= SOFT_START or history[0].get("is_warm"):
        return None
    return Alarm(
        "hard start", 0,
        f"the untrained policy had {ratio:.0%} of a uniform policy's entropy, below "
        f"{SOFT_START:.0%}",
        "it begins with prejudices that games must undo first; start again with a smaller "
        "net.readout_gain",
    )


def _rules(num_iterations: int) -> tuple[_Rule | _Falling, ...]:
    return (
        _Rule(
            "draw collapse", ("ordinary_draw_rate",),
            lambda draws: draws > DRAW_COLLAPSE,
            lambda draws: f"{draws:.0%} of ordinary games are drawn or truncated, above "
                          f"{DRAW_COLLAPSE:.0%}",
            "raise self_play.practice_share_last, self_play.restart_share_last, "
            "self_play.material_share_last or search.simulations_last",
            least_iterations=CONVERSION_ITERATIONS,
        ),
        _Rule(
            "value stuck at the mean", ("mean_abs_value", "draw_rate"),
            lambda size, draws: 1.0 - draws >= LEAST_DECISIVE
                                and size < LEAST_VALUE_SHARE * (1.0 - draws),
            lambda size, draws: f"the mean size of the value is {size:.3f}, though "
                                f"{1.0 - draws:.0%} of the games have a winner",
            "raise training.value_weight or training.learning_rate, or lower "
            "training.root_value_share",
        ),
        _Rule(
            "policy entropy collapsed", ("entropy_ratio",),
            lambda ratio: ratio < COLLAPSED_ENTROPY,
            lambda ratio: f"the policy has {ratio:.0%} of a uniform policy's entropy, below "
                          f"{COLLAPSED_ENTROPY:.0%}",
            "lower training.learning_rate, or raise self_play.temperature_last or "
            "self_play.random_start_plies",
        ),
        _Rule(
            "policy entropy not falling", ("entropy_ratio",),
            lambda ratio: ratio > FLAT_ENTROPY,
            lambda ratio: f"the policy has {ratio:.0%} of a uniform policy's entropy after "
                          f"{num_iterations} iterations, above {FLAT_ENTROPY:.0%}",
            "raise training.learning_rate, training.presentations or search.simulations_first",
            patience=FLAT_ITERATIONS,
        ),
        _Rule(
            "newest not beating its elder", ("score_earlier",),
            lambda score: score < ELDER_SCORE,
            lambda score: f"it scores {score:.3f} against the earlier generation, below "
                          f"{ELDER_SCORE}",
            "lower training.learning_rate or training.presentations, or raise "
            "self_play.games_per_iteration",
        ),
        _Falling("score falling", "score", ".3f", lambda best: best - SCORE_DROP),
        _Falling("points falling", "points", ",.0f",
                 lambda best: best * (1 - POINTS_DROP)),
        _Rule(
            "won positions not converted", ("conversion_rate",),
            lambda rate: rate < LEAST_CONVERSION,
            lambda rate: f"{rate:.0%} of simple won endings are won, below {LEAST_CONVERSION:.0%}",
            "raise self_play.practice_share_first and self_play.practice_share_last, or lower "
            "search.discount so that a faster mate is better",
            least_iterations=CONVERSION_ITERATIONS + 1,
        ),
        _Rule(
            "training steps skipped", ("skipped_steps", "steps"),
            lambda skipped, _: skipped > 0,
            lambda skipped, steps: f"{skipped:,.0f} steps had a loss or gradient that is not "
                                   f"finite, and {steps:,.0f} were taken",
            'lower training.learning_rate, or set training.precision = "fp32"',
            patience=1,
        ),
        _Rule(
            "replay starving",
            ("samples", "steps", "positions", "window_positions"),
            lambda *figures: bool(_shortages(*figures)),
            lambda *figures: " and ".join(_shortages(*figures)),
            "raise self_play.games_per_iteration, or lower training.presentations or "
            "training.batch_size",
            patience=1,
        ),
    )


def _shortages(samples: float, steps: float, new: float, window: float) -> list[str]:
    """Describe what the replay is short of."""
    batch = samples / steps
    found = []
    if samples > MOST_PRESENTATIONS * new:
        found.append(f"{samples:,.0f} samples are drawn for {new:,.0f} new positions")
    if window < LEAST_WINDOW_BATCHES * batch:
        found.append(f"the window of {window:,.0f} positions is {window / batch:.1f} batches")
    if new < batch:
        found.append(f"{new:,.0f} new positions do not fill a batch of {batch:,.0f}")
    return found


def _measured(history: Sequence[Figures], names: Sequence[str]) -> list[tuple[int, list[float]]]:
    """The iterations that measured all of ``names``, each with its figures."""
    rows = (
        (number, [figure for name in names if (figure := row.get(name)) is not None])
        for number, row in enumerate(history)
    )
    return [(number, figures) for number, figures in rows if len(figures) == len(names)]
