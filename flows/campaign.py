"""The campaign flow: iterations until there are enough, from wherever the folder stands."""

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from prefect import flow, get_run_logger, tags
from prefect.runtime import flow_run

from chess_snn.campaign import CampaignFolder, campaign_lock, load_config, read_receipts
from chess_snn.campaign.copies.mirror import check_store
from chess_snn.campaign.machine.warm_up import warm_up
from chess_snn.campaign.stages import first_entropy_ratio, prepare_first_generation
from chess_snn.campaign.stages.given_games import course_through, fix_given_games, fixed_games
from chess_snn.campaign.stages.warm_start import SUPERVISED, is_warm
from chess_snn.campaign.store.folder import CONFIG_FILE
from chess_snn.campaign.store.naming import campaigns_home, claim_campaign_path
from chess_snn.campaign.store.plans import CampaignClock
from chess_snn.campaign.store.preflight import check_before_run
from chess_snn.campaign.store.receipts import recorded_seconds
from chess_snn.campaign.store.sweep import sweep_leftovers
from chess_snn.campaign.strength.climbing import climb_notice
from chess_snn.campaign.strength.matches import FINAL, final_matches
from chess_snn.data import is_committed
from chess_snn.errors import ConfigError
from chess_snn.interrupts import listen_again
from flows.cluster import campaign_crew, check_crew
from flows.context import CampaignRun
from flows.iteration import show_in_mlflow, task_options
from flows.listeners import ArtifactListener, LiveListener, LogListener, extra_listeners
from flows.mending import mender_of
from flows.mirroring import open_mirror, send_to_store
from flows.one_a_folder import one_run_a_folder
from flows.parameters import Preset
from flows.pipeline import run_iterations
from flows.stale_runs import campaign_tag, close_stale_flow_runs
from flows.tagging import untagged_tasks
from tasks import compute
from tasks.evaluate import evaluate_final
from tasks.folder_access import folder_access
from tasks.progress import ProgressBoard
from tasks.record import tracked_run
from tasks.remote import PROGRESS_TOPIC
from tasks.tracking import tracking_uri
from tasks.train import train_supervised


def _run_name() -> str:
    """Of a flow run, before there is a folder that could be asked for its name."""
    return f"campaign-{flow_run.parameters.get('directory') or 'new'}"


@flow(name="campaign", flow_run_name=_run_name)
def campaign(
    directory: str | None = None,
    preset: Preset = "smoke",
    settings: list[str] | None = None,
) -> str:
    """Learn a game by self-play: start a campaign, or go on with one.

    Args:
        directory: the campaign folder, absolute. One that holds a campaign is gone on with, under
            its own frozen configuration; left out, a new folder is made in
            $CHESS_SNN_HOME/campaigns, by default ~/chess-snn/campaigns.
        preset: configuration of a new campaign.
        settings: changes to it, such as "campaign.iterations=10".

    Returns:
        The campaign folder.
    """
    folder = _open_or_create(directory, preset, settings or [])
    with one_run_a_folder(folder.campaign_id, get_run_logger()), campaign_lock(folder):
        run_campaign(folder)
    return str(folder.path)


def run_campaign(folder: CampaignFolder) -> None:
    """Run what is left of the campaign in ``folder``, whose lock the caller holds."""
    listen_again()  # Prefect has taken SIGTERM
    check_before_run(folder)
    clock = CampaignClock(recorded_seconds(folder))
    board = ProgressBoard(
        [
            *extra_listeners(), LogListener(get_run_logger()), ArtifactListener(),
            LiveListener(folder),
        ]
    )
    if closed := close_stale_flow_runs(folder.campaign_id):
        board.message(f"closed {closed} flow runs that a killed process had left open")
    sweep_leftovers(folder)
    compute.start()
    mirror = open_mirror(folder, board.message)
    board.message("compiling kernels: about 30 s the first time on a machine")
    warm_up(folder.config)
    if (notice := climb_notice(folder.config)) is not None:
        board.message(notice)
    with ExitStack() as stack:
        uri = tracking_uri()
        stack.enter_context(tracked_run(folder, uri, board.message))
        crew = stack.enter_context(campaign_crew(folder, board.message))
        board.watch_workers(lambda: crew.watch.states)
        crew.client.subscribe_topic(PROGRESS_TOPIC, board.handle_event)
        stack.enter_context(folder_access(crew.client, folder, crew.addresses))
        stack.enter_context(board.running())
        stack.enter_context(tags(campaign_tag(folder.campaign_id)))
        mender = mender_of(folder, crew, board)
        run = CampaignRun(folder, crew, board, uri, clock, mender, mirror)
        stack.enter_context(compute.mended_by(mender.mend))
        if not is_warm(folder):
            entropy_ratio = mender.mended(partial(prepare_first_generation, folder))
            board.message(
                f"the untrained policy has {entropy_ratio:.1%} of a uniform policy's entropy"
            )
        if not is_committed(folder.checkpoint(0)):
            _train_first_generation(run)
            # It is no part of campaign.hours.
            run = replace(run, clock=CampaignClock(recorded_seconds(folder)))
        mender.make_missing()
        run_iterations(run)
        _play_final_matches(run)


def _train_first_generation(run: CampaignRun) -> None:
    folder, board = run.folder, run.board
    given = fixed_games(folder.config)
    board.message(
        f"learning from {given.num_games:,} games of {given.name} first, {given.num_positions:,} "
        "positions"
    )
    num_steps = course_through(given, folder.config).num_steps
    with (
        compute.stopped_by_errors(), untagged_tasks(),
        board.stage(0, SUPERVISED, "steps", num_steps),
    ):
        trained = train_supervised.with_options(**task_options(folder.config)).submit(
            str(folder.path), run.crew.num_cores
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
        run.board.stage(last, FINAL, "games", num_games),
    ):
        played = evaluate_final.with_options(**task_options(folder.config)).submit(
            directory, last, run.crew.threads_each
        )
        played.result()
        show_in_mlflow(run, last, after=played)
        send_to_store(run, last, after=played)


def _open_or_create(directory: str | None, preset: str, settings: list[str]) -> CampaignFolder:
    if directory is not None and not Path(directory).is_absolute():
        # A deployment's run starts in a temporary folder, which ends with it.
        raise ConfigError(f"directory must be an absolute path, got {directory!r}")
    if directory is not None and (Path(directory) / CONFIG_FILE).exists():
        return CampaignFolder.open(Path(directory))
    config = load_config(preset, settings=settings)
    config.find_engines()
    check_store(config.storage)
    check_crew(config)
    config = fix_given_games(config)
    path = claim_campaign_path(preset, campaigns_home()) if directory is None else Path(directory)
    return CampaignFolder.create(path, config)
