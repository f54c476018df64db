"""Who can be compared with whom.

A player is rated against another through the results between them. Finite ratings need a way both
ways: from each to the other along players of whom each scored against the next (Ford 1957; Hunter
2004, assumption 1). Players with such ways both ways are a *component*. Between components one
side won every game, and its lead has no upper end.

Dimensions: B fits at once, P players, K pairings.
"""

from collections.abc import Iterable

import numpy as np

from chess_snn.errors import RatingError
from chess_snn.evaluation.ratings.crosstable import (
    DRAW,
    FIRST_WHITE,
    LOSS,
    SECOND_WHITE,
    WIN,
    Crosstable,
    RatedGame,
)
from chess_snn.types import BoolArray, Float64Array, Int64Array

_MOST_NAMES = 10


def check_connected(table: Crosstable, anchor: str) -> int:
    """Index of the anchor among ``table.players``.

    Raises:
        RatingError: it has no games, or some players no chain of games to it; they are named.
    """
    if anchor not in table.players:
        raise RatingError(
            f"the anchor {anchor!r} has played no game; play one against it, or anchor the "
            f"ratings at one of {_names(list(table.players))}"
        )
    index = table.players.index(anchor)
    num_players = len(table.players)
    have_met = np.zeros((1, num_players, num_players), np.bool_)
    first, second = table.pairings.T
    have_met[:, first, second] = have_met[:, second, first] = True
    reached = _closure(have_met)[0, index]
    if not reached.all():
        cut_off = [table.players[player] for player in np.flatnonzero(~reached)]
        raise RatingError(
            f"no chain of games leads from the anchor {anchor!r} to {_names(cut_off)}; let one of "
            "them play somebody who is rated, or leave their games out"
        )
    return index


def linked_to(anchor: str, games: Iterable[RatedGame]) -> set[str]:
    """The anchor, and everybody to whom a chain of games leads from it."""
    opponents: dict[str, set[str]] = {anchor: set()}
    for game in games:
        opponents.setdefault(game.white, set()).add(game.black)
        opponents.setdefault(game.black, set()).add(game.white)
    linked, new = {anchor}, {anchor}
    while new:
        new = {other for player in new for other in opponents[player]} - linked
        linked |= new
    return linked


def reachable(counts: Float64Array, pairings: Int64Array, tied: BoolArray) -> BoolArray:
    """From whom a chain of players leads to whom, each of whom scored against the next.

    Args:
        counts: float64[B, K, 2, 3], games by colour and white's outcome.
        pairings: int64[K, 2].
        tied: bool[B, P], players whose ratings are given and so connected with each other.

    Returns:
        bool[B, P, P]: [b, i, j] whether such a chain leads from i to j; True where i = j.
    """
    scored: BoolArray = tied[:, :, None] & tied[:, None, :]
    draws = counts[..., DRAW].sum(axis=-1)
    first_wins = counts[..., FIRST_WHITE, WIN] + counts[..., SECOND_WHITE, LOSS]
    second_wins = counts[..., FIRST_WHITE, LOSS] + counts[..., SECOND_WHITE, WIN]
    first, second = pairings.T
    scored[:, first, second] |= first_wins + draws > 0
    scored[:, second, first] |= second_wins + draws > 0
    return _closure(scored)


def _closure(edges: BoolArray) -> BoolArray:
    """Reflexive and transitive closure of bool[B, P, P], by squaring."""
    num_players = edges.shape[-1]
    reach: BoolArray = edges | np.eye(num_players, dtype=np.bool_)
    for _ in range((num_players - 1).bit_length()):
        steps = reach.astype(np.float32)
        reach = steps @ steps > 0
    return reach


def _names(players: list[str]) -> str:
    """The first few, and how many more."""
    shown = ", ".join(players[:_MOST_NAMES])
    more = len(players) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
