"""``chess-snn scores``: what players come to in a game of one player, all on the same seeds."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated

import typer
from rich.table import Table

from chess_snn.cli.console import console, make_table, work_bar
from chess_snn.cli.options import (
    JsonFile,
    NetworkDeviceOption,
    SeedOption,
    SimulationsOption,
    ThreadsOption,
)
from chess_snn.cli.players import GameOption, find_player, game_of_players, take_seat
from chess_snn.data import write_json
from chess_snn.errors import UsageError
from chess_snn.evaluation.matches import default_max_plies
from chess_snn.evaluation.named_players import KNOWN_PLAYERS
from chess_snn.evaluation.solo import (
    SoloGames,
    interval_text,
    match_seeds,
    paired_difference,
    play_seeds,
    point_figures,
)
from chess_snn.games.base import GameSpec
from chess_snn.types import Json


def scores_command(
    players: Annotated[
        list[str], typer.Argument(help=f"{', '.join(KNOWN_PLAYERS)}, or networks.")
    ],
    game_name: GameOption = "",
    games: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Of each player, on the same seeds.")
    ] = 1000,
    simulations: SimulationsOption = 4,
    max_plies: Annotated[
        int, typer.Option(min=0, help="Longer games are truncated; 0: 100,000.")
    ] = 0,
    seed: SeedOption = 0,
    threads: ThreadsOption = 0,
    device: NetworkDeviceOption = "cpu",
    json_file: JsonFile = None,
) -> None:
    """Let players play complete games of a one-player game, and compare their points.

    Every player gets the same starts and the same chance events. The table has the mean with its
    95 % interval, median and most points, the paired difference to the first player, moves a
    second, and how many games reach each milestone.

    chess-snn scores --game 2048 random greedy expectimax:1 expectimax:2

    chess-snn scores campaigns/cpu-2048-001:0 campaigns/cpu-2048-001:4 campaigns/cpu-2048-001:64
    """
    game = game_of_players(players, game_name)
    if game.spec.num_players != 1:
        raise UsageError(
            f"{game.spec.name} is a game of two players; use chess-snn match, or --game 2048"
        )
    found = [find_player(game, text, simulations) for text in players]
    seeds = match_seeds(seed, games)
    played: dict[str, SoloGames] = {}
    for each in found:
        with ExitStack() as pools:
            player = take_seat(game, each, games, threads or None, device, pools)
            play_seeds(game, player, seeds[:1], max_plies=2)  # so that nothing is compiled later
            with work_bar(player.name, "games over") as on_progress:
                played[player.name] = play_seeds(
                    game, player, seeds, max_plies=max_plies or default_max_plies(game.spec),
                    on_progress=on_progress,
                )
    rows = {name: _figures(game.spec, done, next(iter(played.values())))
            for name, done in played.items()}
    console.print(_table(game.spec, games, rows))
    if json_file is not None:
        write_json(json_file, {"game": game.spec.name, "seed": seed, "players": rows})


def _figures(spec: GameSpec, done: SoloGames, first: SoloGames) -> Json:
    return point_figures(spec, done.points, done.milestones, done.plies) | {
        "moves_per_s": float(done.plies.sum() / done.seconds),
        "seconds": done.seconds,
        "ahead_of_first": paired_difference(done.points, first.points),
    }


def _table(spec: GameSpec, games: int, rows: dict[str, Json]) -> Table:
    """A column a player."""
    title = f"{spec.name}: {games:,} games each; shares by {spec.milestone_name}"
    table = make_table(title, "points", *rows, left=("points",))
    cells: dict[str, Callable[[Json], str]] = {
        "mean (95 %)": interval_text,
        "median": lambda row: f"{row['median']:,.0f}",
        "most": lambda row: f"{row['best']:,.0f}",
        "ahead": lambda row: interval_text(row["ahead_of_first"]),
        "moves a game": lambda row: f"{row['plies']:,.0f}",
        "moves/s": lambda row: f"{row['moves_per_s']:,.0f}",
    }
    for heading, cell in cells.items():
        table.add_row(heading, *map(cell, rows.values()))
    for milestone in map(str, spec.milestones):
        shares = (f"{row['reached'][milestone]:.1%}" for row in rows.values())
        table.add_row(f"≥ {milestone}", *shares)
    return table
