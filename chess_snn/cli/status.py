"""``chess-snn campaign status`` and ``report``: a campaign as tables, files and one HTML page."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chess_snn.cli.console import console, print_json, print_message, print_notice
from chess_snn.cli.options import AsJsonOption, CampaignArgument, output_option
from chess_snn.errors import CampaignError, UsageError
from chess_snn.later import to_run
from chess_snn.wording import counted

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.campaign import CampaignFolder
    from chess_snn.campaign.store.notes import missing_facts
    from chess_snn.campaign.store.plans import campaign_length
    from chess_snn.campaign.store.receipts import recorded_seconds
    from chess_snn.campaign.strength.ratings import ANCHOR, rate_campaign
    from chess_snn.campaign.viewing.results import results_csv
    from chess_snn.campaign.viewing.watching import CampaignView, CampaignWatch
    from chess_snn.cli.dashboard import print_summary, ratings_table, state_lines
    from chess_snn.experiment.judging import FILE as EXPERIMENT
    from chess_snn.report.experiment_page import write_experiment_page
    from chess_snn.report.page import write_report
    from chess_snn.types import Json


def status_command(
    directory: CampaignArgument,
    ratings: Annotated[
        bool, typer.Option("--ratings", help="Rate all players from all games at once instead.")
    ] = False,
    as_json: AsJsonOption = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV: every figure, a line an iteration.")
    ] = False,
) -> None:
    """Show what a campaign has done, from its folder alone.

    JSON and CSV have every figure of every iteration, under names that stay as they are; what was
    not measured is null or empty. Ratings are Elo points above the random mover, with 95 %
    intervals; the search budget is part of a name: gen-000012@64 had 64 simulations a move.

    chess-snn campaign status campaigns/cpu-001

    chess-snn campaign status campaigns/cpu-001 --csv > results.csv
    """
    if as_csv and (as_json or ratings):
        raise UsageError("--csv stands alone; give it without --json and --ratings")
    if ratings:
        _print_ratings(CampaignFolder.open(directory), as_json=as_json)
        return
    view = CampaignWatch(directory).look()
    folder = view.folder
    if as_json or as_csv:
        if as_csv:
            typer.echo(results_csv(folder, view.rows), nl=False)
        else:
            print_json(_status(view))
        for fault in view.faults:
            print_notice(fault)
        return
    print_summary(view)
    print_message(
        f"{counted(len(view.receipts), 'iteration')} finished, in "
        f"{recorded_seconds(folder) / 60:,.1f} min; the campaign is to last "
        f"{campaign_length(folder)}."
    )
    if folder.origin is not None:
        print_message(f"It {folder.origin.describe()}.")
    if not view.is_finished:
        for line in state_lines(view):
            print_message(line)


def _status(view: CampaignView) -> Json:
    folder = view.folder
    return {
        "campaign": folder.name,
        "id": folder.campaign_id,
        **asdict(campaign_length(folder)),
        "finished": len(view.receipts),
        "is_finished": view.is_finished,
        "state": view.state_text,
        "stages": [asdict(stage) for stage in view.stages] if view.may_run else [],
        "elapsed_s": recorded_seconds(folder),
        "origin": None if folder.origin is None else asdict(folder.origin),
        "rows": view.rows,
        "alarms": [asdict(alarm) for alarm in view.alarms],
        "final_matches": list(map(asdict, view.final_matches)),
        "absent": missing_facts(folder),
    }


def _print_ratings(folder: CampaignFolder, *, as_json: bool) -> None:
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
        Path | None, output_option("Write to this file; by default report.html in the folder."),
    ] = None,
) -> None:
    """Write a campaign, or an experiment, as one HTML file.

    The file needs no network and no other file, and can be sent to anyone. A campaign writes it at
    its end; write it earlier for one that is still running or was stopped.

    chess-snn report campaigns/cpu-001 --out report.html
    """
    if (directory / EXPERIMENT).exists():
        written = write_experiment_page(directory, out)
    else:
        written = write_report(CampaignFolder.open(directory), out)
    print_message(f"Written: {written}")
