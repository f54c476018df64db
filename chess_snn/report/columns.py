"""Columns of the tables of results: iterations, matches, ratings; in a terminal and on a page."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.viewing.lines import (
    elo_interval,
    faults_text,
    figure,
    gating_text,
    interval,
    is_faulty,
    points_interval,
)
from chess_snn.campaign.viewing.results import opponents_of
from chess_snn.evaluation.ratings.result import interval_text
from chess_snn.evaluation.solo import interval_text as points_text
from chess_snn.games import get_game
from chess_snn.types import Json

Columns = dict[str, Callable[[Any], str]]
"""The cells of a row, by the column's heading."""


def column(name: str, form: str) -> Callable[[Json], str]:
    """The cells of one figure."""
    return lambda row: figure(row, name, form)


def _outcomes(row: Json) -> str:
    """White's wins, draws and black's wins; of a game of one player, points."""
    if row["draw_rate"] is None:
        return figure(row, "self_play_points", ",.0f")
    rates = (row["white_rate"], row["draw_rate"], row["black_rate"])
    return "/".join(f"{100 * rate:.0f}" for rate in rates)


_OUTCOMES: Final = "W/D/B %"
_BEST_MOVES: Final = "best\nmoves"
_ITERATION: Final[Columns] = {"iter": column("iteration", "d"), "games": column("games", ",")}
_GENERATION: Final[Columns] = {"champion": lambda row: f"gen {row['champion']}"}

SHORT_COLUMNS: Final[Columns] = {
    **_ITERATION,
    "plies": column("plies_mean", ".0f"),
    _OUTCOMES: _outcomes,
    _BEST_MOVES: column("reference_policy_accuracy", ".1%"),
    "score": column("score", ".3f"),
    "Elo, own\ngames (95 %)": elo_interval,
    **_GENERATION,
    "s": column("iteration_s", ",.0f"),
}
"""Fit into a terminal of 80 columns."""

LEARNING_COLUMNS: Final[Columns] = {
    **_ITERATION,
    _OUTCOMES: _outcomes,
    "cut %": lambda row: f"{100 * row['truncated_rate']:.0f}",
    "plies": column("plies_mean", ".0f"),
    "pos/s": column("positions_per_s", ",.0f"),
    "policy\nloss": column("policy_loss", ".3f"),
    "value\nloss": column("value_loss", ".3f"),
    "held\nout": column("holdout_value_loss_after", ".3f"),
    "entropy": column("policy_entropy", ".2f"),
    "play\ns": column("self_play_s", ",.0f"),
    "train\ns": column("training_s", ",.0f"),
    "eval\ns": column("evaluation_s", ",.0f"),
    "all\ns": column("iteration_s", ",.0f"),
    **_GENERATION,
}
"""All of self-play and training, and the seconds of each stage."""


def columns_of(config: CampaignConfig, columns: Columns) -> Columns:
    """``columns``; in a game of one player with points, which has no reference positions."""
    if get_game(config.campaign.game).spec.num_players == 2:
        return columns
    return {
        "points" if name == _OUTCOMES else name: cell
        for name, cell in columns.items() if name != _BEST_MOVES
    }


def strength_columns(config: CampaignConfig) -> Columns:
    """Scores with their intervals, and won positions; of a game of one player its points."""
    is_solo = get_game(config.campaign.game).spec.num_players == 1
    return {
        "iter": column("iteration", "d"),
        "generation": column("generation", "d"),
        **({"points": points_interval, "median": column("points_median", ",.0f"),
            "most": column("points_best", ",.0f")} if is_solo else {}),
        "score": column("score", ".3f"),
        "Elo, own games": elo_interval,
        "Elo, ladder": lambda row: elo_interval(row, "ladder_elo"),
        **{opponent: partial(interval, opponent=opponent) for opponent in opponents_of(config)},
        "champion then": gating_text,
        **({} if is_solo else {"conversion": column("conversion_rate", ".3f")}),
        **_GENERATION,
    }


def match_columns(matches: Sequence[Json]) -> Columns:
    """Return the columns of summaries of matches; in a game of one player with its points."""
    players: Columns = {
        "player": lambda match: match["player_a"], "against": lambda match: match["player_b"],
    }
    if any("points" in match for match in matches):
        return players | {
            "score": lambda match: f"{match['score']:.3f}",
            "points": lambda match: f"{match['points']['a']['mean']:,.0f}",
            "theirs": lambda match: f"{match['points']['b']['mean']:,.0f}",
            "ahead (95 %)": lambda match: points_text(match["points"]["ahead"]),
        }
    faults: Columns = {
        "forfeits\nof both": lambda match: faults_text(match)[0],
        "void": lambda match: faults_text(match)[1],
    }
    return players | {
        "W-D-L": lambda match: f"{match['wins']}-{match['draws']}-{match['losses']}",
        "truncated": lambda match: str(match["truncated"]),
        **(faults if any(map(is_faulty, matches)) else {}),
        "score": lambda match: f"{match['score']:.3f}",
        "95 % interval": lambda match: f"{match['score_low']:.3f} to {match['score_high']:.3f}",
    }


RATING_COLUMNS: Final[Columns] = {
    "player": lambda rating: rating.player,
    "Elo": lambda rating: f"{rating.elo.value:.0f}",
    "95 % interval": lambda rating: interval_text(rating.elo.low, rating.elo.high),
    "games": lambda rating: f"{rating.num_games:,}",
    "score": lambda rating: f"{rating.score:.3f}",
}
"""Columns of a :class:`chess_snn.evaluation.ratings.result.Rating`, a line a player."""
