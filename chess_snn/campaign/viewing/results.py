"""Finished iterations as rows of one table, under column names that scripts may rely on.

The columns depend on the campaign's settings alone: not on how far it is, nor on whether a
generation was evaluated. A figure that was not measured is None.
"""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Final

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.match_facts import MatchFacts
from chess_snn.campaign.store.plans import Length, campaign_length
from chess_snn.campaign.store.receipts import Receipt
from chess_snn.campaign.viewing.figure import Figure
from chess_snn.campaign.viewing.figures import figure_row, figures_of
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


def results_json(
    folder: CampaignFolder, rows: Sequence[Json], finals: Sequence[MatchFacts]
) -> str:
    """Rows of :func:`result_rows` and the matches at the end as JSON; null where not measured."""
    body = {
        "campaign": folder.name,
        "id": folder.campaign_id,
        "iterations": rows,
        "final_matches": list(map(asdict, finals)),
    }
    return json.dumps(body, indent=2, allow_nan=False) + "\n"
