"""Whether ratings predict games they were not fitted to.

Dimensions: K pairings.
"""

from dataclasses import asdict, dataclass

import numpy as np

from chess_snn.config import check_range
from chess_snn.errors import RatingError
from chess_snn.evaluation.ratings.crosstable import Crosstable
from chess_snn.evaluation.ratings.davidson import log_chances
from chess_snn.evaluation.ratings.fit import DEFAULT_ANCHOR, check_linked, most_likely
from chess_snn.rng import generator
from chess_snn.types import Float64Array, Int64Array, Json


@dataclass(frozen=True, slots=True)
class HeldOutCheck:
    """Predictions of held-out games, beside those of a predictor that knows no players."""

    num_fitted: int
    """Games that the ratings were fitted to."""
    num_predicted: int
    """Held-out games."""
    log_loss: float
    """Mean of -ln P(what happened), nats a predicted game."""
    constant_log_loss: float
    """The same with white's (win, draw, loss) as frequent as in the fitted games, in every game;
    inf where an outcome is not among those."""

    def to_json(self) -> Json:
        """Everything; null where a loss is infinite."""
        return {name: number if np.isfinite(number) else None
                for name, number in asdict(self).items()}


def held_out_check(
    table: Crosstable, anchor: str = DEFAULT_ANCHOR, *, fitted_share: float = 0.8, seed: int = 0
) -> HeldOutCheck:
    """Fit to some openings of every pairing, and predict the games of the others.

    Args:
        table: all games.
        anchor: a player; which one changes nothing.
        fitted_share: of each pairing's openings that are fitted, in (0, 1); at least one is.
        seed: of the choice.

    Raises:
        ConfigError: ``fitted_share`` is out of its range.
        RatingError: see :func:`chess_snn.evaluation.ratings.fit.fit_ratings`; or nothing is left
            to predict.
    """
    check_range("fitted_share", fitted_share, gt=0.0, lt=1.0)
    index = check_linked(table, anchor)
    fitted = table.sum_of(_fitted_openings(table, fitted_share, seed))
    held_out = table.totals() - fitted
    if not held_out.any():
        raise RatingError("no game is left to predict; play more openings of each pairing")
    chances = log_chances(most_likely(table, fitted, index), table.pairings)
    with np.errstate(divide="ignore"):
        frequencies = np.log(fitted.sum(axis=(0, 1)) / fitted.sum())
    return HeldOutCheck(
        num_fitted=int(fitted.sum()),
        num_predicted=int(held_out.sum()),
        log_loss=_log_loss(held_out, chances),
        constant_log_loss=_log_loss(held_out, np.broadcast_to(frequencies, held_out.shape)),
    )


def _fitted_openings(table: Crosstable, share: float, seed: int) -> Int64Array:
    """int64[U]: of how many openings with each result the games are fitted."""
    fitted = np.empty_like(table.num_openings)
    for pairing, (first, second) in enumerate(table.pairings):
        stream = generator(seed, "held_out", table.players[first], table.players[second])
        rows = table.pairing_of == pairing
        openings = table.num_openings[rows]
        num_fitted = max(1, round(share * int(openings.sum())))
        fitted[rows] = stream.multivariate_hypergeometric(openings, num_fitted)
    return fitted


def _log_loss(games: Int64Array, log_chances: Float64Array) -> float:
    """Mean over games of -ln P; both arrays are [K, 2, 3]."""
    # What did not happen costs nothing, even where it was called impossible.
    terms = np.multiply(games, log_chances, out=np.zeros(games.shape), where=games > 0)
    return float(-terms.sum() / games.sum())
