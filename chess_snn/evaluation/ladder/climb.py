"""Which player of the ladder somebody meets next, and when enough is known of them.

Games against somebody much weaker or stronger say little: so a climb goes up while it scores above
0.7, and down while below 0.3. Once it need do neither it plays the three rungs about its rating, as
all of its scores so far give it, in turns. What comes next depends on those scores and on nothing
else: a climb that was stopped goes on as if it had not been.

Rungs are numbered from 0, the weakest; ``elos`` are their ratings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chess_snn.evaluation.elo import logistic_score
from chess_snn.evaluation.ladder.ladder import Ladder
from chess_snn.evaluation.ratings import Crosstable, Estimate, RatedGame, fit_ratings

ADVANCE_ABOVE: Final = 0.7
RETREAT_BELOW: Final = 0.3
NUM_BRACKETING: Final = 3
"""Rungs that are played in turns in the end."""


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


_IMAGINED: Final = RungScore(points=0.5, num_games=1)
_BEYOND: Final = 2000.0
"""Points below the ladder and above it at which ratings are looked for."""
_NUM_BISECTIONS: Final = 20
"""Halve the range to less than a point."""

def next_rung(scores: Mapping[int, RungScore], start: int, elos: Sequence[float]) -> int:
    """The rung to be played now.

    Args:
        scores: of the rungs that were played.
        start: where the climb begins.
        elos: of all rungs, ascending.
    """
    end = _walk_end(scores, start, len(elos))
    if end not in scores:
        return end
    own = _own_rung(scores, end, elos)
    return min(
        bracketing_rungs(scores, start, elos),
        key=lambda rung: (_games(scores, rung), abs(rung - own), rung),
    )


def has_arrived(scores: Mapping[int, RungScore], start: int, elos: Sequence[float]) -> bool:
    """Whether the climb need go neither up nor down, and has played its three rungs."""
    return _walk_end(scores, start, len(elos)) in scores and all(
        rung in scores for rung in bracketing_rungs(scores, start, elos)
    )


def bracketing_rungs(
    scores: Mapping[int, RungScore], start: int, elos: Sequence[float]
) -> list[int]:
    """The rung nearest to the climb's rating and those about it: three, if there are so many.

    Args:
        scores: of the rungs that were played; at least that of ``start``.
        start: where the climb begins.
        elos: of all rungs, ascending.
    """
    own = _own_rung(scores, _walk_end(scores, start, len(elos)), elos)
    first = max(0, min(own - NUM_BRACKETING // 2, len(elos) - NUM_BRACKETING))
    return list(range(first, min(first + NUM_BRACKETING, len(elos))))


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
    return fit_ratings(table).difference(player, rung)


def _walk_end(scores: Mapping[int, RungScore], start: int, num_rungs: int) -> int:
    """Where a walk from ``start`` leads: to a rung not played yet, or one to stay at."""
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
            break
        passed.add(following)
        rung = following
    return rung


def _own_rung(scores: Mapping[int, RungScore], end: int, elos: Sequence[float]) -> int:
    """The rung nearest to the rating that all scores together make likeliest.

    By the logistic curve and with the rungs' ratings as they are: that is near enough to choose an
    opponent by. A drawn game against rung ``end`` is imagined, so that who won or lost everything
    has a rating too.
    """
    played = [(elos[rung], score) for rung, score in scores.items()]
    played.append((elos[end], _IMAGINED))

    def surplus(elo: float) -> float:
        return sum(
            score.points - score.num_games * logistic_score(elo - rung_elo)
            for rung_elo, score in played
        )

    low, high = elos[0] - _BEYOND, elos[-1] + _BEYOND
    for _ in range(_NUM_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if surplus(middle) > 0.0 else (low, middle)
    return min(range(len(elos)), key=lambda rung: (abs(elos[rung] - low), rung))


def _games(scores: Mapping[int, RungScore], rung: int) -> int:
    return scores[rung].num_games if rung in scores else 0
