"""Tables of a campaign: finished iterations as rows that scripts may rely on, and columns to show.

The columns depend on the campaign's settings alone: not on how far it is, nor on whether a
generation was evaluated. A figure that was not measured is None.
"""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.match_facts import MatchFacts
from chess_snn.campaign.store.plans import Length, campaign_length
from chess_snn.campaign.store.receipts import Receipt
from chess_snn.campaign.viewing.figure import Figure, Place
from chess_snn.campaign.viewing.figures import figure_row, figures_of, shown_at
from chess_snn.evaluation.ratings.result import interval_text
from chess_snn.types import Json

_WHERE: Final = ("iteration", "generation", "champion", "progress", "elapsed_s")


def result_rows(folder: CampaignFolder, receipts: Sequence[Receipt]) -> list[Json]:
    """A row for each receipt: where it stands, and the figures of :func:`.figures_of` by name.

    Rates, shares, scores and progress are in [0, 1], losses in nats; ``progress`` and ``elapsed_s``
    are those at the iteration's end, and progress is a share of the campaign's present length.
    """
    figures, length = figures_of(folder.config), campaign_length(folder)
    return [result_row(receipt, length, figures) for receipt in receipts]


def result_row(
    receipt: Receipt, length: Length, figures: Iterable[Figure] | None = None
) -> Json:
    """One of the rows; by default with the figures that do not depend on the opponents."""
    where = (
        receipt.iteration, receipt.training.generation, receipt.champion,
        receipt.share_of(length), receipt.elapsed_s,
    )
    figured = figure_row(receipt) if figures is None else figure_row(receipt, figures)
    return dict(zip(_WHERE, where, strict=True)) | figured


def results_csv(folder: CampaignFolder, rows: Sequence[Json]) -> str:
    """Rows of :func:`result_rows` as CSV with a header; what was not measured is empty."""
    names = (name for figure in figures_of(folder.config) for name, _ in figure.parts())
    text = io.StringIO()
    writer = csv.DictWriter(text, [*_WHERE, *names], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


Columns = dict[str, Callable[[Any], str]]
"""The cells of a row, by the column's heading."""


def iteration_columns(config: CampaignConfig, place: Place) -> Columns:
    """Columns of a table of iterations, from rows of :func:`.result_rows`."""
    figures = {figure.heading or figure.title: figure.text for figure in shown_at(config, place)}
    return {
        "iter": lambda row: str(row["iteration"]),
        **({"generation": _generation} if place == "strength" else {}),
        **figures,
        "champion": lambda row: f"gen {row['champion']}",
    }


def _generation(row: Json) -> str:
    return str(row["generation"])


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
