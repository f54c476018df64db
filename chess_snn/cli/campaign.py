"""``chess-snn campaign``: start one, go on with one, look at one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chess_snn.cli.console import print_message, stoppable
from chess_snn.cli.cost import estimate
from chess_snn.cli.options import (
    CampaignArgument,
    ClusterOption,
    ConfigOption,
    DeviceOption,
    GpusOption,
    PresetOption,
    SetOption,
    WorkersOption,
    check_dataset,
    complete_network,
    given_settings,
    pace_settings,
)
from chess_snn.cli.orchestration import existing_store, load_flows
from chess_snn.cli.status import status_command
from chess_snn.errors import CampaignError, UsageError
from chess_snn.interrupts import interruptible
from chess_snn.known import KNOWN_MODELS
from chess_snn.later import to_run

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.api.campaigns import check_before_create, check_workers, new_campaign
    from chess_snn.campaign import CampaignFolder, campaign_lock, read_receipts
    from chess_snn.campaign.configuration.loading import change_pace
    from chess_snn.campaign.configuration.settings import RunSettings
    from chess_snn.campaign.forking import extend_campaign, fork_campaign, fork_config
    from chess_snn.campaign.integrity.preflight import check_before_run
    from chess_snn.campaign.integrity.rebuild import missing_generations
    from chess_snn.campaign.stages.window import removed_games_notice
    from chess_snn.campaign.store.folder import REPORT
    from chess_snn.campaign.store.naming import claim_campaign_path
    from chess_snn.campaign.store.plans import campaign_length
    from chess_snn.campaign.strength.champions import champion_of
    from chess_snn.campaign.strength.matches import is_finished
    from chess_snn.campaign.viewing.up_to_date import is_up_to_date
    from chess_snn.campaign.viewing.watching import CampaignWatch
    from chess_snn.cli.dashboard import print_summary
    from chess_snn.cli.watch import campaign_terminal

app = typer.Typer(
    help="Learn by self-play: play, train, evaluate and register.",
    no_args_is_help=True,
)

app.command()(estimate)


@app.command()
def start(
    preset: PresetOption = "smoke",
    dir: Annotated[  # the option's name
        Path | None, typer.Option(help="New folder; by default campaigns/<preset>-001 and so on.")
    ] = None,
    config: ConfigOption = None,
    set: SetOption = None,
    warm_start: Annotated[
        Path | None,
        typer.Option(
            help="Learn from these games first: the --out of chess-snn games import or label. With "
            "--from, that network goes on learning."
        ),
    ] = None,
    start_from: Annotated[
        str, typer.Option("--from", help=f"Generation 0 is this network: {KNOWN_MODELS}.",
                          autocompletion=complete_network)
    ] = "",
    with_games: Annotated[
        bool, typer.Option("--with-games", help="With --from: also learn from its replay window.")
    ] = False,
    workers: WorkersOption = None,
    gpus: GpusOption = "",
    device: DeviceOption = "",
    cluster: ClusterOption = "",
) -> None:
    """Start a campaign in a new folder, and run it to its end.

    Ctrl-C or SIGTERM stops it with exit code 130, losing nothing that was committed; `resume` goes
    on with it. A second one ends it at once, which loses no more.

    chess-snn campaign start --preset smoke --set campaign.iterations=5

    chess-snn campaign start --preset cpu --warm-start imports/lichess --set supervised.epochs=3

    Settings of the network come from the network of --from:

    chess-snn campaign start --preset cpu --from campaigns/cpu-001@champion --with-games

    chess-snn campaign start --preset cpu --from models:/chess-snn@champion
    """
    pace = pace_settings(workers, gpus, device, cluster)
    if with_games and not start_from:
        raise UsageError("--with-games takes the games of --from; name a network there")
    games = given_settings({"supervised.games": warm_start and str(warm_start)})
    _run(new_campaign(
        preset, [*(set or []), *games, *pace], file=config, start_from=start_from or None,
        with_games=with_games, directory=dir, fix_games=check_dataset,
    ))


@app.command()
def resume(
    directory: CampaignArgument,
    set: Annotated[  # the option's name
        list[str] | None,
        typer.Option(help="A setting of [execution] or [cluster]; others stay."),
    ] = None,
    workers: WorkersOption = None,
    gpus: GpusOption = "",
    device: DeviceOption = "",
    cluster: ClusterOption = "",
) -> None:
    """Go on with a campaign, under the configuration it was started with.

    What was committed is not done again. Where the work is done may change, and is kept: it changes
    the pace and not the result. What is left is shown by:

    chess-snn campaign status campaigns/gpu-001

    On other devices from now on:

    chess-snn campaign resume campaigns/gpu-001 --gpus 0,1 --workers 4
    """
    pace = pace_settings(workers, gpus, device, cluster)
    folder = CampaignFolder.open(directory)
    changed = change_pace(folder.config, [*(set or []), *pace])
    if not is_finished(folder):
        check_workers(changed)
    if changed != folder.config:
        with campaign_lock(folder):
            folder = folder.with_config(changed)
    _run(folder)


@app.command()
def fork(
    directory: CampaignArgument,
    at: Annotated[
        int, typer.Option(help="The first iteration that the new campaign plays itself.")
    ],
    dir: Annotated[  # the option's name
        Path | None, typer.Option(help="New folder; by default beside the campaign: NAME-fork-001.")
    ] = None,
    set: SetOption = None,
) -> None:
    """Start a new campaign that continues from an iteration of another, under changed settings.

    It has the same games, networks and results before that iteration, as hard links where the disk
    has them; they may go on side by side. The network's shape and the game stay. With no change it
    plays the same games as its parent.

    chess-snn campaign fork campaigns/cpu-001 --at 8 --set training.learning_rate=0.003
    """
    parent = CampaignFolder.open(directory)
    configuration = fork_config(parent, at, set or [])
    check_before_create(configuration)
    target = dir or claim_campaign_path(f"{parent.name}-fork", parent.path.parent)
    forked = fork_campaign(parent, target, at, configuration)
    assert forked.origin is not None
    print_message(f"{forked.path} is {forked.origin.describe()}")
    _run(forked)


@app.command()
def extend(
    directory: CampaignArgument,
    iterations: Annotated[
        int | None, typer.Option(help="Iterations in all, those that are done included.")
    ] = None,
    hours: Annotated[
        float | None, typer.Option(help="Hours of running in all, instead of iterations.")
    ] = None,
) -> None:
    """Let a campaign last longer, whether it has ended, is stopped, or is running.

    A campaign that runs on this machine finds the new length at its next iteration; run any other
    by `resume`. What changes over a campaign (learning rate, simulations, starts, ply limit) goes
    on from where it is and reaches its last value at the new end; a campaign that had ended goes on
    with its last values.

    chess-snn campaign extend campaigns/cpu-001 --iterations 40
    """
    folder = CampaignFolder.open(directory)
    is_running = extend_campaign(folder, iterations=iterations, hours=hours)
    print_message(f"{folder.path} lasts {campaign_length(folder)} now.")
    if (notice := removed_games_notice(folder)) is not None:
        print_message(notice)
    print_message(
        "It is running, and goes on after the iterations that it had; should it have ended "
        f"meanwhile: chess-snn campaign resume {directory}"
        if is_running else f"Go on with it: chess-snn campaign resume {directory}"
    )


app.command("status")(status_command)


def _run(folder: CampaignFolder) -> None:
    check_before_run(folder)
    if not is_finished(folder):
        print_message(
            f"campaign {folder.path}: {campaign_length(folder)}, from iteration "
            f"{len(read_receipts(folder))} on"
        )
    elif _lacks_nothing(folder):
        print_message(f"{folder.path} is finished: {campaign_length(folder)}")
        _show_end(folder)
        return
    stopped = (
        "stopped; everything committed is safe. Go on with it: "
        f"chess-snn campaign resume {folder.path}"
    )
    with stoppable(stopped), interruptible():
        flow = load_flows("campaign")
        with campaign_terminal() as listener:
            flow.launch_campaign(folder, listener)
    _show_end(folder)


def _lacks_nothing(folder: CampaignFolder) -> bool:
    """Whether a finished campaign has its networks, and every view of it is up to date."""
    store = existing_store()
    return (
        store is not None and is_up_to_date(folder, store) and not missing_generations(folder)
    )


def _show_end(folder: CampaignFolder) -> None:
    print_summary(CampaignWatch(folder.path).look())
    _next_steps(folder)


def _next_steps(folder: CampaignFolder) -> None:
    champion = champion_of(folder, read_receipts(folder))
    if champion is None:
        raise CampaignError(f"{folder.path} has no finished iteration")
    game = folder.config.campaign.game
    preset = "cpu" if game == RunSettings().game else f"cpu-{game}"
    if (report := folder.path / REPORT).exists():
        print_message(f"The report of the campaign: {report}")
    print_message(
        f"The champion is {folder.checkpoint(champion).name}. What to do next:\n"
        f"  chess-snn web --model {folder.path}      play it and see its spikes, in a browser\n"
        f"  chess-snn ui {folder.path}               its curves and runs, in a browser\n"
        f"  chess-snn campaign status {folder.path}  this table again\n"
        f"  chess-snn models list {folder.path}      every network and what is known of it\n"
        f"  chess-snn play --model {folder.path}     a game against its newest network\n"
        f"  chess-snn campaign start --preset {preset}    a longer campaign"
    )
