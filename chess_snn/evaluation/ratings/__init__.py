"""Ratings from all games at once, with intervals, and how well they predict."""

from chess_snn.evaluation.ratings.crosstable import (
    Crosstable,
    RatedGame,
    match_games,
)
from chess_snn.evaluation.ratings.fit import (
    DEFAULT_ANCHOR,
    HeldOutCheck,
    fit_ratings,
    held_out_check,
    rate_linked,
)
from chess_snn.evaluation.ratings.result import Estimate, Rating, Ratings, interval_text

__all__ = [
    "DEFAULT_ANCHOR",
    "Crosstable",
    "Estimate",
    "HeldOutCheck",
    "RatedGame",
    "Rating",
    "Ratings",
    "fit_ratings",
    "held_out_check",
    "interval_text",
    "match_games",
    "rate_linked",
]
