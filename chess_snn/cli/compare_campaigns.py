"""``chess-snn campaign compare``: which of two campaigns does better, and at what cost."""

import json
from pathlib import Path
from typing import Annotated

import typer

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.strength.measured_points import Point, common_points, milestones
from chess_snn.cli.console import console, make_table, print_message
from chess_snn.cli.match import check_match_options, find_openings, play_entrants
from chess_snn.cli.options import (
    AsJsonOption,
    NetworkDeviceOption,
    SimulationsOption,
    ThreadsOption,
    check_writable,
)
from chess_snn.cli.players import find_entrant
from chess_snn.cli.plots import campaign_curves_svg
from chess_snn.data import write_text
from chess_snn.errors import UsageError
from chess_snn.evaluation import DEFAULT_MAX_PLIES, Comparison
from chess_snn.evaluation import compare as judge
from chess_snn.games import get_game
from chess_snn.types import Json


def compare(
    a: Annotated[Path, typer.Argument(help="Folder of a campaign.")],
    b: Annotated[Path, typer.Argument(help="Folder of the other one.")],
    points: Annotated[
        int, typer.Option(help="Matches of each measure; 1 is as far as both campaigns are.")
    ] = 1,
    games: Annotated[int, typer.Option(help="Of each match. Even: openings are paired.")] = 100,
    simulations: SimulationsOption = 64,
    max_plies: Annotated[int, typer.Option(help="Longer games are cut.")] = DEFAULT_MAX_PLIES,
    seed: Annotated[int, typer.Option(help="Of openings and games.")] = 0,
    threads: ThreadsOption = 0,
    device: NetworkDeviceOption = "cpu",
    plot: Annotated[
        Path | None, typer.Option(help="Write both curves to this file (SVG).")
    ] = None,
    as_json: AsJsonOption = False,
) -> None:
    """Play matches of two campaigns' networks at equal iteration, equal games and equal time.

    Each opening is played with both colours. The likelihood of superiority is the probability that
    A's network is the better one. Time is that in which the campaigns ran.

    chess-snn campaign compare campaigns/cpu-001 campaigns/cpu-001-fork-001 --points 3
    """
    check_match_options(games, simulations, max_plies, threads, seed)
    check_writable(plot, "--plot")
    folders = [CampaignFolder.open(path) for path in (a, b)]
    if folders[0].config.campaign.game != folders[1].config.campaign.game:
        raise UsageError(f"{a} and {b} play different games and cannot be compared")
    curves = [milestones(folder) for folder in folders]
    chosen = common_points(curves[0], curves[1], points)
    game = get_game(folders[0].config.campaign.game)
    starts = find_openings(game, "book", games // 2, seed)
    results: dict[tuple[int, int], Comparison] = {}
    for point in chosen:
        pair = point.a.generation, point.b.generation
        if pair not in results:  # two measures may have the same pair
            entrants = [
                find_entrant(game, f"{folder.path}@{generation}", simulations)
                for folder, generation in zip(folders, pair, strict=True)
            ]
            results[pair] = judge(play_entrants(
                game, entrants, starts, seed=seed, max_plies=max_plies, threads=threads,
                device=device,
            ))
    rows = [_row(point, results[point.a.generation, point.b.generation]) for point in chosen]
    if plot is not None:
        write_text(plot, campaign_curves_svg([folder.name for folder in folders], curves))
    if as_json:
        body = {"a": folders[0].name, "b": folders[1].name, "simulations": simulations,
                "points": rows}
        typer.echo(json.dumps(body, indent=2))
        return
    _print(folders, rows)


def _row(point: Point, comparison: Comparison) -> Json:
    result = comparison.result
    low, high = result.interval()
    return {
        "measure": point.measure, "value": point.value,
        "generation_a": point.a.generation, "generation_b": point.b.generation,
        "evaluation_a": point.a.score, "evaluation_b": point.b.score,
        "games": result.num_games, "wins": result.wins, "draws": result.draws,
        "losses": result.losses, "score": result.score, "score_low": low, "score_high": high,
        "likelihood_of_superiority": comparison.superiority,
    }


def _print(folders: list[CampaignFolder], rows: list[Json]) -> None:
    table = make_table(
        f"A is {folders[0].name}, B is {folders[1].name}",
        "at equal", "A", "B", "score of A (95 %)", "A is better",
    )
    for row in rows:
        table.add_row(
            f"{row['value']:,.0f} {row['measure']}",
            *(f"gen {row[f'generation_{side}']}{_score(row[f'evaluation_{side}'])}"
              for side in "ab"),
            f"{row['score']:.3f} ({row['score_low']:.3f} to {row['score_high']:.3f})",
            f"{row['likelihood_of_superiority']:.1%}",
        )
    console.print(table)
    print_message("Beside a generation is its own score over its campaign's opponents.")


def _score(score: float | None) -> str:
    return "" if score is None else f" ({score:.3f})"
