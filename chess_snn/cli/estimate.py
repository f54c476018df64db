"""``chess-snn campaign estimate``: how long an iteration will take here, or should have taken."""

from pathlib import Path
from typing import Annotated

import typer

from chess_snn.campaign import CampaignFolder, load_config, read_receipts
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.machine.cost import (
    OPTIMISM,
    Cost,
    Pace,
    measure_pace,
    predict_campaign,
    predict_receipt,
)
from chess_snn.campaign.store.plans import S_PER_HOUR
from chess_snn.cli.console import console, print_message, table_of, work_bar
from chess_snn.cli.options import ConfigOption, PresetOption, SetOption
from chess_snn.errors import CampaignError


def estimate(
    directory: Annotated[
        Path | None, typer.Argument(help="A campaign: compare with what its iterations took.")
    ] = None,
    preset: PresetOption = "smoke",
    config: ConfigOption = None,
    set: SetOption = None,
    plies: Annotated[
        float | None,
        typer.Option(help="Mean length of a game; by default that of the first hours.", min=1.0),
    ] = None,
) -> None:
    """Measure this machine for some seconds, and say what an iteration takes.

    chess-snn campaign estimate --preset cpu --set net.size=small
    """
    if directory is not None:
        folder = CampaignFolder.open(directory)
        if not read_receipts(folder):
            raise CampaignError(
                f"{folder.path} has no finished iteration to compare with; estimate a new "
                "campaign with --preset"
            )
        _compare(folder, _measure(folder.config))
        return
    configuration = load_config(preset, config, set or [])
    pace = _measure(configuration)
    _print_costs(configuration, predict_campaign(configuration, pace, plies))


def _measure(config: CampaignConfig) -> Pace:
    with work_bar("measuring", "paces") as on_progress:
        pace = measure_pace(config, on_progress)
    print_message(
        f"{pace.evaluations_per_s:,.0f} evaluations/s in self-play, "
        f"{pace.samples_per_s:,.0f} samples/s in training"
    )
    return pace


def _print_costs(config: CampaignConfig, costs: tuple[Cost, Cost]) -> None:
    rows = list(zip(("first", "last"), (0.0, 1.0), costs, strict=True))
    title = f"an iteration of {config.self_play.games_per_iteration:,} games"
    console.print(table_of(title, rows, {
        "": lambda row: row[0],
        "simulations": lambda row: str(config.search.simulations(row[1])),
        "self-play s": lambda row: f"{row[2].self_play_s:,.1f}",
        "training s": lambda row: f"{row[2].training_s:,.1f}",
        "iteration s": lambda row: f"{row[2].iteration_s:,.1f}",
        "positions/s": lambda row: f"{row[2].positions_per_s:,.0f}",
    }, left=("",)))
    mean_s = sum(cost.iteration_s for cost in costs) / len(costs)
    run, games = config.campaign, config.self_play.games_per_iteration
    low, high = OPTIMISM
    print_message(
        f"In a measured campaign iterations took {low:g} to {high:g} times as long, longest beside "
        "an evaluation. So expect:"
    )
    if run.hours:
        fewest, most = (run.hours * S_PER_HOUR / (mean_s * factor) for factor in (high, low))
        print_message(
            f"{fewest:,.0f} to {most:,.0f} iterations and {fewest * games:,.0f} to "
            f"{most * games:,.0f} games in {run.hours:g} h"
        )
    else:
        quickest, slowest = (run.iterations * mean_s * factor / 60 for factor in OPTIMISM)
        print_message(
            f"{quickest:,.1f} to {slowest:,.1f} min for {run.iterations:,} iterations and "
            f"{run.iterations * games:,} games"
        )


def _compare(folder: CampaignFolder, pace: Pace) -> None:
    rows = [(receipt, predict_receipt(folder.config, pace, receipt))
            for receipt in read_receipts(folder)]
    console.print(table_of(f"{folder.name}: what its iterations should take and took", rows, {
        "iter": lambda row: str(row[0].iteration),
        "self-play s": lambda row: f"{row[1].self_play_s:,.1f}",
        "took": lambda row: f"{row[0].seconds.self_play:,.1f}",
        "training s": lambda row: f"{row[1].training_s:,.1f}",
        "it took": lambda row: f"{row[0].seconds.training:,.1f}",
        "both, took / should": lambda row: format(
            (row[0].seconds.self_play + row[0].seconds.training) / row[1].iteration_s, ".2f"
        ),
    }))
