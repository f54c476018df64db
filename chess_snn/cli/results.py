"""``chess-snn results`` and ``ratings``: the iterations of a campaign, and its players."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from chess_snn.campaign import CampaignFolder, read_receipts
from chess_snn.campaign.store.notes import absence_notices
from chess_snn.campaign.strength.matches import read_final_matches
from chess_snn.campaign.strength.ratings import ANCHOR, rate_campaign
from chess_snn.campaign.viewing.lines import is_faulty
from chess_snn.campaign.viewing.results import result_rows, results_csv, results_json
from chess_snn.cli.campaign_tables import (
    LEARNING_COLUMNS,
    columns_of,
    matches_table,
    rows_table,
    strength_columns,
)
from chess_snn.cli.console import console, make_table, print_message
from chess_snn.cli.options import AsJsonOption, CampaignArgument, check_writable
from chess_snn.config import check_range
from chess_snn.data import write_text
from chess_snn.errors import CampaignError, UsageError
from chess_snn.evaluation.ratings import interval_text
from chess_snn.types import Json

_FILE_WIDTH = 240
"""Characters of a line where there is no terminal: enough for every column."""


def results_command(
    directory: CampaignArgument,
    last: Annotated[
        int | None, typer.Option(help="Show only so many iterations, the newest.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: every iteration and the final matches.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: a line an iteration.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write to this file; else to standard output.")
    ] = None,
) -> None:
    """Show every finished iteration of a campaign, from its folder alone.

    The names of columns in JSON and CSV stay as they are; what was not measured is null or empty.

    chess-snn results campaigns/cpu-001 --last 10

    chess-snn results campaigns/cpu-001 --csv --out results.csv
    """
    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other; choose one")
    if last is not None:
        check_range("--last", last, ge=1)
    check_writable(out, "--out")
    folder = CampaignFolder.open(directory)
    receipts = read_receipts(folder)
    receipts = receipts[-last:] if last is not None else receipts
    rows = result_rows(folder.config, receipts)
    faulty = [match for receipt in receipts for match in receipt.matches if is_faulty(match)]
    finals = read_final_matches(folder)
    if as_json:
        _give(results_json(folder, rows, finals), out)
    elif as_csv:
        _give(results_csv(folder.config, rows), out)
    elif not rows:
        print_message(f"{folder.path}: no iteration is finished yet")
    elif out is not None:
        write_text(out, _table_text(_tables(folder, rows, faulty, finals)))
    elif console.is_terminal:
        for table in _tables(folder, rows, faulty, finals):
            console.print(table)
    else:
        typer.echo(_table_text(_tables(folder, rows, faulty, finals)), nl=False)
    for notice in absence_notices(folder):
        typer.echo(notice, err=True)  # so that a table or JSON can be taken as it is


def _give(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)


def _tables(
    folder: CampaignFolder, rows: Sequence[Json], faulty: Sequence[Json], finals: Sequence[Json]
) -> list[Table]:
    """Learning, strength of the generations that were evaluated, and the final matches.

    Matches in which a player failed stand before those, if there are any.
    """
    learning = columns_of(folder.config, LEARNING_COLUMNS)
    tables = [rows_table(f"campaign {folder.name}", rows, learning, lean=True)]
    if evaluated := [row for row in rows if row["score"] is not None]:
        columns = strength_columns(folder.config)
        tables.append(rows_table("score (95 % interval)", evaluated, columns, lean=True))
    if faulty:
        title = "matches with games that were forfeited or void"
        tables.append(matches_table(title, faulty, lean=True))
    if finals:
        tables.append(matches_table("at the end of the campaign", finals, lean=True))
    return tables


def _table_text(tables: Sequence[Table]) -> str:
    text = io.StringIO()
    wide = Console(file=text, width=_FILE_WIDTH, highlight=False, color_system=None)
    for table in tables:
        wide.print(table)
    return text.getvalue()


def ratings_command(
    directory: CampaignArgument,
    as_json: AsJsonOption = False,
) -> None:
    """Rate a campaign's generations and opponents from all their games at once.

    Elo points above the random mover, which is 0, with 95 % intervals; who won or lost every game
    has a bound. The search budget is part of a name: gen-000012@64 had 64 simulations a move.

    chess-snn ratings campaigns/cpu-001
    """
    folder = CampaignFolder.open(directory)
    rated = rate_campaign(folder)
    if rated is None:
        raise CampaignError(
            f"{folder.path} has no match against {ANCHOR} yet; one is played every "
            f"{folder.config.evaluation.every} generations"
        )
    if as_json:
        typer.echo(json.dumps(rated.to_json(), indent=2))
        return
    ratings = rated.ratings
    table = make_table(
        f"{folder.name}: Elo above {ANCHOR}", "player", "Elo", "95 % interval", "games", "score",
        left=("player",),
    )
    for rating in ratings.table:
        table.add_row(
            rating.player, f"{rating.elo.value:.0f}",
            interval_text(rating.elo.low, rating.elo.high), f"{rating.num_games:,}",
            f"{rating.score:.3f}",
        )
    console.print(table)
    print_message(
        f"Playing white is worth {ratings.colour_advantage.value:.0f} points; "
        f"{ratings.draw_rate.value:.0%} of games between equals are drawn or cut."
    )
    if rated.notice is not None:
        print_message(rated.notice)
