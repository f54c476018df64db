"""The campaign flow: iterations until there are enough, from wherever the folder stands."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

from prefect import flow, get_client, get_run_logger, tags
from prefect.runtime import flow_run

from chess_snn.campaign import CampaignFolder, campaign_lock, load_config, read_receipts
from chess_snn.campaign.backup import check_store
from chess_snn.campaign.configuration.loading import (
    Setting,
    changed_config,
    config_values,
    flat_values,
)
from chess_snn.campaign.configuration.pace import PACE_GROUPS
from chess_snn.campaign.integrity.gc import sweep_leftovers
from chess_snn.campaign.integrity.preflight import check_before_run
from chess_snn.campaign.integrity.rebuild import missing_generations
from chess_snn.campaign.machine.warm_up import warm_up
from chess_snn.campaign.models.starting import create_campaign, find_start
from chess_snn.campaign.stages import first_entropy_ratio, prepare_first_generation
from chess_snn.campaign.stages.dataset import fix_dataset, fixed_dataset, schedule_of
from chess_snn.campaign.stages.warm_start import is_warm
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.campaign.store.naming import campaigns_home, claim_campaign_path
from chess_snn.campaign.store.plans import CampaignClock
from chess_snn.campaign.store.receipts import recorded_seconds
from chess_snn.campaign.strength.ladder_tests import ladder_notice
from chess_snn.campaign.strength.matches import final_matches, is_finished
from chess_snn.campaign.viewing.events import FINAL_MATCHES, SUPERVISED_TRAINING, Listener
from chess_snn.data import is_committed
from chess_snn.errors import ConfigError
from chess_snn.interrupts import listen_again
from flows.backup import open_backup, send_to_store
from flows.campaign_runs import (
    campaign_tag,
    close_stale_flow_runs,
    one_run_a_folder,
    untagged_tasks,
)
from flows.cluster import campaign_workers, check_workers
from flows.context import CampaignRun
from flows.iteration import run_iterations, show_in_mlflow, task_options
from flows.listeners import live_file, log_file, log_lines
from flows.parameters import (
    AS_PRESET,
    CampaignName,
    Games,
    Gpus,
    Hours,
    Iterations,
    NetworkSize,
    Preset,
    Seed,
    Simulations,
    Workers,
    form_settings,
)
from flows.prefect_pages import alarm_events, flow_run_link, iteration_table, progress_artifact
from flows.rebuilding import rebuilder_of
from tasks import compute
from tasks.placement import give_access
from tasks.progress import ProgressBoard
from tasks.record import record_at_rest, tracked_run
from tasks.remote import PROGRESS_TOPIC
from tasks.stages import evaluate_final, train_supervised
from tasks.tracking import TrackingError, tracking_uri
from tasks.tracking.fetching import fetch_model


def _run_name() -> str:
    """The name of the campaign, where the parameters tell it."""
    given = flow_run.parameters
    return Path(given.get("directory") or given.get("name") or "new campaign").name


@flow(name="campaign", flow_run_name=_run_name)
def campaign(
    name: CampaignName = "",
    directory: str = "",
    preset: Preset = "smoke",
    iterations: Iterations = 0,
    hours: Hours = 0.0,
    games_per_iteration: Games = 0,
    network: NetworkSize = AS_PRESET,
    simulations: Simulations = 0,
    gpus: Gpus = [],  # noqa: B006 - shown in the form, and never changed
    workers: Workers = 0,
    seed: Seed = 0,
    start_from: str = "",
    with_games: bool = False,
    settings: list[str] = [],  # noqa: B006
) -> str:
    """Learn a game by self-play: start a campaign, or resume one.

    Args:
        name: folder of the campaign in $CHESS_SNN_HOME/campaigns (by default
            ~/chess-snn/campaigns). If it holds a campaign, that is resumed. Without a name the
            campaign is called after its preset: smoke-001, smoke-002 and so on.
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
    form = form_settings(
        iterations, hours, games_per_iteration, network, simulations, gpus, workers, seed
    )
    changes: list[Setting] = [*form, *settings]
    path = _directory_of(name, directory)
    found = None if path is None or not (path / CONFIG_FILE).exists() else CampaignFolder.open(path)
    folder = found or _create(path, preset, changes, start_from, with_games)
    _name_this_run(folder.name)
    with one_run_a_folder(folder.campaign_id, get_run_logger()), campaign_lock(folder):
        if found is not None:  # and may have been changed since
            folder = _resumed_with(CampaignFolder.open(folder.path), changes)
        check_before_run(folder)
        run_campaign(folder)
    return str(folder.path)


def run_campaign(folder: CampaignFolder, listeners: Sequence[Listener] = ()) -> None:
    """Run what is left of the campaign in ``folder``, which the caller has checked and locked.

    ``listeners`` receive its events, beside the logs and Prefect's pages.
    """
    listen_again()  # Prefect has taken SIGTERM
    compute.start()
    if is_finished(folder) and not missing_generations(folder):
        _record_finished(folder, listeners)
        return
    clock = CampaignClock(recorded_seconds(folder))
    uri = tracking_uri()
    board = ProgressBoard([
        *listeners, log_lines(get_run_logger()), log_file(folder),
        progress_artifact(), live_file(folder), iteration_table(folder, uri), alarm_events(folder),
    ])
    if closed := close_stale_flow_runs(folder.campaign_id):
        board.message(f"closed {closed} flow runs that a killed process had left open")
    sweep_leftovers(folder)
    backup = open_backup(folder, board.message)
    board.message("compiling kernels: about 30 s the first time on a machine")
    warm_up(folder.config)
    if (notice := ladder_notice(folder.config)) is not None:
        board.message(notice)
    with ExitStack() as stack:
        stack.enter_context(tracked_run(folder, uri, board.message, flow_run_link(folder)))
        pool = stack.enter_context(campaign_workers(folder, board.message))
        board.watch_workers(lambda: pool.states)
        pool.client.subscribe_topic(PROGRESS_TOPIC, board.handle_event)
        give_access(pool.client, folder, pool.addresses)
        stack.enter_context(board.running())
        stack.enter_context(tags(campaign_tag(folder.campaign_id)))
        rebuilder = rebuilder_of(folder, pool, board)
        run = CampaignRun(folder, pool, board, uri, clock, rebuilder, backup)
        stack.enter_context(compute.rebuilds_by(rebuilder.run))
        if not is_warm(folder):
            entropy_ratio = rebuilder.run(partial(prepare_first_generation, folder))
            board.message(
                f"the policy of generation 0 has {entropy_ratio:.1%} of a uniform policy's entropy"
            )
        if not is_committed(folder.checkpoint(0)):
            _train_first_generation(run)
            # It does not count in campaign.hours.
            run = replace(run, clock=CampaignClock(recorded_seconds(folder)))
        rebuilder.rebuild_missing()
        run_iterations(run)
        _play_final_matches(run)


def _train_first_generation(run: CampaignRun) -> None:
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
        trained = train_supervised.with_options(**task_options(folder.config)).submit(
            str(folder.path), run.pool.num_cores
        )
        trained.result()
    show_in_mlflow(run, 0, after=trained)
    board.message(
        f"generation 0 has learnt from them; its policy has {first_entropy_ratio(folder):.1%} of a "
        "uniform policy's entropy"
    )


def _play_final_matches(run: CampaignRun) -> None:
    folder, matches = run.folder, final_matches(run.folder)
    if not matches:
        return
    directory, last = str(folder.path), len(read_receipts(folder)) - 1
    num_games = sum(match.num_games for match in matches)
    with (
        compute.stopped_by_errors(), untagged_tasks(),
        run.board.stage(last, FINAL_MATCHES, "games", num_games),
    ):
        played = evaluate_final.with_options(**task_options(folder.config)).submit(
            directory, last, run.pool.threads_each
        )
        played.result()
        show_in_mlflow(run, last, after=played)
        send_to_store(run, last, after=played)


def _directory_of(name: str, directory: str) -> Path | None:
    if name and directory:
        raise ConfigError(
            f"name = {name!r} and directory = {directory!r} are both set; leave one of them out"
        )
    if name:
        return campaigns_home() / name
    if directory and not Path(directory).is_absolute():
        # A deployment's run starts in a temporary folder, which ends with it.
        raise ConfigError(f"directory must be an absolute path, got {directory!r}")
    return Path(directory) if directory else None


def _create(
    directory: Path | None, preset: str, settings: list[Setting], start_from: str,
    with_games: bool,
) -> CampaignFolder:
    if with_games and not start_from:
        raise ConfigError("with_games takes the games of start_from; name a network there")
    start = find_start(start_from, fetch_model) if start_from else None
    config = (start.load_config if start else load_config)(preset, settings=settings)
    config.find_engines()
    check_store(config.storage)
    check_workers(config)
    config = fix_dataset(config)
    path = directory or claim_campaign_path(preset, campaigns_home())
    return create_campaign(path, config, start, with_games=with_games)


def _name_this_run(name: str) -> None:
    """Call the flow run after its campaign, whose folder may have been named only now."""
    with get_client(sync_client=True) as client:
        client.update_flow_run(UUID(flow_run.id), name=name)


def _resumed_with(folder: CampaignFolder, settings: list[Setting]) -> CampaignFolder:
    """The campaign under ``settings``, of which only those of its pace may be new to it.

    Raises:
        ConfigError: one of the others differs.
    """
    wanted = changed_config(folder.config, settings)
    before, after = (flat_values(config_values(config)) for config in (folder.config, wanted))
    changed = [name for name in after if after[name] != before[name]]
    frozen = [name for name in changed if name.partition(".")[0] not in PACE_GROUPS]
    if frozen:
        told = ", ".join(f"{name} = {before[name]} (asked for: {after[name]})" for name in frozen)
        raise ConfigError(
            f"{folder.path} holds a campaign with {told}; leave that out to resume it, choose "
            "another name for a new campaign, or make it longer: chess-snn campaign extend "
            f"{folder.path}"
        )
    return folder.with_config(wanted) if changed else folder


def _record_finished(folder: CampaignFolder, listeners: Sequence[Listener]) -> None:
    """Record in Prefect, MLflow and the object store what they lack of a finished campaign."""
    board = ProgressBoard([*listeners, log_lines(get_run_logger())])
    board.message(f"{folder.path}: all {len(read_receipts(folder))} iterations are finished")
    close_stale_flow_runs(folder.campaign_id)
    try:
        if missing := record_at_rest(folder, tracking_uri()):
            board.message(f"recorded {missing} of them in MLflow, which lacked them")
    except TrackingError as error:
        board.message(f"not recorded in MLflow yet: {error}")
    backup = open_backup(folder, board.message)
    if backup is not None:
        sent = backup.send_missing()
        board.message(
            f"sent {sent.num_folders} folders and {sent.num_records} records to "
            f"{folder.config.storage.object_store}"
        )
