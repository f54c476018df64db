"""Ratings from all games at once: the likeliest ones under a weak prior, with their errors.

One joint fit, never updates game by game: those depend on the order and carry no error bar. The
model is in `davidson`.

The prior is :data:`PRIOR_GAMES` imagined games of every player, as in BayesElo and Ordo: they are
spread over its opponents as its real games are, and over colours and outcomes evenly. With them
every rating is finite, and ratings are hardly too far apart, as those of maximum likelihood are
(Firth 1993, "Bias reduction of maximum likelihood estimates", Biometrika 80).

Errors come from how much the results of openings vary (the sandwich of White 1982, "Maximum
likelihood estimation of misspecified models", Econometrica 50, with openings as clusters), so two
games of one opening may depend on each other in any way. Where a pairing's games say little, as
those of a sweep do, its openings are taken to vary as if all games of one had the same result.

Dimensions: P players, K pairings, U distinct results of an opening.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from chess_snn.errors import RatingError
from chess_snn.evaluation.ratings import davidson
from chess_snn.evaluation.ratings.crosstable import (
    Crosstable,
    RatedGame,
    linked_to,
    scored_against,
)
from chess_snn.evaluation.ratings.result import Ratings
from chess_snn.settings import check_range
from chess_snn.types import Float64Array

DEFAULT_ANCHOR: Final = "random"
"""The player at 0."""
PRIOR_GAMES: Final = 0.5
"""Imagined games of each player: between two alone, a third of a win, of a draw and of a loss."""

_TRUSTED_INFORMATION: Final = 0.5
"""Nats^-2, two decided games between equals: with as much information about a difference, the
variation that its openings show counts as much as the one that is assumed."""
_MAX_ITERATIONS: Final = 100
_TOLERANCE: Final = 1e-12
"""Squared Newton decrement, about twice what the log-posterior still gains in nats."""
_LONGEST_STEP: Final = 5.0
"""Nats that a parameter moves at once: far from the maximum the curvature says little."""
_MOST_NAMES: Final = 10


def fit_ratings(
    table: Crosstable, anchor: str = DEFAULT_ANCHOR, *, confidence: float = 0.95
) -> Ratings:
    """Rate every player of ``table`` by all its games.

    The same table gives the same ratings to the bit, in whatever order the games came.

    Args:
        table: the games.
        anchor: the player at 0.
        confidence: of the intervals, in (0, 1).

    Raises:
        ConfigError: ``confidence`` is out of its range.
        RatingError: the anchor has no games, or players no chain of games to it.
    """
    check_range("confidence", confidence, gt=0.0, lt=1.0)
    index = check_linked(table, anchor)
    theta = most_likely(table, index)
    num_games, scores = table.games_and_scores()
    return Ratings(
        anchor=anchor,
        confidence=confidence,
        players=table.players,
        theta=theta,
        covariance=_covariance(table, theta, index),
        is_chained=scored_against(table),
        num_games=num_games,
        scores=scores,
    )


def rate_linked(
    games: Sequence[RatedGame], anchor: str = DEFAULT_ANCHOR
) -> tuple[Ratings, tuple[str, ...]]:
    """Rate every player to whom a chain of games leads from the anchor.

    Returns:
        The ratings, and the names of the other players.

    Raises:
        RatingError: the anchor has no games.
    """
    linked = linked_to(anchor, ((game.white, game.black) for game in games))
    ratings = fit_ratings(
        Crosstable.from_games(game for game in games if game.white in linked), anchor
    )
    players = {name for game in games for name in (game.white, game.black)}
    return ratings, tuple(sorted(players - linked))


def check_linked(table: Crosstable, anchor: str) -> int:
    """Index of the anchor among ``table.players``.

    Raises:
        RatingError: it has no games, or some players no chain of games to it; they are named.
    """
    if anchor not in table.players:
        raise RatingError(
            f"the anchor {anchor!r} has played no game; play one against it, or anchor the "
            f"ratings at one of {_names(list(table.players))}"
        )
    pairs = [(table.players[first], table.players[second]) for first, second in table.pairings]
    linked = linked_to(anchor, pairs)
    cut_off = [player for player in table.players if player not in linked]
    if cut_off:
        raise RatingError(
            f"no chain of games leads from the anchor {anchor!r} to {_names(cut_off)}; let one of "
            "them play a rated player, or leave their games out"
        )
    return table.players.index(anchor)


def most_likely(table: Crosstable, anchor: int) -> Float64Array:
    """The likeliest parameters, by Newton's method.

    Args:
        table: the games.
        anchor: the player who stays at 0.

    Returns:
        float64[P + 2], nats: ratings, colour advantage, log_draw.
    """
    counts, pairings = table.totals() + _prior(table), table.pairings
    theta = np.zeros(len(table.players) + davidson.NUM_SHARED)
    reached = davidson.log_likelihood(theta, counts, pairings)
    for _ in range(_MAX_ITERATIONS):
        slopes = davidson.score(theta, counts, pairings)
        gradient = davidson.gathered_vector(slopes, pairings, len(table.players))
        step = _inverse(table, davidson.information(theta, counts, pairings), anchor) @ gradient
        if gradient @ step <= _TOLERANCE:
            return theta + step
        step *= min(1.0, _LONGEST_STEP / np.abs(step).max())
        while (found := davidson.log_likelihood(theta + step, counts, pairings)) < reached:
            step /= 2.0
        theta, reached = theta + step, found
    return theta


def _prior(table: Crosstable) -> Float64Array:
    """float64[K, 2, 3]: imagined games of each pairing, by colour and white's outcome."""
    games = table.totals().sum(axis=(1, 2))
    num_games, _ = table.games_and_scores()
    first, second = table.pairings.T
    imagined = PRIOR_GAMES * games * (1.0 / num_games[first] + 1.0 / num_games[second])
    shape = davidson.FEATURES.shape[:2]
    return np.broadcast_to(imagined[:, None, None] / np.prod(shape), (len(games), *shape))


def _covariance(table: Crosstable, theta: Float64Array, anchor: int) -> Float64Array:
    """float64[P + 2, P + 2] nats^2, of ``theta``."""
    totals, num_openings = table.totals().astype(np.float64), table.openings_of_pairings()
    known = davidson.information(theta, totals, table.pairings)
    imagined = davidson.information(theta, _prior(table), table.pairings)
    results = table.results.astype(np.float64)
    scores = davidson.score(theta, results, table.pairings[table.pairing_of])
    shown = np.zeros_like(known)
    np.add.at(
        shown, table.pairing_of,
        table.num_openings[:, None, None] * scores[:, :, None] * scores[:, None, :],
    )
    games_each = (totals.sum(axis=(1, 2)) / num_openings)[:, None, None]
    trust = known[:, :1, :1] / (known[:, :1, :1] + _TRUSTED_INFORMATION)
    varied = trust * shown + (1.0 - trust) * games_each * known
    inverse = _inverse(table, known + imagined, anchor)
    meat = davidson.gathered_matrix(varied + imagined, table.pairings, len(table.players))
    return inverse @ meat @ inverse


def _inverse(table: Crosstable, blocks: Float64Array, anchor: int) -> Float64Array:
    """float64[P + 2, P + 2]: of the information of all pairings, 0 at the anchor."""
    matrix = davidson.gathered_matrix(blocks, table.pairings, len(table.players))
    free = np.delete(np.arange(len(matrix)), anchor)
    inverse = np.zeros_like(matrix)
    inverse[np.ix_(free, free)] = np.linalg.inv(matrix[np.ix_(free, free)])
    return inverse


def _names(players: list[str]) -> str:
    """The first few, and how many more."""
    shown = ", ".join(players[:_MOST_NAMES])
    more = len(players) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
