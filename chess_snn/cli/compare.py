"""``chess-snn models compare``: which of two networks is better, and how sure that is."""

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.models.references import KNOWN_MODELS
from chess_snn.cli.console import console, print_message
from chess_snn.cli.match import (
    MaxPliesOption,
    OpeningsOption,
    check_match_options,
    default_openings,
    elo_json,
    elo_text,
    find_openings,
    games_pgn,
    play_entrants,
)
from chess_snn.cli.options import (
    NetworkDeviceOption,
    SimulationsOption,
    ThreadsOption,
    check_writable,
)
from chess_snn.cli.orchestration import load_tracking, tracking_store
from chess_snn.cli.players import Entrant, GameOption, find_network_entrant, game_of_players
from chess_snn.cli.plots import comparison_svg
from chess_snn.data import staged_folder, write_parts, write_text
from chess_snn.data.manifest import describe_file
from chess_snn.errors import ChessSnnError, UsageError
from chess_snn.evaluation import Comparison, MatchResult, default_max_plies
from chess_snn.evaluation import compare as judge
from chess_snn.evaluation.match_files import write_match
from chess_snn.evaluation.solo import interval_text
from chess_snn.games.base import Game
from chess_snn.types import Json

RESULT: Final = "comparison.json"
TABLE: Final = "comparison.md"
PLOT: Final = "comparison.svg"
GAMES: Final = "games.pgn"
_KIND: Final = "comparison"
_DIGEST_LENGTH: Final = 8


def compare(
    a: Annotated[str, typer.Argument(help=f"A network: {KNOWN_MODELS}.")],
    b: Annotated[str, typer.Argument(help="The other one, written the same way.")],
    game_name: GameOption = "",
    games: Annotated[int, typer.Option(help="Even: each opening is played twice.")] = 200,
    simulations: SimulationsOption = 64,
    max_plies: MaxPliesOption = None,
    openings: OpeningsOption = "",
    seed: Annotated[int, typer.Option(help="Of openings and games.")] = 0,
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
    game = game_of_players([a, b], game_name)
    max_plies = default_max_plies(game.spec) if max_plies is None else max_plies
    openings = openings or default_openings(game)
    check_match_options(games, simulations, max_plies, threads, seed)
    if out is not None and out.exists():
        raise UsageError(f"{out} exists already; choose a new folder with --out")
    check_writable(out, "--out")
    entrants = [find_network_entrant(game, text, simulations) for text in (a, b)]
    starts = find_openings(game, openings, games // 2, seed)
    start = time.perf_counter()
    result = play_entrants(
        game, entrants, starts, seed=seed, max_plies=max_plies, threads=threads, device=device
    )
    seconds = time.perf_counter() - start
    comparison = judge(result)
    _print(comparison)
    settings: Json = {
        "seed": seed, "opening_source": openings, "max_plies": max_plies, "device": device,
    }
    campaigns = _campaigns(entrants)
    if out is None and not campaigns:
        return
    target = out or campaigns[0].comparison(_name(entrants, games, settings))
    settings["seconds"] = round(seconds, 1)
    _write(target, game, entrants, comparison, settings)
    kept = [TABLE, PLOT, RESULT, *([] if result.is_solo else [GAMES])]
    print_message(f"Kept in {target}: {', '.join(kept)}.")
    for campaign in campaigns:
        _tell_mlflow(campaign, target)


def _campaigns(entrants: Sequence[Entrant]) -> list[CampaignFolder]:
    """Of the networks that have one, each once, a's first."""
    found: dict[str, CampaignFolder] = {}
    for entrant in entrants:
        if entrant.model is not None and entrant.model.campaign is not None:
            found.setdefault(entrant.model.campaign.campaign_id, entrant.model.campaign)
    return list(found.values())


def _name(entrants: Sequence[Entrant], games: int, settings: Json) -> str:
    """The same for the same match, whose outcome is the same too, wherever its networks lie."""
    sides = "-against-".join(_short_name(entrant) for entrant in entrants)
    players = [
        [_weights_digest(entrant), entrant.model and entrant.model.config_digest,
         entrant.simulations, entrant.random_percent]
        for entrant in entrants
    ]
    match = json.dumps([players, games, settings], sort_keys=True)
    return f"{sides}-{hashlib.sha256(match.encode()).hexdigest()[:_DIGEST_LENGTH]}"


def _weights_digest(entrant: Entrant) -> str | None:
    if entrant.model is None or entrant.model.weights is None:
        return None
    return describe_file(entrant.model.weights).sha256


def _short_name(entrant: Entrant) -> str:
    model = entrant.model
    if model is None or model.generation is None:
        return f"network@{entrant.simulations}"
    return f"gen-{model.generation:06d}@{entrant.simulations}"


def _rows(comparison: Comparison) -> dict[str, str]:
    """The table, by headings."""
    result = comparison.result
    low, high = result.interval()
    pairs = "-".join(map(str, comparison.counts.tolist()))
    return {
        "games": f"{result.num_games}: {result.wins} won, {result.draws} drawn, "
                 f"{result.losses} lost, {result.capped} cut",
        "pairs of 0, ½, 1, 1½, 2 points": pairs,
        "score": f"{result.score:.3f} ({low:.3f} to {high:.3f})",
        "Elo difference": elo_text(result.score, low, high),
        "likelihood of superiority": f"{comparison.superiority:.1%}",
        **(_point_rows(result) if result.is_solo else {}),
    }


def _point_rows(result: MatchResult) -> dict[str, str]:
    figures = result.point_figures()
    return {
        f"points of {result.player_a}": interval_text(figures["a"]),
        f"points of {result.player_b}": interval_text(figures["b"]),
        "points ahead on a seed": interval_text(figures["ahead"]),
    }


def _verdict(comparison: Comparison) -> str:
    if not comparison.better:
        return "Neither is better: the games are exactly even."
    return (
        f"{comparison.better} is the better one with a probability of "
        f"{comparison.probability:.1%}."
    )


def _print(comparison: Comparison) -> None:
    result = comparison.result
    table = Table(title=f"{result.player_a} against {result.player_b}", show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="left")
    for name, text in _rows(comparison).items():
        table.add_row(name, text)
    console.print(table)
    print_message(_verdict(comparison))


def _write(
    target: Path, game: Game, entrants: Sequence[Entrant], comparison: Comparison,
    settings: Json,
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
            write_parts(stage.path / GAMES, games_pgn(game, entrants, result, settings["seed"]))
        stage.commit(_KIND, {"likelihood_of_superiority": comparison.superiority})


def _tell_mlflow(campaign: CampaignFolder, kept: Path) -> None:
    """Where the store is away, the folder has it all the same."""
    store = tracking_store()
    if store is None:
        return
    try:
        load_tracking().keep_artifacts(store, campaign, kept, f"comparisons/{kept.name}")
        print_message(f"Kept with the artifacts of {campaign.name} in MLflow.")
    except ChessSnnError as error:
        print_message(f"MLflow was not told: {error}")
