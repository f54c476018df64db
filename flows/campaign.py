"""The campaign flow: iterations until there are enough, from wherever the folder stands.

Prefect runs :func:`campaign` for a deployment; the command line calls :func:`launch_campaign`.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger, tags
from prefect.runtime import flow_run

from chess_snn.campaign import CampaignFolder, campaign_lock, read_receipts
from chess_snn.campaign.artifacts.artifact import Stored
from chess_snn.campaign.artifacts.table import CHECKPOINT, SHARD
from chess_snn.campaign.configuration.loading import Setting
from chess_snn.campaign.integrity.gc import sweep_leftovers
from chess_snn.campaign.integrity.preflight import check_before_run
from chess_snn.campaign.integrity.rebuild import Rebuilder, make_here, missing_generations
from chess_snn.campaign.machine.cost import warm_up
from chess_snn.campaign.stages import first_entropy_ratio, prepare_first_generation
from chess_snn.campaign.stages.dataset import fixed_dataset, schedule_of
from chess_snn.campaign.stages.first_generation import is_warm
from chess_snn.campaign.stages.window import removed_games_notice
from chess_snn.campaign.store.naming import campaigns_home
from chess_snn.campaign.store.plans import CampaignClock, campaign_length
from chess_snn.campaign.store.receipts import recorded_seconds
from chess_snn.campaign.strength.ladder_tests import ladder_notice
from chess_snn.campaign.strength.match_schedule import final_matches
from chess_snn.campaign.strength.matches import is_finished
from chess_snn.campaign.viewing.events import (
    FINAL_MATCHES,
    SUPERVISED_TRAINING,
    CampaignFinished,
    Listener,
    Message,
)
from chess_snn.campaign.viewing.up_to_date import note_up_to_date
from chess_snn.data import is_committed
from chess_snn.flows import parameters
from chess_snn.flows.cluster import watched_workers
from chess_snn.flows.context import (
    CampaignRun,
    campaign_tag,
    close_stale_flow_runs,
    one_run_a_folder,
    own_campaign_id,
    show_in_mlflow,
    show_report,
    tag_flow_run,
    untagged_tasks,
)
from chess_snn.flows.finished import record_finished
from chess_snn.flows.iteration import run_iterations
from chess_snn.flows.links import flow_run_link
from chess_snn.flows.listeners import (
    alarm_events,
    iteration_table,
    live_file,
    log_file,
    log_lines,
    progress_artifact,
)
from chess_snn.flows.prefect_errors import log_sentences
from chess_snn.flows.servers import call_with_server
from chess_snn.interrupts import listen_again
from chess_snn.joules import counters_if_installed
from chess_snn.tasks import compute, record, remote
from chess_snn.tasks.compute import run_on_device
from chess_snn.tasks.progress import ProgressBoard
from chess_snn.tasks.stages import evaluate_final, train_first, train_supervised
from chess_snn.tasks.tracking import tracking_uri
from chess_snn.types import LogFn


def _run_name() -> str:
    """The name of the campaign, where the parameters or an earlier try tell it."""
    if own_campaign_id() is not None:
        return str(flow_run.name)
    given = flow_run.parameters
    return Path(given.get("directory") or given.get("name") or "new campaign").name


@flow(name="campaign", flow_run_name=_run_name)
def campaign(
    name: parameters.CampaignName = "",
    directory: str = "",
    preset: parameters.Preset = "smoke",
    iterations: parameters.Iterations = 0,
    hours: parameters.Hours = 0.0,
    games_per_iteration: parameters.Games = 0,
    network: parameters.NetworkSize = parameters.AS_PRESET,
    simulations: parameters.Simulations = 0,
    gpus: parameters.Gpus = [],  # noqa: B006 - shown in the form, and never changed
    workers: parameters.Workers = 0,
    seed: parameters.Seed = 0,
    start_from: str = "",
    with_games: bool = False,
    settings: list[str] = [],  # noqa: B006
) -> str:
    """Learn a game by self-play: start a campaign, or resume one.

    Args:
        name: folder of the campaign in $CHESS_SNN_HOME/campaigns (by default
            ~/chess-snn/campaigns). If it holds a campaign, that is resumed. Without a name the
            campaign is called after its preset: smoke-001, smoke-002 and so on; a retry resumes it.
        directory: the same as an absolute path, for a campaign that is elsewhere.
        preset: configuration of a new campaign. The fields below change it; 0 does not.
        iterations: length of the campaign, in passes of self-play, training and evaluation.
        hours: length of the campaign in hours of running, instead of iterations.
        games_per_iteration: games of self-play in each iteration.
        network: size of the network.
        simulations: simulations of the search for each move of self-play.
        gpus: numbers of the GPUs to use, counted from 0; an empty list uses all.
        workers: processes that play. 0 chooses by devices, cores and memory.
        seed: everything random derives from it.
        start_from: network that a new campaign starts from: a campaign's folder,
            FOLDER@12, FOLDER@champion, an exported model's folder, or models:/chess-snn@champion.
        with_games: with start_from, also learn from the games that this network was trained on.
        settings: any other settings, such as "training.batch_size=512"; docs/configuration.md
            lists all.

    Returns:
        The campaign folder.
    """
    log_sentences()
    form = parameters.form_settings(
        iterations, hours, games_per_iteration, network, simulations, gpus, workers, seed
    )
    changes: list[Setting] = [*form, *settings]
    path = parameters.directory_of(name, directory)
    if (own_id := own_campaign_id()) is not None:
        path = path or campaigns_home() / flow_run.name
    found = parameters.campaign_to_resume(path, own_id)
    folder = found or parameters.new_campaign(path, preset, changes, start_from, with_games)
    if found is None:  # no other run has it
        tag_flow_run(folder.campaign_id, folder.name)
    with one_run_a_folder(folder.campaign_id, get_run_logger()), campaign_lock(folder):
        if found is not None:  # and may have been changed since
            folder = parameters.resumed_with(CampaignFolder.open(folder.path), changes)
        check_before_run(folder)
        _compile_kernels(folder, get_run_logger().info)
        if run_campaign(folder):
            note_up_to_date(folder, tracking_uri())
    return str(folder.path)


def launch_campaign(folder: CampaignFolder, listener: Listener) -> None:
    """Run what is left of a campaign, with a Prefect server of its own unless one is given.

    A note says afterwards whether all views have it (:mod:`chess_snn.campaign.viewing.up_to_date`).
    Nothing is left running afterwards. The caller has checked the folder
    (:func:`chess_snn.campaign.integrity.preflight.check_before_run`); ``listener`` receives events.

    Raises:
        CampaignLockedError: another process is at it.
    """
    @flow(name=campaign.name, flow_run_name=lambda: folder.name)
    def locked_campaign(directory: str) -> bool:
        """The campaign in ``directory``, whose lock this process has."""
        log_sentences()
        return run_campaign(folder, [listener])

    log = log_file(folder)

    def tell(text: str) -> None:
        for listen in (listener, log):
            listen(Message(text))

    with campaign_lock(folder), tags(campaign_tag(folder.campaign_id)):
        # The folder is the truth: what a lost server knew of the campaign is not needed.
        work = partial(locked_campaign, str(folder.path))
        meanwhile = partial(_compile_kernels, folder, tell)
        if call_with_server(work, folder.services, tell, meanwhile):  # it knows the end by now
            note_up_to_date(folder, tracking_uri())


def run_campaign(folder: CampaignFolder, listeners: Sequence[Listener] = ()) -> bool:
    """Run what is left of the campaign in ``folder``, which the caller has checked and locked.

    ``listeners`` receive its events, beside the logs and Prefect's pages. Returns whether the
    report and MLflow have all of it.
    """
    listen_again()  # Prefect has taken SIGTERM
    compute.start()
    if is_finished(folder) and not missing_generations(folder):
        return record_finished(folder, listeners)
    clock = CampaignClock(recorded_seconds(folder))
    board = ProgressBoard([
        *listeners, log_lines(get_run_logger()), log_file(folder),
        progress_artifact(), live_file(folder), iteration_table(folder), alarm_events(folder),
    ])
    if closed := close_stale_flow_runs(folder.campaign_id):
        board.message(f"closed {closed} flow runs that a killed process had left open")
    sweep_leftovers(folder)
    for notice in (ladder_notice(folder.config), removed_games_notice(folder)):
        if notice is not None:
            board.message(notice)
    with ExitStack() as stack:
        stack.enter_context(record.tracked_run(folder, board.message, flow_run_link(folder)))
        pool = stack.enter_context(watched_workers(folder, board))
        stack.enter_context(tags(campaign_tag(folder.campaign_id)))
        # The only one, so that no two threads rebuild the same artifact.
        rebuilder = rebuilder_of(folder, board)
        energy = counters_if_installed()
        if energy is not None and (note := energy.lap().note):
            board.message(f"joules are not measured: {note}")
        run = CampaignRun(folder, pool, board, clock, energy)
        stack.enter_context(compute.rebuilds_by(rebuilder.run))
        if not is_warm(folder):
            entropy_ratio = rebuilder.run(partial(prepare_first_generation, folder))
            board.message(
                f"the policy of generation 0 has {entropy_ratio:.1%} of a uniform policy's entropy"
            )
        before: Sequence[Any] = ()
        if not is_committed(folder.checkpoint(0)):
            before = _train_first_generation(run)
            # It does not count in campaign.hours.
            run = replace(run, clock=CampaignClock(recorded_seconds(folder)))
        rebuilder.rebuild_missing()
        played = _play_final_matches(run, after=run_iterations(run, before))
        board.tell(CampaignFinished(campaign_length(folder)))
        with compute.stopped_by_errors(), untagged_tasks():
            return show_report(run, len(read_receipts(folder)) - 1, after=played)


def _compile_kernels(folder: CampaignFolder, tell: LogFn) -> None:
    if not is_finished(folder) or missing_generations(folder):
        tell("compiling kernels: about 30 s the first time on a machine")
        warm_up(folder.config)


def rebuilder_of(folder: CampaignFolder, board: ProgressBoard) -> Rebuilder:
    """Rebuilds the campaign's corrupt artifacts on its own workers, and tells the board of it.

    It tries again as often as the tasks of an iteration are tried.
    """
    directory = str(folder.path)

    def make(_: CampaignFolder, stored: Stored) -> Any:
        def work() -> Any:
            match stored.artifact, stored.key:
                case artifact, (iteration, shard) if artifact is SHARD:
                    return run_on_device(remote.play_shard, directory, iteration, shard)
                case artifact, (int(generation),) if artifact is CHECKPOINT and generation > 0:
                    return run_on_device(remote.train_generation, directory, generation - 1)
                case artifact, _ if artifact is CHECKPOINT and is_warm(folder):
                    return train_first(folder)
            return make_here(folder, stored)

        return compute.tried_again(work, board.message)

    return Rebuilder(folder, board.message, make)


def _train_first_generation(run: CampaignRun) -> Sequence[Any]:
    """Learn from the dataset; returns what Prefect's graph shows the first iteration behind."""
    folder, board = run.folder, run.board
    given = fixed_dataset(folder.config)
    board.message(
        f"learning from {given.num_games:,} games of {given.name} first, {given.num_positions:,} "
        "positions"
    )
    num_steps = schedule_of(given, folder.config).num_steps
    with (
        compute.stopped_by_errors(), untagged_tasks(),
        board.stage(0, SUPERVISED_TRAINING, "steps", num_steps),
    ):
        trained = train_supervised.submit(folder)
        trained.result()
    show_in_mlflow(run, 0, after=trained)
    board.message(
        f"generation 0 has learnt from them; its policy has {first_entropy_ratio(folder):.1%} of a "
        "uniform policy's entropy"
    )
    return [trained]


def _play_final_matches(run: CampaignRun, after: Sequence[Any]) -> Sequence[Any]:
    """Play those that are left; returns what Prefect's graph shows the report behind."""
    folder, matches = run.folder, final_matches(run.folder)
    if not matches:
        return after
    last = len(read_receipts(folder)) - 1
    num_games = sum(match.num_games for match in matches)
    with (
        compute.stopped_by_errors(), untagged_tasks(),
        run.board.stage(last, FINAL_MATCHES, "games", num_games),
    ):
        played = evaluate_final.submit(folder, last, wait_for=after)
        played.result()
    return [played]
