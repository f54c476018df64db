"""``chess-snn results``, ``ratings`` and ``report``: a campaign as tables, and as one HTML page."""

import io
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table

from chess_snn.campaign import CampaignFolder, Receipt, read_receipts
from chess_snn.campaign.store.notes import missing_notices
from chess_snn.campaign.strength.matches import readable_final_matches
from chess_snn.campaign.strength.ratings import ANCHOR, rate_campaign
from chess_snn.campaign.viewing.alarms import find_alarms
from chess_snn.campaign.viewing.lines import is_faulty, ladder_test_line
from chess_snn.campaign.viewing.results import result_rows, results_csv, results_json
from chess_snn.cli.console import (
    PrintableConsole,
    console,
    print_json,
    print_message,
    print_notice,
    table_of,
)
from chess_snn.cli.options import AsJsonOption, CampaignArgument, output_option
from chess_snn.data import write_text
from chess_snn.errors import CampaignError, UsageError, printable
from chess_snn.evaluation.ratings.result import Rating
from chess_snn.report.columns import (
    LEARNING_COLUMNS,
    RATING_COLUMNS,
    SHORT_COLUMNS,
    Columns,
    columns_of,
    match_columns,
    strength_columns,
)
from chess_snn.report.page import write_report
from chess_snn.types import Json
from chess_snn.wording import counted

_WIDTH: Final = 100
"""Characters of a line where there is no terminal and ``COLUMNS`` says nothing."""
_BETWEEN_COLUMNS: Final = 2


def results_command(
    directory: CampaignArgument,
    last: Annotated[
        int | None, typer.Option(min=1, help="Show only so many iterations, the newest.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: every iteration and the final matches.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: a line an iteration.")] = False,
    out: Annotated[
        Path | None, output_option("Write to this file; else to standard output.")
    ] = None,
) -> None:
    """Show every finished iteration of a campaign, from its folder alone.

    The names of columns in JSON and CSV stay as they are; what was not measured is null or empty.

    chess-snn results campaigns/cpu-001 --last 10

    chess-snn results campaigns/cpu-001 --csv --out results.csv
    """
    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other; choose one")
    folder = CampaignFolder.open(directory)
    receipts = read_receipts(folder)
    receipts = receipts[-last:] if last else receipts
    rows = result_rows(folder, receipts)
    finals, faults = readable_final_matches(folder)
    if as_json:
        text = results_json(folder, rows, finals)
    elif as_csv:
        text = results_csv(folder.config, rows)
    elif not rows:
        text = printable(f"{folder.path}: no iteration is finished yet\n")
    else:
        faulty = [match for receipt in receipts for match in receipt.matches if is_faulty(match)]
        is_shown = out is None and console.is_terminal
        width = console.width if is_shown else shutil.get_terminal_size((_WIDTH, 0)).columns
        tables = _tables(folder, rows, faulty, finals, width)
        buffer = io.StringIO()
        lines = console if is_shown else PrintableConsole(
            file=buffer, width=width, highlight=False, color_system=None
        )
        for table in tables:
            lines.print(table)
        text = buffer.getvalue()
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)
    for notice in [*faults, *missing_notices(folder)]:
        print_notice(notice)


def _tables(
    folder: CampaignFolder, rows: Sequence[Json], faulty: Sequence[Json], finals: Sequence[Json],
    width: int,
) -> list[Table]:
    """Learning, strength of the generations that were evaluated, and the final matches.

    Matches in which a player failed stand before those, if there are any.
    """
    learning = columns_of(folder.config, LEARNING_COLUMNS)
    tables = _side_by_side(f"campaign {folder.name}", rows, learning, width)
    if evaluated := [row for row in rows if row["score"] is not None]:
        columns = strength_columns(folder.config)
        tables += _side_by_side("score (95 % interval)", evaluated, columns, width)
    if faulty:
        tables.append(matches_table("matches with games that were forfeited or void", faulty))
    if finals:
        tables.append(matches_table("at the end of the campaign", finals))
    return tables


def _side_by_side(
    title: str, rows: Sequence[Json], columns: Columns, width: int
) -> list[Table]:
    """One table, or where ``width`` is too small several, each with the first column."""
    (first, key), *others = columns.items()
    blocks: list[Columns] = [{first: key}]
    used = _width_of(first, key, rows)
    for heading, cell in others:
        used += _width_of(heading, cell, rows)
        if used > width and len(blocks[-1]) > 1:
            blocks.append({first: key})
            used = _width_of(first, key, rows) + _width_of(heading, cell, rows)
        blocks[-1][heading] = cell
    titles = [title, *([None] * (len(blocks) - 1))]
    return [table_of(name, rows, block) for name, block in zip(titles, blocks, strict=True)]


def _width_of(heading: str, cell: Callable[[Json], str], rows: Sequence[Json]) -> int:
    """Characters that a column takes."""
    return _BETWEEN_COLUMNS + max(map(len, (*heading.splitlines(), *map(cell, rows))))


def matches_table(title: str, matches: Sequence[Json]) -> Table:
    """A line a match, from summaries of matches; of a game of one player with its points."""
    return table_of(title, matches, match_columns(matches))


def ratings_table(title: str, ratings: Sequence[Rating]) -> Table:
    """A line a player."""
    return table_of(title, ratings, RATING_COLUMNS, left=("player",))


def print_summary(folder: CampaignFolder, receipts: Sequence[Receipt]) -> None:
    """The finished iterations as a table, the newest matches as another, and the alarms."""
    if not receipts:
        return
    rows = result_rows(folder, receipts)
    columns = columns_of(folder.config, SHORT_COLUMNS)
    console.print(table_of(f"campaign {folder.name}", rows, columns))
    evaluated = [receipt for receipt in receipts if receipt.matches]
    if evaluated:
        title = f"generation {evaluated[-1].training.generation}"
        console.print(matches_table(title, evaluated[-1].matches))
        if (ladder_test := evaluated[-1].ladder_test) is not None:
            print_message(ladder_test_line(ladder_test))
    if gating_matches := [
        receipt.promotion for receipt in receipts if receipt.promotion is not None
    ]:
        print_message(f"The last candidate: {gating_matches[-1]}.")
    finals, faults = readable_final_matches(folder)
    if finals:
        console.print(matches_table("at the end of the campaign", finals))
    for fault in faults:
        print_message(fault)
    for alarm in find_alarms([receipt.metrics() for receipt in receipts]):
        print_message(f"ALARM {alarm}")


def ratings_command(directory: CampaignArgument, as_json: AsJsonOption = False) -> None:
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
            f"{counted(folder.config.evaluation.every, 'generation')}"
        )
    if as_json:
        print_json(rated.to_json())
        return
    ratings = rated.ratings
    console.print(ratings_table(f"{folder.name}: Elo above {ANCHOR}", ratings.table))
    print_message(
        f"Playing white is worth {ratings.colour_advantage.value:.0f} points; "
        f"{ratings.draw_rate.value:.0%} of games between equals are drawn or truncated."
    )
    if rated.notice is not None:
        print_message(rated.notice)


def report_command(
    directory: CampaignArgument,
    out: Annotated[
        Path | None,
        output_option("Write to this file; by default report.html in the campaign's folder."),
    ] = None,
) -> None:
    """Write a campaign as one HTML file: curves, tables, games on a board, spikes and costs.

    The file needs no network and no other file, and can be sent to anyone. A campaign writes it at
    its end; write it earlier for one that is still running or was stopped.

    chess-snn report campaigns/cpu-001 --out report.html
    """
    print_message(f"Written: {write_report(CampaignFolder.open(directory), out)}")
