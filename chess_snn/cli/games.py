"""``chess-snn games``: PGN in and out, one game to look at, figures of many."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from chess_snn.cli.console import (
    console,
    make_table,
    print_json,
    print_message,
    print_notice,
    print_rows,
)
from chess_snn.cli.imports import import_command
from chess_snn.cli.options import AsJsonOption, output_option
from chess_snn.cli.train import label_command, learn_command
from chess_snn.errors import UsageError
from chess_snn.later import to_run
from chess_snn.settings import check_choice
from chess_snn.wording import counted

if TYPE_CHECKING or to_run(__name__):
    import chess
    import numpy as np

    from chess_snn.campaign import CampaignFolder
    from chess_snn.campaign.store.collection import (
        OUTCOMES,
        CollectedGame,
        GameCollection,
        GameFilter,
        open_collection,
    )
    from chess_snn.campaign.store.folder import CONFIG_FILE
    from chess_snn.campaign.store.notes import missing_notices
    from chess_snn.campaign.viewing.recorded_games import collection_figures, replay, to_pgn
    from chess_snn.cli.drawing import board_svg, draw_board, draw_position, position_of
    from chess_snn.data import write_parts, write_text
    from chess_snn.games import check_game, get_game
    from chess_snn.types import Json

app = typer.Typer(help="PGN in and out; look at games that were played.", no_args_is_help=True)

Directory = Annotated[
    Path, typer.Argument(help="A campaign's folder, a shard in it, or an import's folder.")
]

_PGN_GAME: Final = "chess"
"""The one that PGN and SVG are written of."""


def _open(directory: Path) -> GameCollection:
    """The games there; says where some were removed, for numbers count those that are there."""
    collection = open_collection(directory)
    if (directory / CONFIG_FILE).is_file():
        for notice in missing_notices(CampaignFolder.open(directory)):
            print_notice(notice)
    return collection


@app.command()
def export(
    directory: Directory,
    out: Annotated[Path | None, output_option("File to write; else standard output.")] = None,
    iteration: Annotated[str | None, typer.Option(help="One, or a range such as 3:7.")] = None,
    generation: Annotated[str | None, typer.Option(help="That played; likewise.")] = None,
    outcome: Annotated[str | None, typer.Option(help="white, draw or black.")] = None,
    limit: Annotated[int | None, typer.Option(help="Most games.")] = None,
    matches: Annotated[
        bool, typer.Option("--matches", help="Those of a campaign's matches, not of self-play.")
    ] = False,
) -> None:
    """Write games as PGN.

    chess-snn games export campaigns/cpu-001 --iteration 18: --outcome white --out won.pgn

    chess-snn games export campaigns/cpu-001 --matches --generation 18 --out matches.pgn
    """
    if outcome is not None:
        check_choice("--outcome", outcome, OUTCOMES)
    wanted = GameFilter(
        iterations=_parse_range("--iteration", iteration),
        generations=_parse_range("--generation", generation),
        outcome=outcome, limit=limit,
    )
    if matches:
        from chess_snn.campaign.strength.match_games import (  # noqa: PLC0415 - not to show a game
            match_games_pgn,
        )
        folder = CampaignFolder.open(directory)
        check_game(folder.name, folder.config.campaign.game, _PGN_GAME)
        games, total = match_games_pgn(folder, wanted), None
    else:
        collection = _open(directory)
        check_game(collection.name, collection.spec.name, _PGN_GAME)
        games = (to_pgn(collection, game) for game in collection.games(wanted))
        total = f"{collection.num_games:,}"
    first = next(games, None)
    if first is None:
        all_games = "match games" if total is None else f"{total} games"
        raise UsageError(f"none of the {all_games} of {directory} is wanted; ask for more")
    count = 0

    def texts() -> Iterator[str]:
        nonlocal count
        for text in chain([first], games):
            count += 1
            yield text

    if out is None:
        for text in texts():
            typer.echo(text, nl=False)
    else:
        write_parts(out, texts())
    of_all = "" if total is None else f" of {total}"
    typer.echo(f"{count:,}{of_all} games" if of_all else counted(count, "game"), err=True)


@app.command()
def show(
    directory: Directory,
    game: Annotated[int, typer.Option(help="Its number, from 1; `Game` in exported PGN.")] = 1,
    ply: Annotated[int | None, typer.Option(help="Plies played on the board; else all.")] = None,
    svg: Annotated[Path | None, output_option("Draw the board into this file.")] = None,
) -> None:
    """Show a game and a board of it.

    Of a game of one player, 2048, its moves and its score up to the board.

    chess-snn games show campaigns/cpu-001 --game 12 --ply 40 --svg board.svg
    """
    collection = _open(directory)
    if svg is not None:
        check_game(collection.name, collection.spec.name, _PGN_GAME)
    found = collection.game(game)
    num_plies = int(np.diff(found.records.game_offsets)[found.index])
    ply = num_plies if ply is None else ply
    if not 0 <= ply <= num_plies:
        raise UsageError(f"--ply must be >= 0 and <= {num_plies} in this game, got {ply}")
    if collection.spec.num_players == 1:
        _show_alone(collection, found, ply)
        return
    text = to_pgn(collection, found)  # first: it plays the game over
    board = position_of(found.records, found.index, ply)
    if svg is not None:
        write_text(svg, board_svg(board))
    print_message(text)
    mover = "White" if board.turn == chess.WHITE else "Black"
    typer.echo(f"After {ply} of {num_plies} plies, {mover} to move:\n")
    typer.echo(draw_board(board, chess.WHITE, ascii_only=True))
    typer.echo(f"\n{board.fen()}")


def _show_alone(collection: GameCollection, found: CollectedGame, ply: int) -> None:
    game = get_game(collection.spec.name)
    replayed = replay(game, collection, found, ply)
    print_rows(None, replayed.facts)
    print_message(f"\n{replayed.moves}\n")
    print_message(
        f"After {ply:,} of {replayed.num_plies:,} moves, score {replayed.points:,.0f}"
        + (", before the last tile came:" if ply == replayed.num_plies else ":")
    )
    console.print(draw_position(game, replayed.state))
    print_message(game.format_state(replayed.state))


@app.command()
def stats(
    directory: Directory,
    as_json: AsJsonOption = False,
) -> None:
    """Show what games there are, how they began and how they ended."""
    collection = _open(directory)
    figures = collection_figures(collection)
    if as_json:
        print_json(figures)
    else:
        _print_figures(figures, collection.spec.milestone_name)


app.command("import")(import_command)
app.command("label")(label_command)
app.command("learn")(learn_command)


def _parse_range(option: str, text: str | None) -> range | None:
    """``7`` as 7 alone, ``3:7`` as 3 to 7 with both ends, ``3:`` and ``:7`` open on one side."""
    if text is None:
        return None
    first, colon, last = text.partition(":")
    numbers = (first, last) if colon else (first, first)
    if not all(number.isdecimal() or (colon and not number) for number in numbers):
        raise UsageError(f"{option} must be a number or a range such as 3:7, got {text!r}")
    low, high = numbers
    found = range(int(low or 0), int(high or 2**31) + 1)
    if not found:
        raise UsageError(f"{option} must rise, got {text!r}")
    return found


def _print_figures(figures: Json, milestone_name: str) -> None:
    table = make_table(str(figures["name"]), "", "games", "%", left=("",))
    num_games = figures["games"]
    labels = {
        "results": "result", "milestones": milestone_name, "endings": "ending", "starts": "start",
    }
    for group in filter(figures.__contains__, labels):
        for name, count in figures[group].items():
            label = f"{labels[group]}: {name.replace('_', ' ')}"
            table.add_row(label, f"{count:,}", f"{100 * count / num_games:.1f}")
        table.add_section()
    console.print(table)
    plies = figures["plies"]
    print_message(
        f"{counted(num_games, 'game')} in {counted(figures['shards'], 'shard')} "
        f"({figures['bytes'] / 1e6:,.1f} MB), {counted(figures['positions'], 'position')}; plies: "
        f"mean {plies['mean']:.1f}, median {plies['median']:.0f}, {plies['min']} to {plies['max']}"
    )
    if "points" in figures:
        points = figures["points"]
        print_message(
            f"score: mean {points['mean']:,.0f}, median {points['median']:,.0f}, most "
            f"{points['max']:,.0f}"
        )
    if figures["iterations"]:
        first, last = figures["iterations"]
        print_message(f"iterations {first} to {last}")
