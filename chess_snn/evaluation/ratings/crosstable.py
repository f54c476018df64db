"""All games known, as counts: what ratings are fitted to.

Two players are a *pairing*. All games of a pairing from one opening are one unit of evidence: they
share the opening, and where both players are deterministic a repeated game says nothing new. Only
only the number of openings by result is kept, so neither the order of games nor the names of
openings can change a rating, not even its last bit.

Dimensions: n games, P players, K pairings, U distinct results of an opening.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from chess_snn.errors import RatingError
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.types import BoolArray, Float64Array, Int64Array

WIN: Final = 0
DRAW: Final = 1
LOSS: Final = 2
"""Outcomes of counts, as white sees them: (win, draw, loss)."""

FIRST_WHITE: Final = 0
SECOND_WHITE: Final = 1
"""Colours of counts: which player of the pairing has white."""

_COLOURS, _OUTCOMES = 2, 3


@dataclass(frozen=True, slots=True)
class RatedGame:
    """One game that counts."""

    white: str
    """Name of the first player, search budget included: it is part of who plays."""
    black: str
    outcome_white: int
    """1 where white won, 0 drawn or truncated, -1 where black won."""
    opening: str
    """Start of the game; the same text in another game of the two is the same opening."""


def match_games(result: MatchResult) -> list[RatedGame]:
    """The games of a match that count, truncated ones as draws; openings by their keys."""
    counts = np.isfinite(result.scores_a)
    a_is_white = result.a_is_white[counts]
    names = np.where(a_is_white, result.player_a, result.player_b).tolist()
    others = np.where(a_is_white, result.player_b, result.player_a).tolist()
    outcomes = result.outcomes_white[counts].tolist()
    openings = [result.opening_keys[index] for index in result.opening_index[counts].tolist()]
    return [RatedGame(*row) for row in zip(names, others, outcomes, openings, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Crosstable:
    """Every pairing's results, opening by opening."""

    players: tuple[str, ...]
    """The P players, sorted by name."""
    pairings: Int64Array
    """int64[K, 2]: the pairings that played, as players (first < second), in ascending order."""
    pairing_of: Int64Array
    """int64[U]: the pairing of each result; ascending."""
    results: Int64Array
    """int64[U, 2, 3]: games by colour (first player white, second player white) and white's
    outcome (win, draw, loss)."""
    num_openings: Int64Array
    """int64[U]: number of openings with which the pairing had this result; >= 1."""

    @classmethod
    def from_games(cls, games: Iterable[RatedGame]) -> Self:
        """Count games.

        Raises:
            RatingError: there is no game, or one that cannot be counted.
        """
        rows = list(games)
        _check_games(rows)
        players = sorted({name for game in rows for name in (game.white, game.black)})
        index = {name: number for number, name in enumerate(players)}
        white = np.array([index[game.white] for game in rows], np.int64)
        black = np.array([index[game.black] for game in rows], np.int64)
        outcomes_white = np.array([game.outcome_white for game in rows], np.int64)
        pairings, pairing_of_game = np.unique(
            np.stack([np.minimum(white, black), np.maximum(white, black)], axis=1),
            axis=0, return_inverse=True,
        )
        _, opening_of_game = np.unique(
            np.array([game.opening for game in rows], np.str_), return_inverse=True
        )
        units, unit_of_game = np.unique(
            np.stack([pairing_of_game.reshape(-1), opening_of_game], axis=1),
            axis=0, return_inverse=True,
        )
        colour = np.where(white < black, FIRST_WHITE, SECOND_WHITE)
        cell = (unit_of_game.reshape(-1) * _COLOURS + colour) * _OUTCOMES + WIN - outcomes_white + 1
        size = _COLOURS * _OUTCOMES
        counts = np.bincount(cell, minlength=len(units) * size).reshape(-1, size)
        results, num_openings = np.unique(
            np.concatenate([units[:, :1], counts], axis=1), axis=0, return_counts=True
        )
        return cls(
            players=tuple(players),
            pairings=pairings,
            pairing_of=results[:, 0],
            results=results[:, 1:].reshape(-1, _COLOURS, _OUTCOMES),
            num_openings=num_openings,
        )

    @property
    def num_games(self) -> int:
        """Number of games, n."""
        return int(self.totals().sum())

    def totals(self) -> Int64Array:
        """int64[K, 2, 3]: games of each pairing by colour and white's outcome."""
        totals = np.zeros((len(self.pairings), _COLOURS, _OUTCOMES), np.int64)
        np.add.at(totals, self.pairing_of, self.num_openings[:, None, None] * self.results)
        return totals

    def openings_of_pairings(self) -> Int64Array:
        """int64[K]: openings that each pairing played from."""
        openings = np.zeros(len(self.pairings), np.int64)
        np.add.at(openings, self.pairing_of, self.num_openings)
        return openings

    def games_and_scores(self) -> tuple[Int64Array, Float64Array]:
        """int64[P] and float64[P]: games of each player and its mean score in them.

        The score of a player without games is NaN.
        """
        totals = self.totals()
        white_points = totals[..., WIN] + 0.5 * totals[..., DRAW]
        games = totals.sum(axis=-1)
        black_points = games - white_points
        first = white_points[:, FIRST_WHITE] + black_points[:, SECOND_WHITE]
        second = black_points[:, FIRST_WHITE] + white_points[:, SECOND_WHITE]
        num_games = np.zeros(len(self.players), np.int64)
        points = np.zeros(len(self.players))
        for column, seat_points in enumerate((first, second)):
            np.add.at(num_games, self.pairings[:, column], games.sum(axis=1))
            np.add.at(points, self.pairings[:, column], seat_points)
        scores = np.full(len(points), np.nan)
        np.divide(points, num_games, out=scores, where=num_games > 0)
        return num_games, scores


def linked_to(anchor: str, pairs: Iterable[tuple[str, str]]) -> set[str]:
    """The anchor, and all players to whom a chain of ``pairs``, who met, leads from it."""
    opponents: dict[str, set[str]] = {anchor: set()}
    for one, other in pairs:
        opponents.setdefault(one, set()).add(other)
        opponents.setdefault(other, set()).add(one)
    linked, new = {anchor}, {anchor}
    while new:
        new = {other for player in new for other in opponents[player]} - linked
        linked |= new
    return linked


def scored_against(table: Crosstable) -> BoolArray:
    """bool[P, P]: whether a chain of players, of whom each scored against the next, leads i to j.

    Finite ratings of maximum likelihood need one both ways (Ford 1957; Hunter 2004, assumption 1).
    True where i = j.
    """
    totals = table.totals()
    draws = totals[..., DRAW].sum(axis=-1)
    first, second = table.pairings.T
    reach = np.eye(len(table.players), dtype=np.bool_)
    reach[first, second] = totals[:, FIRST_WHITE, WIN] + totals[:, SECOND_WHITE, LOSS] + draws > 0
    reach[second, first] = totals[:, FIRST_WHITE, LOSS] + totals[:, SECOND_WHITE, WIN] + draws > 0
    for _ in range((len(table.players) - 1).bit_length()):
        steps = reach.astype(np.float32)
        reach = steps @ steps > 0
    return reach


def _check_games(games: Sequence[RatedGame]) -> None:
    if not games:
        raise RatingError("there are no games to rate players by; play a match first")
    for number, game in enumerate(games):
        if game.white == game.black:
            raise RatingError(
                f"{game.white!r} plays itself in game {number}, which says nothing about its "
                "strength; leave the game out"
            )
        if game.outcome_white not in (-1, 0, 1):
            raise RatingError(
                f"game {number} has outcome {game.outcome_white} for white; it must be 1 (won), 0 "
                "(drawn) or -1 (lost)"
            )
