"""Rate players on the ladder by games against rungs near them.

Games against a much weaker or stronger player say little. So a ladder test goes up while the player
scores above 0.7, and down while below 0.3. Then it plays the three rungs around the player's rating
in turns. The next rung depends on the scores so far and on nothing else, so an interrupted test
continues as if it had not been interrupted.

The games of all players are fitted together with the ladder's, so that their ratings are on one
scale and can be compared.

Rungs are numbered from 0, the weakest; ``elos`` are their ratings.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from chess_snn.evaluation.ladder.ladder import Ladder
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.ratings.crosstable import Crosstable, RatedGame, match_games
from chess_snn.evaluation.ratings.fit import fit_ratings, rate_linked
from chess_snn.evaluation.ratings.result import Estimate, Rating
from chess_snn.evaluation.scores import logistic_score
from chess_snn.known import APPROXIMATE_ELO, BATCH_PAIRS
from chess_snn.types import Json

SCALE: Final = "Elo on the ladder, random = 0"
ADVANCE_ABOVE: Final = 0.7
RETREAT_BELOW: Final = 0.3
NUM_BRACKETING: Final = 3
"""Rungs that are played in turns in the end."""
_BEYOND: Final = 2000.0
"""Points below the ladder and above it at which ratings are looked for."""
_NUM_BISECTIONS: Final = 20
"""Halve the range to less than a point."""
_START_ELO: Final = 900.0
"""Tests begin at the rung nearest to this: networks pass the rungs below within minutes."""
PlayBatch = Callable[[str, int], MatchResult]
"""Plays a batch, by its number from 0, against the opponent of that name."""


@dataclass(frozen=True, slots=True)
class RungScore:
    """Score against one rung."""

    points: float
    num_games: int
    """Games that count; >= 1."""

    @classmethod
    def of(cls, batches: Sequence[MatchResult]) -> Self:
        """Add up what the first player of ``batches`` scored."""
        points = sum(batch.score * batch.num_scored for batch in batches)
        return cls(points, sum(batch.num_scored for batch in batches))

    @property
    def score(self) -> float:
        """Mean, in [0, 1]."""
        return self.points / self.num_games


_IMAGINED: Final = RungScore(points=0.5, num_games=1)


def next_rung(scores: Mapping[int, RungScore], start: int, elos: Sequence[float]) -> int:
    """The rung to be played now.

    Args:
        scores: of the rungs that were played.
        start: the first rung of the test.
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
    """Return whether the test need go neither up nor down, and has played its three rungs."""
    return _walk_end(scores, start, len(elos)) in scores and all(
        rung in scores for rung in bracketing_rungs(scores, start, elos)
    )


def bracketing_rungs(
    scores: Mapping[int, RungScore], start: int, elos: Sequence[float]
) -> list[int]:
    """The rung nearest to the player's rating and its neighbours: three, if there are so many.

    Args:
        scores: of the rungs that were played; at least that of ``start``.
        start: the first rung of the test.
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
    """Follow a walk from ``start``: to a rung not played yet, or one to stay at."""
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


@dataclass(frozen=True, slots=True, eq=False)
class LadderRating:
    """A player's rating on the ladder, and the matches that it rests on."""

    rating: Rating
    """Its interval also holds what is not known of the ladder, and of approximate rungs."""
    matches: tuple[MatchResult, ...]
    """One against each opponent."""
    approximate: tuple[str, ...]
    """Opponents among them that another version of the ladder's engine played."""

    def to_json(self) -> Json:
        """The rating, and the score against each opponent; ends that are not finite are null."""
        kept = ("player_b", "num_games", "wins", "draws", "losses", "truncated", "voided", "score",
                "score_low", "score_high")
        summaries = [match.summary() for match in self.matches]
        return self.rating.to_json() | {
            "approximate": list(self.approximate),
            "opponents": [
                {name.replace("player_b", "player"): summary[name] for name in kept}
                for summary in summaries
            ],
        }


@dataclass(frozen=True, slots=True, eq=False)
class LadderTest:
    """A ladder test that has ended."""

    batches: dict[str, list[MatchResult]]
    """By opponent, who need not be among the players of the end."""
    start: str
    """The rung at which it began."""
    bracket: list[str]
    """See :func:`bracketing_rungs`."""
    is_narrow: bool
    """Whether the interval is as narrow as it was to become."""


def run_ladder_test(
    ladder: Ladder, players: Sequence[str], num_games: int, play_batch: PlayBatch, *,
    pairs: int = BATCH_PAIRS, start_elo: float = _START_ELO, interval: float = 0.0,
    batches: dict[str, list[MatchResult]] | None = None,
) -> LadderTest:
    """Play ``num_games`` against rungs near the player's strength.

    Args:
        ladder: with the rungs to be played.
        players: its players that can be played, the weakest first.
        num_games: at most, those of ``batches`` included.
        play_batch: what it plays depends on its arguments alone, so that a test can be resumed.
        pairs: of games, a batch.
        start_elo: it begins at the rung nearest to this.
        interval: the test ends, too, when the player's distance to the ladder is known within so
            many points.
        batches: played before, by opponent; those that are played now are added to them.
    """
    batches = {} if batches is None else batches
    elos = [ladder.rung(name).elo for name in players]
    start = min(range(len(elos)), key=lambda rung: abs(elos[rung] - start_elo))
    while True:
        scores = {
            place: RungScore.of(batches[name])
            for place, name in enumerate(players) if name in batches
        }
        is_narrow = False
        if interval and has_arrived(scores, start, elos):
            most_met = max(scores, key=lambda rung: (scores[rung].num_games, -rung))
            is_narrow = _distance(ladder, batches, players[most_met]).width <= interval
        num_played = sum(batch.num_games for played in batches.values() for batch in played)
        if is_narrow or num_played + 2 * pairs > num_games:
            bracket = [players[rung] for rung in bracketing_rungs(scores, start, elos)]
            return LadderTest(batches, players[start], bracket, is_narrow)
        rung = players[next_rung(scores, start, elos)]
        result = play_batch(rung, len(batches.get(rung, ())))
        batches.setdefault(rung, []).append(result)


def _distance(
    ladder: Ladder, batches: Mapping[str, Sequence[MatchResult]], rung: str
) -> Estimate:
    """The player's distance to ``rung``, whom it met."""
    games = [game for played in batches.values() for batch in played for game in match_games(batch)]
    return distance_to_ladder(ladder, games, batches[rung][0].player_a, rung)


def rate_on_ladder(
    ladder: Ladder, played: Mapping[str, Mapping[str, Sequence[MatchResult]]],
    approximate: Collection[str] = (),
) -> list[LadderRating]:
    """Rate players by their games and the ladder's, all at once.

    Args:
        ladder: whose scale it is.
        played: batches by player and opponent.
        approximate: opponents that another version of the ladder's engine played. They count as
            the ladder's rungs; ``APPROXIMATE_ELO`` widens the intervals of those who met them.

    Returns:
        In the order of ``played``.

    Raises:
        RatingError: no game links a player to the ladder.
    """
    games = [
        game for opponents in played.values() for batches in opponents.values()
        for batch in batches for game in match_games(batch)
    ]
    games += ladder.games()
    ratings, _ = rate_linked(games)
    found = []
    for player, opponents in played.items():
        matches = tuple(MatchResult.joined(batches) for batches in opponents.values())
        met = tuple(name for name in opponents if name in approximate)
        rating = ratings.of(player)
        found.append(LadderRating(_widened(rating) if met else rating, matches, met))
    return found


def _widened(rating: Rating) -> Rating:
    """``rating`` with the interval that it has where approximate rungs were met."""
    elo = rating.elo
    return replace(rating, elo=Estimate(
        elo.value,
        elo.value - math.hypot(elo.value - elo.low, APPROXIMATE_ELO),
        elo.value + math.hypot(elo.high - elo.value, APPROXIMATE_ELO),
    ))
