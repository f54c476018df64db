"""Alarms: what commonly goes wrong when a network teaches itself, read off a campaign's receipts.

``find_alarms([receipt.metrics() for receipt in receipts])`` after each iteration. A metric that is
missing or NaN raises no alarm, and iterations without it (not every generation is evaluated) are
passed over. The same trouble is told again while it lasts, with the same ``(name,
since_iteration)``; that pair is new when the trouble is.

==========================  =======================================================================
alarm                       metrics it reads
==========================  =======================================================================
hard start                  ``self_play/entropy_ratio`` of iteration 0, unless
                            ``campaign/is_warm`` says that its network had learnt before
draw collapse               ``self_play/ordinary_draw_rate``
value stuck at the mean     ``self_play/mean_abs_value``, ``self_play/draw_rate``
policy entropy collapsed    ``self_play/entropy_ratio``
policy entropy not falling  ``self_play/entropy_ratio``
newest not beating its      ``evaluation/score_earlier``: score of the newest generation against
elder                       an earlier one
score falling               ``evaluation/score``: mean score against the fixed opponents
points falling              ``evaluation/points_mean``, in a game of one player
won positions not           ``evaluation/conversion_rate``:
converted                   :func:`chess_snn.evaluation.conversion_rate`
training steps skipped      ``train/skipped_steps``: those that were not finite, whatever the loss
                            scale
replay starving             ``train/samples`` and ``train/steps`` of the iteration,
                            ``train/window_positions``, ``self_play/positions``
==========================  =======================================================================
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Metrics = Mapping[str, float]
"""One iteration's :meth:`chess_snn.campaign.store.receipts.Receipt.metrics`."""

_ENTROPY = "self_play/entropy_ratio"
_IS_WARM = "campaign/is_warm"
_ORDINARY_DRAWS = "self_play/ordinary_draw_rate"
_DRAWS = "self_play/draw_rate"
_ABS_VALUE = "self_play/mean_abs_value"
_NEW_POSITIONS = "self_play/positions"
_SAMPLES = "train/samples"
_STEPS = "train/steps"
_SKIPPED = "train/skipped_steps"
_WINDOW = "train/window_positions"
_SCORE = "evaluation/score"
_ELDER_SCORE = "evaluation/score_earlier"
_POINTS = "evaluation/points_mean"
_CONVERSION = "evaluation/conversion_rate"

SOFT_START: Final = 0.9
"""Least entropy of an untrained policy, as a share of a uniform one's."""
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
"""Of the best mean of points, as a share."""
LEAST_CONVERSION: Final = 0.5
CONVERSION_ITERATIONS: Final = 5
"""Iterations after which simple wins should be won."""
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
    """What to try, with the names of settings."""

    def __str__(self) -> str:
        """All of it on one line."""
        return f"{self.name} since iteration {self.since_iteration}: {self.saw}; {self.advice}"


def find_alarms(metrics_by_iteration: Sequence[Metrics]) -> list[Alarm]:
    """What looks wrong after the newest of the iterations.

    Args:
        metrics_by_iteration: :meth:`Receipt.metrics` of iterations 0, 1, …, the newest last. The
            names each alarm reads stand at the head of this module.

    Returns:
        At most one alarm of each name, in a fixed order; empty where all is well or unknown.
    """
    if not metrics_by_iteration:
        return []
    found = (detect(metrics_by_iteration) for detect in _DETECTORS)
    return [alarm for alarm in found if alarm is not None]


def _hard_start(history: Sequence[Metrics]) -> Alarm | None:
    ratio = history[0].get(_ENTROPY, math.nan)
    if not ratio < SOFT_START or history[0].get(_IS_WARM):
        return None
    return Alarm(
        "hard start", 0,
        f"the untrained policy had {ratio:.0%} of a uniform policy's entropy, below "
        f"{SOFT_START:.0%}",
        "it begins with prejudices that games must undo first; start again with a smaller "
        "net.policy_gain",
    )


def _draw_collapse(history: Sequence[Metrics]) -> Alarm | None:
    trouble = _lasting(history, [_ORDINARY_DRAWS], lambda draws: draws > DRAW_COLLAPSE)
    if trouble is None:
        return None
    (draws,) = trouble.newest
    return Alarm(
        "draw collapse", trouble.since,
        f"{draws:.0%} of the games from ordinary starts are drawn or cut, above "
        f"{DRAW_COLLAPSE:.0%}",
        "raise self_play.practice_share_last, self_play.restart_share_last, "
        "self_play.material_share_last or search.simulations_last",
    )


def _value_stuck(history: Sequence[Metrics]) -> Alarm | None:
    def is_stuck(size: float, draws: float) -> bool:
        decisive = 1.0 - draws
        return decisive >= LEAST_DECISIVE and size < LEAST_VALUE_SHARE * decisive

    trouble = _lasting(history, [_ABS_VALUE, _DRAWS], is_stuck)
    if trouble is None:
        return None
    size, draws = trouble.newest
    return Alarm(
        "value stuck at the mean", trouble.since,
        f"the mean size of the value is {size:.3f}, though {1.0 - draws:.0%} of the games have a "
        "winner",
        "raise training.value_weight or training.learning_rate, or lower "
        "training.root_value_share",
    )


def _entropy_collapsed(history: Sequence[Metrics]) -> Alarm | None:
    trouble = _lasting(history, [_ENTROPY], lambda ratio: ratio < COLLAPSED_ENTROPY)
    if trouble is None:
        return None
    (ratio,) = trouble.newest
    return Alarm(
        "policy entropy collapsed", trouble.since,
        f"the policy has {ratio:.0%} of a uniform policy's entropy, below {COLLAPSED_ENTROPY:.0%}",
        "lower training.learning_rate, or raise self_play.temperature_last or "
        "self_play.random_start_plies; with training.policy_loss = \"advantage\" raise "
        "training.entropy_bonus",
    )


def _entropy_flat(history: Sequence[Metrics]) -> Alarm | None:
    trouble = _lasting(history, [_ENTROPY], lambda ratio: ratio > FLAT_ENTROPY, FLAT_ITERATIONS)
    if trouble is None:
        return None
    (ratio,) = trouble.newest
    return Alarm(
        "policy entropy not falling", trouble.since,
        f"the policy has {ratio:.0%} of a uniform policy's entropy after {len(history)} "
        f"iterations, above {FLAT_ENTROPY:.0%}",
        "raise training.learning_rate, training.presentations or search.simulations_first; "
        "training.entropy_bonus should be small or 0",
    )


def _beaten_by_elder(history: Sequence[Metrics]) -> Alarm | None:
    trouble = _lasting(history, [_ELDER_SCORE], lambda score: score < ELDER_SCORE)
    if trouble is None:
        return None
    (score,) = trouble.newest
    return Alarm(
        "newest not beating its elder", trouble.since,
        f"it scores {score:.3f} against the earlier generation, below {ELDER_SCORE}",
        "lower training.learning_rate or training.presentations, or raise "
        "self_play.games_per_iteration",
    )


def _score_falling(history: Sequence[Metrics]) -> Alarm | None:
    return _falling(history, _SCORE, "score falling", ".3f", lambda best: best - SCORE_DROP)


def _points_falling(history: Sequence[Metrics]) -> Alarm | None:
    return _falling(
        history, _POINTS, "points falling", ",.0f", lambda best: best * (1 - POINTS_DROP)
    )


def _falling(
    history: Sequence[Metrics], metric: str, name: str, form: str,
    least: Callable[[float], float],
) -> Alarm | None:
    """Whether the newest mean of ``metric`` is below what ``least`` says of the best one."""
    measured = _measured(history, [metric])
    scores = [score for _, (score,) in measured]
    means = [
        sum(scores[first : first + SCORE_WINDOW]) / SCORE_WINDOW
        for first in range(len(scores) - SCORE_WINDOW + 1)
    ]
    if not means or means[-1] >= least(max(means)):
        return None
    best = means.index(max(means))
    since, _ = measured[best + SCORE_WINDOW]
    return Alarm(
        name, since,
        f"the last {SCORE_WINDOW} have a mean of {means[-1]:{form}}, and before iteration "
        f"{since} it was {means[best]:{form}}",
        "lower training.learning_rate or training.presentations, or raise "
        "training.window_positions",
    )


def _unconverted(history: Sequence[Metrics]) -> Alarm | None:
    trouble = _lasting(history, [_CONVERSION], lambda rate: rate < LEAST_CONVERSION)
    if trouble is None or len(history) <= CONVERSION_ITERATIONS:
        return None
    (rate,) = trouble.newest
    return Alarm(
        "won positions not converted", trouble.since,
        f"{rate:.0%} of simple won endings are won, below {LEAST_CONVERSION:.0%}",
        "raise self_play.practice_share_first and self_play.practice_share_last, or lower "
        "search.discount so that a faster mate is better",
    )


def _steps_skipped(history: Sequence[Metrics]) -> Alarm | None:
    trouble = _lasting(history, [_SKIPPED, _STEPS], lambda skipped, _: skipped > 0, patience=1)
    if trouble is None:
        return None
    skipped, steps = trouble.newest
    return Alarm(
        "training steps skipped", trouble.since,
        f"{skipped:,.0f} steps had a loss or gradient that is not finite, and {steps:,.0f} were "
        "taken",
        'lower training.learning_rate, or set training.precision = "fp32"',
    )


def _replay_starving(history: Sequence[Metrics]) -> Alarm | None:
    names = [_SAMPLES, _STEPS, _NEW_POSITIONS, _WINDOW]
    trouble = _lasting(history, names, lambda *figures: bool(_shortages(*figures)), patience=1)
    if trouble is None:
        return None
    return Alarm(
        "replay starving", trouble.since, " and ".join(_shortages(*trouble.newest)),
        "raise self_play.games_per_iteration, or lower training.presentations or "
        "training.batch_size",
    )


def _shortages(samples: float, steps: float, new: float, window: float) -> list[str]:
    """What the replay is short of, in words."""
    batch = samples / max(1, steps)  # none, where fp16 was still looking for its loss scale
    found = []
    if samples > MOST_PRESENTATIONS * new:
        found.append(f"{samples:,.0f} samples are drawn for {new:,.0f} new positions")
    if window < LEAST_WINDOW_BATCHES * batch:
        found.append(f"the window of {window:,.0f} positions is {window / batch:.1f} batches")
    if new < batch:
        found.append(f"{new:,.0f} new positions do not fill a batch of {batch:,.0f}")
    return found


@dataclass(frozen=True, slots=True)
class _Trouble:
    since: int
    newest: list[float]
    """The figures of the newest iteration that measured them."""


def _lasting(
    history: Sequence[Metrics], names: Sequence[str], is_wrong: Callable[..., bool],
    patience: int = PATIENCE,
) -> _Trouble | None:
    """The unbroken run of wrong figures up to the newest, if it is ``patience`` long at least.

    Only iterations that measured all of ``names`` count; ``is_wrong`` gets them in that order.
    """
    measured = _measured(history, names)
    wrong = list(itertools.takewhile(lambda entry: is_wrong(*entry[1]), reversed(measured)))
    if len(wrong) < patience:
        return None
    return _Trouble(since=wrong[-1][0], newest=wrong[0][1])


def _measured(history: Sequence[Metrics], names: Sequence[str]) -> list[tuple[int, list[float]]]:
    """The iterations that measured all of ``names``, each with its figures."""
    rows = ((i, [metrics.get(name, math.nan) for name in names])
            for i, metrics in enumerate(history))
    return [(i, figures) for i, figures in rows if not any(map(math.isnan, figures))]


_DETECTORS: Final[tuple[Callable[[Sequence[Metrics]], Alarm | None], ...]] = (
    _hard_start, _draw_collapse, _value_stuck, _entropy_collapsed, _entropy_flat,
    _beaten_by_elder, _score_falling, _points_falling, _unconverted, _steps_skipped,
    _replay_starving,
)
