"""Which player of the ladder somebody meets next, and when enough is known of them.

Games against somebody much weaker or stronger say little: so a climb goes up where it scores above
0.7, and down below 0.3, until it stands where games are worth most; from then on it plays the three
rungs about that place in turns. What comes next depends on the scores so far and on nothing else:
a climb that was stopped goes on as if it had not been.

Rungs are numbered from 0, the weakest.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chess_snn.evaluation.ladder.ladder import Ladder
from chess_snn.evaluation.ratings import Crosstable, Estimate, RatedGame, fit_ratings

ADVANCE_ABOVE: Final = 0.7
RETREAT_BELOW: Final = 0.3
NUM_BRACKETING: Final = 3
"""Rungs that are played in turns in the end."""
_RESAMPLES: Final = 200
"""For an interval that only decides whether to go on: it is asked for after every batch."""


@dataclass(frozen=True, slots=True)
class RungScore:
    """What was scored against one rung."""

    points: float
    num_games: int
    """That count; >= 1."""

    @property
    def score(self) -> float:
        """Mean, in [0, 1]."""
        return self.points / self.num_games


def next_rung(scores: Mapping[int, RungScore], start: int, num_rungs: int) -> int:
    """The rung to be played now.

    Args:
        scores: of the rungs that were played.
        start: where the climb begins.
        num_rungs: of the ladder.
    """
    centre = _centre(scores, start, num_rungs)
    if centre not in scores:
        return centre
    return min(
        bracketing_rungs(scores, start, num_rungs),
        key=lambda rung: (_games(scores, rung), abs(rung - centre), rung),
    )


def has_arrived(scores: Mapping[int, RungScore], start: int, num_rungs: int) -> bool:
    """Whether the climb need go neither up nor down, and has played its three rungs."""
    return all(rung in scores for rung in bracketing_rungs(scores, start, num_rungs))


def bracketing_rungs(scores: Mapping[int, RungScore], start: int, num_rungs: int) -> list[int]:
    """The rung where the climb stands and those about it: three, if there are so many."""
    centre = _centre(scores, start, num_rungs)
    first = max(0, min(centre - NUM_BRACKETING // 2, num_rungs - NUM_BRACKETING))
    return list(range(first, min(first + NUM_BRACKETING, num_rungs)))


def distance_to_ladder(
    ladder: Ladder, games: Sequence[RatedGame], player: str, rung: str
) -> Estimate:
    """Points that ``player`` is above ``rung``, with a 95 % interval.

    Its width is what more games of the player would still narrow. The interval of its rating also
    has the ladder's own, from the random player up, which they would not.

    Args:
        ladder: fitted together with ``games``.
        games: of the player against the ladder's.
        player: name.
        rung: of the ladder, one that it met.
    """
    table = Crosstable.from_games([*ladder.games(), *games])
    ratings = fit_ratings(table, num_resamples=_RESAMPLES)
    return ratings.difference(player, rung)


def width(estimate: Estimate) -> float:
    """Of its interval; infinite where an end is."""
    size = estimate.high - estimate.low
    return math.inf if math.isnan(size) else size


def _centre(scores: Mapping[int, RungScore], start: int, num_rungs: int) -> int:
    """Where a walk from ``start`` ends: at a rung not played yet, or one to stay at.

    Between a rung to leave upwards and one to leave downwards it stays at the more even one.
    """
    passed, rung = {start}, start
    while rung in scores:
        score = scores[rung].score
        if score > ADVANCE_ABOVE and rung + 1 < num_rungs:
            following = rung + 1
        elif score < RETREAT_BELOW and rung > 0:
            following = rung - 1
        else:
            break
        if following in passed:
            return min(rung, following, key=lambda side: abs(scores[side].score - 0.5))
        passed.add(following)
        rung = following
    return rung


def _games(scores: Mapping[int, RungScore], rung: int) -> int:
    return scores[rung].num_games if rung in scores else 0
