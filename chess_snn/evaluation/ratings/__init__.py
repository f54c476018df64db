"""Ratings from all games at once, with intervals."""

from chess_snn.evaluation.ratings.crosstable import (
    Crosstable,
    RatedGame,
    match_games,
)
from chess_snn.evaluation.ratings.fit import fit_ratings, rate_linked
from chess_snn.evaluation.ratings.result import Estimate, Rating, Ratings, interval_text

__all__ = [
    "Crosstable",
    "Estimate",
    "RatedGame",
    "Rating",
    "Ratings",
    "fit_ratings",
    "interval_text",
    "match_games",
    "rate_linked",
]
