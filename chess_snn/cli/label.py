"""``chess-snn games label``: what a teacher says of every position of recorded games."""

from pathlib import Path
from typing import Annotated

import typer

from chess_snn.campaign.labelling import Teaching, label_games
from chess_snn.campaign.store.collection import joined, open_collection
from chess_snn.cli.console import print_message, stoppable, work_bar
from chess_snn.cli.options import JsonFile, NetworkDeviceOption, SimulationsOption
from chess_snn.cli.players import find_network
from chess_snn.cores import num_cores
from chess_snn.data import write_json
from chess_snn.evaluation.engines.player import ENGINE_FORMS, is_engine_name
from chess_snn.evaluation.engines.teacher import DEFAULT_LINES, Lines
from chess_snn.games import get_game
from chess_snn.wording import counted


def label_command(
    games: Annotated[
        list[Path],
        typer.Argument(help="Campaigns' folders, or --out of chess-snn games import; one or more."),
    ],
    out: Annotated[Path, typer.Option(help="New folder, or that of labels to go on with.")],
    teacher: Annotated[
        str, typer.Option(help=f"An engine, {', '.join(ENGINE_FORMS)}, or a network.")
    ] = "stockfish@300",
    lines: Annotated[
        int, typer.Option(help="Moves that an engine gives a share of the policy to.")
    ] = DEFAULT_LINES.number,
    temperature: Annotated[
        float, typer.Option(help="Centipawns by which a move must be worse to get 1/e of a share.")
    ] = DEFAULT_LINES.temperature_cp,
    simulations: SimulationsOption = 64,
    limit: Annotated[int | None, typer.Option(help="About how many games; else all.")] = None,
    workers: Annotated[
        int, typer.Option(help="Processes; 0 takes every core, and one on a GPU.")
    ] = 0,
    device: NetworkDeviceOption = "cpu",
    json_file: JsonFile = None,
) -> None:
    """Let an engine, or a larger network, say of each position what to play and how it stands.

    The labelled games are a dataset for `games learn` and `campaign start --warm-start`. After
    Ctrl-C, the same command goes on; finished shards of 64 games are kept. An engine's budget is
    nodes or depth, so the labels are the same on every machine.

    chess-snn games label campaigns/cpu-001 campaigns/cpu-002 --out labels/cpu --teacher
    stockfish@1000

    chess-snn games label imports/lichess --out labels/lichess --teacher networks/large:32
    """
    collection = joined([open_collection(path) for path in games])
    if is_engine_name(teacher):
        teaching = Teaching(teacher, lines=Lines(lines, temperature))
    else:
        game = get_game(collection.spec.name)
        teaching = Teaching(teacher, find_network(game, teacher, simulations), device=device)
    processes = workers or (1 if device.startswith("cuda") else num_cores())
    with (
        stoppable("stopped; the same command goes on, and finished shards are kept"),
        work_bar(f"labelling {collection.name}", "games") as on_progress,
    ):
        labelled = label_games(
            collection, out, teaching, workers=processes, limit=limit, on_progress=on_progress
        )
    report = labelled.report
    print_message(
        f"{out}: {counted(report.games, 'game')}, {counted(report.positions, 'position')}, "
        f"{labelled.new_positions:,} of them labelled now, {labelled.positions_per_s:,.0f} a "
        f"second. What to do next:\n"
        f"  chess-snn games learn {out} --out networks/student --preset cpu"
    )
    if json_file is not None:
        write_json(json_file, report.to_json() | {
            "new_positions": labelled.new_positions, "seconds": round(labelled.seconds, 3),
            "positions_per_s": round(labelled.positions_per_s, 1),
        })
