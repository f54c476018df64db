"""The commands in one tree, and what an error or Ctrl-C looks like from outside."""

import os
import sys
from typing import Annotated

import typer
from rich.console import Console

from chess_snn import __version__
from chess_snn.cli import (
    analyse,
    bench,
    campaign,
    cluster,
    doctor,
    games,
    keeping,
    ladder,
    learn,
    match,
    mates,
    perft,
    play,
    ratings,
    registry,
    results,
    services,
    train_ranks,
    uci,
    ui,
    watch,
)
from chess_snn.errors import ChessSnnError
from chess_snn.interrupts import EXIT_INTERRUPTED

EXIT_BAD_INPUT = 2

app = typer.Typer(
    name="chess-snn",
    help="A spiking neural network learns chess by playing itself.\n\n"
    "Begin with: chess-snn campaign start --preset smoke",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(campaign.app, name="campaign")
app.add_typer(cluster.app, name="cluster")
games.app.command("learn")(learn.learn_command)
app.add_typer(games.app, name="games")
app.add_typer(ladder.app, name="ladder")
app.add_typer(registry.app, name="models")
app.add_typer(bench.app, name="bench")
# So that a depth of -1 is a bad depth and not an unknown option.
app.command("perft", context_settings={"ignore_unknown_options": True})(perft.perft_command)
app.command("match")(match.match_command)
app.command("analyse")(analyse.analyse_command)
app.command("mates")(mates.mates_command)
app.command("play")(play.play_command)
app.command("ratings")(ratings.ratings_command)
app.command("results")(results.results_command)
app.command("train")(train_ranks.train_command)
app.command("up")(services.up_command)
app.command("down")(services.down_command)
app.command("deploy")(services.deploy_command)
app.command("doctor")(doctor.doctor_command)
app.command("uci")(uci.uci_command)
app.command("verify")(keeping.verify_command)
app.command("gc")(keeping.gc_command)
app.command("ui")(ui.ui_command)
app.command("watch")(watch.watch_command)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"chess-snn {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; errors of ours are one line on standard error and exit code 2."""
    try:
        app(prog_name="chess-snn")
    except ChessSnnError as error:
        _fail(str(error), EXIT_BAD_INPUT)
    except KeyboardInterrupt:
        _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of a pipe has gone: nothing to say, and nobody to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None


def _fail(message: str, code: int) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        f"error: {message}", markup=False
    )
    raise SystemExit(code)
