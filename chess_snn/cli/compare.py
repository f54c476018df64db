"""``chess-snn models compare`` and ``campaign compare``: which is better, and how sure that is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from chess_snn.cli.console import console, print_json, print_message, print_rows, table_of
from chess_snn.cli.match import GamesOption, MaxPliesOption, OpeningsOption
from chess_snn.cli.options import (
    NETWORK,
    AsJsonOption,
    GameOption,
    NetworkDeviceOption,
    SeedOption,
    SimulationsOption,
    ThreadsOption,
    check_writable,
    output_option,
)
from chess_snn.cli.orchestration import ask_mlflow
from chess_snn.errors import UsageError
from chess_snn.later import to_run

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.api.matches import Match, game_of, player_of
    from chess_snn.campaign import CampaignFolder
    from chess_snn.campaign.models.model import Model
    from chess_snn.campaign.models.references import find_model
    from chess_snn.campaign.strength.measured_points import Point, common_points, milestones
    from chess_snn.cli.match import play_under_bar, score_rows
    from chess_snn.data import staged_folder, write_parts, write_text
    from chess_snn.evaluation.comparison import Comparison, elo_json
    from chess_snn.evaluation.comparison import compare as judge
    from chess_snn.evaluation.match_files import write_match
    from chess_snn.games import get_game
    from chess_snn.report.plots import campaign_curves_svg, comparison_svg
    from chess_snn.types import Json

RESULT: Final = "comparison.json"
TABLE: Final = "comparison.md"
PLOT: Final = "comparison.svg"
GAMES: Final = "games.pgn"
_KIND: Final = "comparison"
_DIGEST_LENGTH: Final = 8


def compare_models(
    a: Annotated[str, typer.Argument(**NETWORK)],
    b: Annotated[str, typer.Argument(help="The other one, written the same way.")],
    game_name: GameOption = "",
    games: GamesOption = 200,
    simulations: SimulationsOption = 64,
    max_plies: MaxPliesOption = None,
    openings: OpeningsOption = "",
    seed: SeedOption = 0,
    threads: ThreadsOption = 0,
    device: NetworkDeviceOption = "cpu",
    out: Annotated[
        Path | None, typer.Option(help="New folder for table, plot and games.")
    ] = None,
) -> None:
    """Play a match of network A against network B and say which is better, with what probability.

    Each opening is played with both colours, and the pair is one result. Behind a network, :N gives
    it N simulations of its own. The table, a plot (SVG), the figures (JSON) and the games (PGN) are
    kept in the folder of A's campaign, in comparisons/, and with MLflow's artifacts of every
    campaign that a network comes from; with --out, in that folder instead of the campaign's.

    chess-snn models compare campaigns/cpu-001@18 campaigns/cpu-001@4

    chess-snn models compare campaigns/cpu-001@champion exported --games 400 --simulations 16
    """
    if out is not None and out.exists():
        raise UsageError(f"{out} exists already; choose a new folder with --out")
    check_writable(out, "--out")
    game = get_game(game_name or game_of([a, b]))
    models = [find_model(text, game=game.spec.name, simulations=simulations) for text in (a, b)]
    match = play_under_bar(
        *(player_of(model, device=device, threads=threads or None) for model in models),
        games=games, openings=openings, seed=seed, max_plies=max_plies,
    )
    result, settings = match.result, match.settings | {"device": device}
    comparison = judge(result)
    print_rows(f"{result.player_a} against {result.player_b}", _rows(comparison))
    print_message(_verdict(comparison))
    campaigns = list({m.campaign.campaign_id: m.campaign for m in models if m.campaign}.values())
    if out is None and not campaigns:
        return
    target = out or campaigns[0].comparison(_name(models, games, settings))
    settings["seconds"] = round(match.seconds, 1)
    _write(target, match, comparison, settings)
    kept = [TABLE, PLOT, RESULT, *([] if result.is_solo else [GAMES])]
    print_message(f"Kept in {target}: {', '.join(kept)}.")
    for campaign in campaigns:
        ask_mlflow(
            "keep_artifacts", campaign, target, f"comparisons/{target.name}",
            problem="not recorded in MLflow",
            done=f"Kept with the artifacts of {campaign.name} in MLflow.",
        )


def _name(models: Sequence[Model], games: int, settings: Json) -> str:
    """The same for the same match, whose outcome is the same too, wherever its networks lie."""
    sides = "-against-".join(
        ("network" if model.generation is None else f"gen-{model.generation:06d}")
        + f"@{model.simulations}"
        for model in models
    )
    players = [
        [model.file_digest, model.config_digest, model.simulations, model.random_percent,
         model.in_play.ticks, *model.in_play.search]
        for model in models
    ]
    match = json.dumps([players, games, settings], sort_keys=True)
    return f"{sides}-{hashlib.sha256(match.encode()).hexdigest()[:_DIGEST_LENGTH]}"


def _rows(comparison: Comparison) -> dict[str, str]:
    """The table, by headings."""
    return score_rows(comparison.result) | {
        "pairs of 0, ½, 1, 1½, 2 points": "-".join(map(str, comparison.counts.tolist())),
        "likelihood of superiority": f"{comparison.superiority:.1%}",
    }


def _verdict(comparison: Comparison) -> str:
    if not comparison.better:
        return "Neither is better: the games are exactly even."
    return (
        f"{comparison.better} is the better one with a probability of "
        f"{comparison.probability:.1%}."
    )


def _write(
    target: Path, match: Match, comparison: Comparison, settings: Json,
) -> None:
    """Commit the comparison to ``target``; one that is there already was the same."""
    result = comparison.result
    with staged_folder(target) as stage:
        figures = comparison.to_json() | {"elo": elo_json(result)} | settings
        write_match(stage.path / RESULT, result, figures)
        write_text(stage.path / TABLE, "\n".join([
            f"# {result.player_a} against {result.player_b}", "", "| | |", "| --- | --- |",
            *(f"| {name} | {text} |" for name, text in _rows(comparison).items()), "",
            _verdict(comparison), "",
        ]))
        write_text(stage.path / PLOT, comparison_svg(comparison))
        if not result.is_solo:  # PGN is of games of two players
            write_parts(stage.path / GAMES, match.pgn())
        stage.commit(_KIND, {"likelihood_of_superiority": comparison.superiority})


def compare_campaigns(
    a: Annotated[Path, typer.Argument(help="Folder of a campaign.")],
    b: Annotated[Path, typer.Argument(help="Folder of the other one.")],
    points: Annotated[
        int, typer.Option(help="Matches of each measure; 1 is as far as both campaigns are.")
    ] = 1,
    games: GamesOption = 100,
    simulations: SimulationsOption = 64,
    max_plies: MaxPliesOption = None,
    seed: SeedOption = 0,
    threads: ThreadsOption = 0,
    device: NetworkDeviceOption = "cpu",
    plot: Annotated[Path | None, output_option("Write both curves to this file (SVG).")] = None,
    as_json: AsJsonOption = False,
) -> None:
    """Play matches of two campaigns' networks at equal iteration, equal games and equal time.

    Each opening is played with both colours. The likelihood of superiority is the probability that
    A's network is the better one. Time is that in which the campaigns ran.

    chess-snn campaign compare campaigns/cpu-001 campaigns/cpu-001-fork-001 --points 3
    """
    folders = [CampaignFolder.open(path) for path in (a, b)]
    if folders[0].config.campaign.game != folders[1].config.campaign.game:
        raise UsageError(f"{a} and {b} play different games and cannot be compared")
    curves = [milestones(folder) for folder in folders]
    chosen = common_points(curves[0], curves[1], points)
    results: dict[tuple[int, int], Comparison] = {}
    for point in chosen:
        pair = point.a.generation, point.b.generation
        if pair not in results:  # two measures may have the same pair
            models = [
                find_model(f"{folder.path}@{generation}", simulations=simulations)
                for folder, generation in zip(folders, pair, strict=True)
            ]
            match = play_under_bar(
                *(player_of(model, device=device, threads=threads or None) for model in models),
                games=games, seed=seed, max_plies=max_plies, beside_json=as_json,
            )
            results[pair] = judge(match.result)
    rows = [_row(point, results[point.a.generation, point.b.generation]) for point in chosen]
    if plot is not None:
        write_text(plot, campaign_curves_svg([folder.name for folder in folders], curves))
    if as_json:
        print_json({"a": folders[0].name, "b": folders[1].name, "simulations": simulations,
                    "points": rows})
        return
    console.print(table_of(f"A is {folders[0].name}, B is {folders[1].name}", rows, {
        "at equal": lambda row: f"{row['value']:,.0f} {row['measure']}",
        "A": lambda row: _generation(row, "a"),
        "B": lambda row: _generation(row, "b"),
        "score of A (95 %)":
            lambda row: f"{row['score']:.3f} ({row['score_low']:.3f} to {row['score_high']:.3f})",
        "A is better": lambda row: f"{row['likelihood_of_superiority']:.1%}",
    }))
    print_message("Beside a generation is its own score over its campaign's opponents.")


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


def _generation(row: Json, side: str) -> str:
    score = row[f"evaluation_{side}"]
    return f"gen {row[f'generation_{side}']}" + ("" if score is None else f" ({score:.3f})")
