"""Columns of the tables of a campaign: iterations, matches, ratings; for terminals and pages."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.match_facts import MatchFacts
from chess_snn.campaign.viewing.figure import Place
from chess_snn.campaign.viewing.figures import shown_at
from chess_snn.evaluation.ratings.result import interval_text
from chess_snn.types import Json

Columns = dict[str, Callable[[Any], str]]
"""The cells of a row, by the column's heading."""


def iteration_columns(config: CampaignConfig, place: Place) -> Columns:
    """Columns of a table of iterations, from rows of :func:`.result_rows`."""
    figures = {figure.heading or figure.title: figure.text for figure in shown_at(config, place)}
    return {
        "iter": lambda row: str(row["iteration"]),
        **({"generation": _generation} if place == "strength" else {}),
        **figures,
        "champion": _champion,
    }


def _generation(row: Json) -> str:
    return str(row["generation"])


def _champion(row: Json) -> str:
    return f"gen {row['champion']}"


def match_columns(matches: Sequence[MatchFacts]) -> Columns:
    """Columns of a table of matches; in a game of one player with its points."""
    players: Columns = {
        "player": lambda match: match.player_a, "against": lambda match: match.player_b,
    }
    if any(match.points for match in matches):
        return players | {
            "score": lambda match: f"{match.score:.3f}",
            "points": lambda match: f"{match.points.a.mean:,.0f}",
            "theirs": lambda match: f"{match.points.b.mean:,.0f}",
            "ahead (95 %)": lambda match: str(match.points.ahead),
        }
    faults: Columns = {
        "forfeits\nof both": lambda match: f"{match.forfeits_a}-{match.forfeits_b}",
        "void": lambda match: str(match.voided),
    }
    return players | {
        "W-D-L": lambda match: f"{match.wins}-{match.draws}-{match.losses}",
        "truncated": lambda match: str(match.truncated),
        **(faults if any(match.is_faulty for match in matches) else {}),
        "score": lambda match: f"{match.score:.3f}",
        "95 % interval": lambda match: f"{match.score_low:.3f} to {match.score_high:.3f}",
    }


RATING_COLUMNS: Final[Columns] = {
    "player": lambda rating: rating.player,
    "Elo": lambda rating: f"{rating.elo.value:.0f}",
    "95 % interval": lambda rating: interval_text(rating.elo.low, rating.elo.high),
    "games": lambda rating: f"{rating.num_games:,}",
    "score": lambda rating: f"{rating.score:.3f}",
}
"""Columns of a :class:`chess_snn.evaluation.ratings.result.Rating`, a line a player."""
