"""``chess-snn games learn``: a network from given games alone, without a campaign."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from chess_snn.campaign import load_config, preset_names
from chess_snn.campaign.stages.training_alone import TrainedNetwork, train_network
from chess_snn.cli.console import console, print_message, work_bar
from chess_snn.cli.given_games import check_given_games, games_setting
from chess_snn.cli.report_file import JsonFile, check_writable
from chess_snn.config import check_range
from chess_snn.cores import num_cores
from chess_snn.data import write_json
from chess_snn.interrupts import EXIT_INTERRUPTED
from chess_snn.training import Points

_COLUMNS = {
    "step": ("step", ",.0f"),
    "epoch": ("epoch", ".2f"),
    "policy\nloss": ("policy_loss", ".3f"),
    "value\nloss": ("value_loss", ".3f"),
    "samples/s": ("samples_per_s", ",.0f"),
    "held out:\npolicy": ("holdout_policy_loss", ".3f"),
    "\nvalue": ("holdout_value_loss", ".3f"),
    "\nmoves %": ("holdout_policy_accuracy", ".1%"),
}
_MOST_ROWS = 12


def learn_command(
    games: Annotated[
        Path, typer.Argument(help="The --out of chess-snn games import, or a campaign's folder.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the network to be.")],
    preset: Annotated[
        str | None, typer.Option(help=f"Where to begin: {', '.join(preset_names())}.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with settings, over the preset's.")
    ] = None,
    set: Annotated[  # the option's name
        list[str] | None,
        typer.Option(help="One setting of net, training or supervised. May be repeated."),
    ] = None,
    threads: Annotated[int, typer.Option(help="Of a CPU; 0 takes every core.")] = 0,
    json_file: JsonFile = None,
) -> None:
    """Train a network on given games: the moves that were played, and how the games ended.

    Settings are those of a campaign: net, training, supervised, campaign.seed, execution.device.
    One game in 16 is held out and measured. After Ctrl-C or a crash, the same command goes on.

    chess-snn games learn imports/lichess --out networks/tiny --set supervised.epochs=3

    chess-snn games learn imports/lichess --out networks/large --set net.size=large
    --set supervised.learning_rate=1e-3
    """
    check_range("--threads", threads, ge=0, le=1024)
    check_writable(json_file)
    configuration = check_given_games(
        load_config(preset, config, [*(set or []), *games_setting(games)])
    )
    try:
        with work_bar(f"training {out.name}", "steps") as on_progress:
            trained = train_network(
                configuration, out, num_threads=threads or num_cores(),
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        print_message("stopped; the same command goes on from the last checkpoint")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    _print_trained(trained)
    if json_file is not None:
        write_json(json_file, {"network": str(trained.path), "points": trained.points})


def _print_trained(trained: TrainedNetwork) -> None:
    if trained.points:
        console.print(_points_table(trained.points))
    state = "was trained before" if trained.was_there else "is trained"
    print_message(
        f"{trained.path} {state}. What to do next:\n"
        f"  chess-snn match {trained.path}:64 greedy     what it has learnt\n"
        f"  chess-snn play --model {trained.path}"
    )


def _points_table(points: Points) -> Table:
    """The beginning, the end, and some points evenly between them."""
    last = len(points) - 1
    num_rows = min(len(points), _MOST_ROWS)
    rows = sorted({round(k * last / max(1, num_rows - 1)) for k in range(num_rows)})
    table = Table()
    for heading in _COLUMNS:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*(
            format(points[row][name], form) if name in points[row] else ""
            for name, form in _COLUMNS.values()
        ))
    return table
