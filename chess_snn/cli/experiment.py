"""``chess-snn experiment``: compare variants over seeds, from a file."""

from __future__ import annotations

from pathlib import Path
from shutil import disk_usage
from typing import TYPE_CHECKING, Annotated

import typer

from chess_snn.cli.console import console, print_json, print_message, stoppable, table_of, work_bar
from chess_snn.cli.options import AsJsonOption
from chess_snn.cli.orchestration import record_experiment
from chess_snn.errors import UsageError
from chess_snn.interrupts import interruptible
from chess_snn.later import to_run
from chess_snn.wording import counted

if TYPE_CHECKING or to_run(__name__):
    from rich.filesize import decimal

    from chess_snn.campaign.machine.cost import OPTIMISM, predict_bytes, predict_campaign
    from chess_snn.cli.cost import measured_paces
    from chess_snn.data import write_text
    from chess_snn.experiment.file import TEMPLATE, read_experiment
    from chess_snn.experiment.judging import RESULTS, ExperimentRun
    from chess_snn.experiment.results import TABLES, columns_of, read_results, run_experiment
    from chess_snn.experiment.runs import find_slots
    from chess_snn.report.experiment_page import write_experiment_page
    from chess_snn.types import Json

FileArgument = Annotated[Path, typer.Argument(help="The experiment's file, in TOML.")]
FolderArgument = Annotated[Path, typer.Argument(help="The experiment's folder.")]

app = typer.Typer(
    help="Compare variants over seeds, as a file says.",
    no_args_is_help=True,
)


@app.command()
def new(file: FileArgument) -> None:
    """Write a commented file to begin with.

    chess-snn experiment new batch.toml
    """
    if file.exists():
        raise UsageError(f"{file} exists; choose another name")
    write_text(file, TEMPLATE)
    print_message(f"Written: {file}. Edit it, then: chess-snn experiment check {file}")


@app.command()
def check(file: FileArgument) -> None:
    """Say what an experiment will run, and about how long that takes here.

    chess-snn experiment check batch.toml
    """
    experiment = read_experiment(file)
    header, budget, runs = experiment.header, experiment.budget, experiment.num_runs
    config = experiment.config(experiment.first, header.seeds[0])
    slots = find_slots(experiment, config)
    print_message(
        f"{header.name}: {counted(runs, 'run')} ({counted(runs // len(header.seeds), 'variant')}, "
        f"{counted(len(header.seeds), 'seed')}), {len(slots)} at a time"
    )
    if budget.minutes:
        print_message(f"The runs take about {-(-runs // len(slots)) * budget.minutes:,.0f} min.")
    if not experiment.start.dataset:
        costs = predict_campaign(config, measured_paces(config))
        each_s = sum(cost.iteration_s for cost in costs) / len(costs)
        quickest, slowest = each_s / 60 * OPTIMISM[0], each_s / 60 * OPTIMISM[1] * len(slots)
        print_message(
            f"An iteration of {experiment.first} takes {quickest:.1f} min alone on this machine, "
            f"and up to {slowest:.1f} min beside the others."
        )
        if budget.minutes and budget.minutes < quickest:
            raise UsageError(
                f"budget.minutes = {budget.minutes:g} is shorter than one iteration; use "
                f"{slowest:.0f}, or fewer self_play.games_per_iteration"
            )
        iterations = budget.games // config.self_play.games_per_iteration or (
            budget.minutes / quickest
        )
        needed = runs * predict_bytes(config, iterations)
        free = disk_usage(file.absolute().parent).free
        print_message(f"They take up to {decimal(needed)} of disk; {decimal(free)} are free.")
    matches = (runs - len(header.seeds)) * len(experiment.judge.simulations)
    print_message(f"Then {counted(matches, 'match')} of {experiment.judge.games} games are played.")


@app.command()
def run(
    file: FileArgument,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the experiment; by default the file's name.")
    ] = None,
    until_decided: Annotated[
        bool, typer.Option("--until-decided", help="Add seeds one by one, and stop once all "
                           "verdicts are known. Intervals are wider, so that this errs no more.")
    ] = False,
    race: Annotated[
        bool, typer.Option("--race", help="Give no more seeds to variants that are worse.")
    ] = False,
) -> None:
    """Run an experiment, or go on with it: every variant with every seed, then the verdicts.

    Each run is an ordinary campaign, or network, in the folder `runs`: resume, verify, report and
    watch work on it. What is finished is kept whatever happens; the same command goes on.

    chess-snn experiment run batch.toml --until-decided
    """
    experiment, folder = read_experiment(file), out or file.with_suffix("")
    work = ExperimentRun(
        experiment, folder, print_message, work_bar, until_decided=until_decided, race=race
    )
    stopped = f"stopped; what is finished is kept. Go on: chess-snn experiment run {file}"
    with stoppable(stopped), interruptible():
        body = run_experiment(work)
    page = write_experiment_page(folder)
    _print(body)
    print_message(f"Written: {page}, {folder / RESULTS}")
    record_experiment(body, [folder / RESULTS, page])


@app.command()
def show(directory: FolderArgument, as_json: AsJsonOption = False) -> None:
    """Show what an experiment found.

    chess-snn experiment show batch
    """
    body = read_results(directory)
    if as_json:
        print_json(body)
    else:
        _print(body)


def _print(body: Json) -> None:
    print_message(f"{body['name']}. {body['question']}".strip())
    for key, (title, columns) in TABLES.items():
        if rows := body[key]:
            console.print(table_of(
                title.format(first=body["first"]), rows, columns_of(rows, columns),
                left=("variant", "run", "match", "neurons", "verdict"),
            ))
    for verdict in body["verdicts"]:
        time = " in equal time" if verdict["is_equal_time"] else ""
        print_message(f"{verdict['variant']}{time}: {verdict['text']}")
