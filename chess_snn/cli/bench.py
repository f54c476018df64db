"""``chess-snn bench``: what this machine does, as ratios inside one run."""

import importlib
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from chess_snn.bench.report import BenchReport
from chess_snn.cli.bench_table import print_report
from chess_snn.cli.orchestration import load_flows
from chess_snn.cli.report_file import JsonFile, check_writable
from chess_snn.data import write_text
from chess_snn.errors import ConfigError

app = typer.Typer(
    help="Measure one part of the system, beside what it is compared with, in one run.",
    no_args_is_help=True,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quick = Annotated[bool, typer.Option(help="A few seconds only; figures are rough.")]

_ENV_MODULES = {"chess": "env", "2048": "env_2048"}


def _command(module: str, summary: str, name: str | None = None) -> None:
    name = name or module.replace("_", "")

    def bench(json: Json = False, json_file: JsonFile = None, quick: Quick = False) -> None:
        check_writable(json_file)
        # Here, because a benchmark loads what it measures.
        run = importlib.import_module(f"chess_snn.bench.{module}").run
        _give(run(quick=quick), json, json_file, quick)

    bench.__doc__ = f"{summary}\n\nExits with 1 where a bar is missed (not with --quick)."
    app.command(name)(bench)


def _give(report: BenchReport, json: bool, json_file: Path | None, quick: bool) -> None:
    if json_file is not None:
        write_text(json_file, report.to_json() + "\n")
    if json:
        typer.echo(report.to_json())
    else:
        print_report(Console(), report)
    if not report.passes and not quick:
        raise typer.Exit(1)


@app.command("folder")
def _folder(
    json: Json = False, json_file: JsonFile = None, quick: Quick = False,
    shards: Annotated[int, typer.Option(help="Shards of the campaign; bars hold for 50000.")]
    = 50_000,
) -> None:
    """Starting, watching and verifying a campaign of very many shards.

    Takes 15 s and 60 MB of disk for each 1,000 shards; the folder is removed. Exits with 1
    where a bar is missed (not with --quick).

    chess-snn bench folder --shards 5000 --json
    """
    check_writable(json_file)
    run = importlib.import_module("chess_snn.bench.folder").run
    _give(run(quick=quick, shards=shards), json, json_file, quick)


@app.command("env")
def _env(
    json: Json = False, json_file: JsonFile = None, quick: Quick = False,
    game: Annotated[str, typer.Option(help="chess or 2048.")] = "chess",
) -> None:
    """Rules and bitplanes on one core: chess beside python-chess, 2048 with its planning player.

    Exits with 1 where a bar is missed (not with --quick).

    chess-snn bench env --game 2048
    """
    if game not in _ENV_MODULES:
        raise ConfigError(f"--game must be one of {', '.join(_ENV_MODULES)}, got {game!r}")
    check_writable(json_file)
    run = importlib.import_module(f"chess_snn.bench.{_ENV_MODULES[game]}").run
    _give(run(quick=quick), json, json_file, quick)


_command("import_games", "From PGN to shards on two processes, beside python-chess.", "import")
_command("net", "The network alone, beside its twin, the machine's peak, and other libraries'.")
_command("search", "Tree search, alone and with a network, beside OpenSpiel's.")
_command("self_play", "Self-play, beside one game at a time with a batch of one.")
_command("store", "Writing and reading shards, and sampling from the window.")
_command("train", "Training steps, spiking and ordinary, in both precisions.")


@app.command("workers")
def _workers(
    json: Json = False, json_file: JsonFile = None, quick: Quick = False,
    part: Annotated[str | None, typer.Option(help="campaigns or scheduling; both by default.")]
    = None,
) -> None:
    """One worker beside two, what orchestration takes, and thousands of shards.

    Takes about 8 minutes for the first two (campaigns), 5 for the last (scheduling). Exits with 1
    where a bar is missed (not with --quick).
    """
    check_writable(json_file)
    run = load_flows("bench.workers").run
    _give(run(quick=quick, part=part), json, json_file, quick)
