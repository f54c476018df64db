"""Rate players on the ladder by games against rungs near them, or against chosen opponents.

Their games are fitted together with the ladder's, all of them at once, so that their ratings are on
one scale and can be compared. See :mod:`chess_snn.evaluation.ladder.climb` for who meets whom.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from chess_snn.evaluation.ladder.climb import RungScore, next_rung
from chess_snn.evaluation.ladder.ladder import Ladder
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.ratings import (
    Crosstable,
    Estimate,
    Rating,
    fit_ratings,
    linked_to,
    match_games,
)
from chess_snn.types import Json

BATCH_PAIRS: Final = 5
"""Openings played in a row against one opponent, each with both colours."""
APPROXIMATE_ELO: Final = 150.0
"""Points by which an engine of another version than the ladder's may differ from its rung, with
95 % confidence. Assumed, not measured."""
_START_ELO: Final = 900.0
"""Climbs begin at the rung nearest to this: networks pass the rungs below within minutes."""

PlayBatch = Callable[[str, int], MatchResult]
"""Plays batch number so-and-so, from 0, of a player against the opponent of that name."""


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
        kept = ("player_b", "num_games", "wins", "draws", "losses", "capped", "voided", "score",
                "score_low", "score_high")
        summaries = [match.summary() for match in self.matches]
        return self.rating.to_json() | {
            "approximate": list(self.approximate),
            "opponents": [
                {name.replace("player_b", "player"): summary[name] for name in kept}
                for summary in summaries
            ],
        }


def climb_ladder(
    ladder: Ladder, players: Sequence[str], num_games: int, play_batch: PlayBatch
) -> dict[str, list[MatchResult]]:
    """Play ``num_games`` against rungs near the player's strength.

    Args:
        ladder: that is climbed.
        players: its players that can be played, the weakest first.
        num_games: at most; in batches of ``2 * BATCH_PAIRS``.
        play_batch: what it plays depends on its arguments alone, so that a climb can go on.

    Returns:
        The batches by opponent.
    """
    elos = [ladder.rung(name).elo for name in players]
    start = min(range(len(elos)), key=lambda rung: abs(elos[rung] - _START_ELO))
    batches: dict[str, list[MatchResult]] = {}
    for _ in range(num_games // (2 * BATCH_PAIRS)):
        scores = {
            place: RungScore(sum(batch.score * batch.num_scored for batch in batches[name]), games)
            for place, name in enumerate(players)
            if (games := sum(batch.num_scored for batch in batches.get(name, [])))
        }
        rung = players[next_rung(scores, start, elos)]
        played = batches.setdefault(rung, [])
        played.append(play_batch(rung, len(played)))
    return batches


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
    linked = linked_to(ladder.players[0], ((game.white, game.black) for game in games))
    ratings = fit_ratings(Crosstable.from_games(game for game in games if game.white in linked))
    found = []
    for player, opponents in played.items():
        matches = tuple(MatchResult.joined(batches) for batches in opponents.values())
        met = tuple(name for name in opponents if name in approximate)
        rating = ratings.of(player)
        found.append(LadderRating(widened(rating) if met else rating, matches, met))
    return found


def widened(rating: Rating) -> Rating:
    """``rating`` with the interval that it has where approximate rungs were met."""
    elo = rating.elo
    return replace(rating, elo=Estimate(
        elo.value,
        elo.value - math.hypot(elo.value - elo.low, APPROXIMATE_ELO),
        elo.value + math.hypot(elo.high - elo.value, APPROXIMATE_ELO),
    ))
