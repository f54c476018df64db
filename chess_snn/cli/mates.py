"""``chess-snn mates``: how many forced mates a network and its search find."""

from typing import Annotated

import numpy as np
import typer

from chess_snn.campaign.models.references import KNOWN_MODELS
from chess_snn.cli.console import print_message, work_bar
from chess_snn.cli.options import JsonFile, NetworkDeviceOption, check_writable
from chess_snn.cli.players import find_model
from chess_snn.config import check_range
from chess_snn.data import write_json
from chess_snn.devices import find_device
from chess_snn.evaluation.scores import wilson_interval
from chess_snn.evaluation.won_positions import MOST_MOVES, forced_wins, num_solved
from chess_snn.games import get_game
from chess_snn.nets import make_evaluator
from chess_snn.search import MAX_SIMULATIONS, make_tree_search

_LARGEST_BATCH = 64


def mates_command(
    model: Annotated[str, typer.Argument(help=f"A network: {KNOWN_MODELS}.")],
    moves: Annotated[int, typer.Option(help="Mate in so many moves: 1 or 2.")] = 2,
    simulations: Annotated[int, typer.Option(help="Descents of the search a position.")] = 800,
    count: Annotated[int, typer.Option(help="Positions, all different.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the random games they are taken from.")] = 0,
    threads: Annotated[int, typer.Option(help="Of the network; 0 takes what is of use.")] = 0,
    device: NetworkDeviceOption = "cpu",
    json_file: JsonFile = None,
) -> None:
    """Search positions with a forced mate and count those answered with a move that forces it.

    The positions come from random games, and every one is proved by trying all moves.

    chess-snn mates campaigns/cpu-001 --moves 2 --simulations 800
    """
    check_range("--moves", moves, ge=1, le=MOST_MOVES)
    check_range("--simulations", simulations, ge=1, le=MAX_SIMULATIONS)
    check_range("--count", count, ge=1, le=10_000)
    check_range("--threads", threads, ge=0, le=1024)
    check_writable(json_file)
    find_device(device)
    game = get_game("chess")
    chosen = find_model(model, game.spec.name)
    with work_bar("finding and proving positions") as update:
        suite = forced_wins(game, count, moves, seed, on_progress=update)
    solved = 0
    with (
        make_evaluator(
            chosen.load(game), device=device, precision=chosen.precision,
            num_threads=threads or None,
        ) as evaluator,
        work_bar("searching") as update,
    ):
        batch = min(count, _LARGEST_BATCH)
        search = make_tree_search(
            game, evaluator, chosen.search, simulations=simulations, num_games=batch
        )
        for first in range(0, count, batch):
            rows = np.arange(first, min(first + batch, count))
            solved += num_solved(game, search, suite.take(rows), moves)
            update(first + len(rows), count)
    low, high = wilson_interval(solved / count, count)
    print_message(
        f"{chosen.label}: {solved} of {count} mates in {moves} at {simulations:,} simulations "
        f"({low:.2f} to {high:.2f} of all such positions, 95 %)."
    )
    if json_file is not None:
        write_json(json_file, {
            "model": chosen.label, "moves": moves, "simulations": simulations, "seed": seed,
            "count": count, "solved": solved,
        })
