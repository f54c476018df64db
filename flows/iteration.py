"""The iterations of a campaign: self-play shards side by side, training, evaluation, promotion.

The order of the stages, and what may run beside what. Everything here can be repeated, for each
stage looks for its outcome first. File 16 of 16 of the spine in docs/architecture.md.

Each task (:mod:`chess_snn.tasks.stages`) calls its stage on a Dask worker: ``play_shard``,
``train_generation``. Evaluation plays matches against fixed opponents. In a gating match the new
generation, the candidate, plays the champion. Promotion decides who is champion now, and commits
the iteration's receipt: with it the iteration is finished.

Each iteration plays as soon as the network that it plays with is trained, so a generation is
evaluated while the next iteration plays. Its flow run begins before, while that network is trained:
where Prefect's server is busy, the start of one takes two seconds, in which workers would wait. No
more than two iterations are alive, each in a thread of its own. They get their receipts in order,
for promotion waits for the iteration before: the candidate plays the champion that one left::

    iteration 4   self-play  train  evaluate ──────── promote
                          └▶ played   └▶ trained          └▶ finished
    iteration 5              wait ──  self-play ────────────── train  evaluate ── promote
"""

import contextvars
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from math import inf
from typing import Any

import httpx
from prefect import flow, unmapped
from prefect.task_runners import ThreadPoolTaskRunner

from chess_snn.campaign import CampaignFolder, Receipt
from chess_snn.campaign.integrity.gc import sweep_leftovers
from chess_snn.campaign.store.plans import (
    ProgressPlan,
    begin_iteration,
    campaign_length,
    next_plan,
    num_shards,
)
from chess_snn.campaign.store.receipt_parts import StageSeconds
from chess_snn.campaign.store.receipts import num_finished_iterations, read_receipt, read_receipts
from chess_snn.campaign.strength.gating_match import gating_match_of
from chess_snn.campaign.strength.match_schedule import converts, generation_matches, is_evaluated
from chess_snn.campaign.viewing import events
from chess_snn.campaign.viewing.alarms import Alarm, find_alarms
from chess_snn.campaign.viewing.results import result_rows
from chess_snn.flows.context import (
    CampaignRun,
    Handoff,
    show_in_mlflow,
    stand_for_flow_run,
    untagged_tasks,
)
from chess_snn.flows.prefect_errors import await_server
from chess_snn.tasks import compute, stages
from chess_snn.tasks.progress import Stage
from chess_snn.wording import counted

_MOST_ALIVE = 2
_WAITING_TASKS_AHEAD = 64
"""Threads that wait for shards, beyond one a worker: a worker that is done finds the next one
there."""


def run_iterations(run: CampaignRun, after: Sequence[Any] = ()) -> Sequence[Any]:
    """Run what is left of the campaign; an error in one iteration stops both.

    Prefect's graph shows the first iteration behind ``after``; what is returned is the same for
    the tasks that follow.
    """
    folder, number = run.folder, num_finished_iterations(run.folder)
    handoff: Handoff | None = None
    finished: Future[Receipt] | None = None
    with (
        ThreadPoolExecutor(_MOST_ALIVE, thread_name_prefix="iteration") as threads,
        compute.stopped_by_errors(),
    ):
        while plan := _begin(run, number, handoff):
            _tell_of_idle_workers(run, number)
            network: Future[None] | None = None
            if handoff is not None:
                handoff.successor_began = time.monotonic()
                network = handoff.trained
            before, handoff = finished, Handoff(plan, network, finished, after)
            after = [handoff.trained]
            # Runs in a copy of this context: Prefect keeps the campaign's flow run there.
            in_context = contextvars.copy_context().run
            finished = threads.submit(in_context, _run_iteration, run, handoff)
            awaited: list[Future[Any]] = [] if before is None else [before]
            awaited.append(handoff.played if folder.config.execution.overlap else finished)
            _wait_for_all(awaited)
            number += 1
        if finished is not None:
            _wait_for_all([finished])
    return after


def _begin(run: CampaignRun, number: int, handoff: Handoff | None) -> ProgressPlan | None:
    """The plan of iteration ``number``, which follows that of ``handoff``; None at the end.

    It waits for the training before it where the campaign may end meanwhile. That takes less than
    an iteration; how long one takes is not known before the first receipt.
    """
    folder = run.folder
    if handoff is not None and not handoff.trained.done():
        lasts_s = inf
        if handoff.plan.iteration > 0:
            lasts_s = read_receipt(folder, handoff.plan.iteration - 1).seconds.iteration
        if next_plan(folder, number, run.clock.elapsed_s + lasts_s) is None:
            _wait_for_all([handoff.trained])
    return begin_iteration(folder, number, run.clock.elapsed_s, run.pool.num_workers)


def _tell_of_idle_workers(run: CampaignRun, iteration: int) -> None:
    workers, shards = run.pool.num_workers, num_shards(run.folder, iteration)
    if shards < workers:
        run.board.message(
            f"{workers - shards} of {workers} workers have nothing to play in iteration "
            f"{iteration}: it has {counted(shards, 'shard')} of "
            f"{run.folder.config.self_play.games_per_iteration} games; use fewer workers "
            "(--workers), or more games (self_play.games_per_iteration)"
        )


def _run_iteration(run: CampaignRun, handoff: Handoff) -> Receipt:
    """Finish the iteration of ``handoff`` if it has no receipt; after a gap it may have one."""
    number = handoff.plan.iteration
    try:
        if run.folder.receipt(number).exists():
            for future in (handoff.played, handoff.trained):
                future.set_result(None)
            return read_receipt(run.folder, number)
        receipt = _call_flow(run, handoff)
        sweep_leftovers(run.folder)  # of workers that were killed meanwhile
        for alarm in _new_alarms(run):
            run.board.tell(events.AlarmRaised(alarm))
    except BaseException as error:
        for future in (handoff.played, handoff.trained):
            if not future.done():
                future.set_exception(error)
        raise
    return receipt


def _call_flow(run: CampaignRun, handoff: Handoff) -> Receipt:
    """The iteration's flow; called again where the server went away before it began."""
    has_begun, of_campaign = False, contextvars.copy_context()

    @stages.cancelled_by_stop
    def run_iteration(directory: str, iteration: int) -> Receipt:
        """Play, train, evaluate and promote; only what is not committed yet is done.

        Args:
            directory: the campaign folder, for Prefect's page.
            iteration: from 0; its plan is committed, and the one before has played.
        """
        nonlocal has_begun
        has_begun = True
        stand_for_flow_run(handoff.trained, of_campaign)
        # Prefect waits for running tasks before an error leaves the flow: let them give up.
        with compute.stopped_by_errors(), untagged_tasks():
            return _stages(run, handoff, iteration)

    number = handoff.plan.iteration
    # Prefect recognises a call in a retried flow run by the function's name and a count. A name for
    # each iteration keeps a call from the place of another one in the graph.
    run_iteration.__qualname__ = f"iteration_{number}"
    call = flow(
        run_iteration, name="iteration", flow_run_name="iteration-{iteration}",
        task_runner=waiting_tasks(run.pool.num_workers),
    )
    while True:
        await_server(run.board.message)
        try:
            receipt: Receipt = call(
                str(run.folder.path), number, wait_for=handoff.shown_after
            )
        except httpx.ConnectError:
            if has_begun:
                raise
        else:
            return receipt


def _wait_for_all(futures: Sequence[Future[Any]]) -> None:
    """Return when all are done; at the first error, stop the others and raise it."""
    wait(futures, return_when=FIRST_EXCEPTION)
    if not any(future.done() and future.exception() for future in futures):
        return
    compute.stop()
    wait(futures)
    errors = [error for future in futures if (error := future.exception()) is not None]
    # A stopped iteration is not the cause.
    raise next((e for e in errors if not isinstance(e, compute.StoppedError)), errors[0])


def _new_alarms(run: CampaignRun) -> list[Alarm]:
    """Those that the newest receipt has raised."""
    history = result_rows(run.folder, read_receipts(run.folder))
    known = {(alarm.name, alarm.since_iteration) for alarm in find_alarms(history[:-1])}
    return [a for a in find_alarms(history) if (a.name, a.since_iteration) not in known]


def waiting_tasks(num_workers: int) -> ThreadPoolTaskRunner[Any]:
    """Threads for the tasks of an iteration, so many that every worker has something to do."""
    return ThreadPoolTaskRunner(max_workers=num_workers + _WAITING_TASKS_AHEAD)


def _stages(run: CampaignRun, handoff: Handoff, number: int) -> Receipt:
    folder, pool, board = run.folder, run.pool, run.board
    handoff.wait_for_network()
    config, began = folder.config, time.monotonic()
    use_before = pool.use

    num_games = config.self_play.games_per_iteration
    with board.stage(number, events.SELF_PLAY, "games", num_games) as playing:
        shards = stages.self_play.map(
            unmapped(folder), unmapped(number), range(num_shards(folder, number))
        )
        played = shards.result()
    handoff.played.set_result(None)

    if pool.shares_cores:
        # Two threads of training lose most of their pace to a third that wants their cores.
        handoff.wait_for_predecessor()
    new_positions = sum(done.result.statistics.positions for done in played)
    num_steps = config.training.num_steps(new_positions)
    with board.stage(number, events.TRAINING, "steps", num_steps) as training:
        trained = stages.train.submit(folder, number, wait_for=shards)
        training_facts = trained.result()
    handoff.trained.set_result(None)

    last_task, evaluation = trained, None
    evaluating: Stage | None = None
    if is_evaluated(folder, number + 1):
        num_games = _num_games(folder, number + 1)
        with board.stage(number, events.EVALUATION, "games", num_games) as evaluating:
            last_task = stages.evaluate.submit(folder, number + 1, wait_for=[trained])
            evaluation = last_task.result()

    handoff.wait_for_predecessor()
    promotion = None
    gating: Stage | None = None
    if (match := gating_match_of(folder, number + 1)) is not None:
        # How many games it takes is not known before.
        with board.stage(number, events.GATING_MATCH, "games", total=0) as gating:
            last_task = stages.gating_match.submit(
                folder, match, pool.num_workers, wait_for=[last_task]
            )
            promotion = last_task.result()
    seconds = StageSeconds(
        self_play=playing.seconds,
        training=training.seconds,
        evaluation=evaluating.seconds if evaluating else 0.0,
        evaluation_hidden=handoff.hidden_seconds(evaluating) if evaluating else 0.0,
        iteration=time.monotonic() - began,
        gating_match=gating.seconds if gating else 0.0,
    )
    promoted = stages.promote.submit(
        folder, handoff.plan, [done.result for done in played], training_facts, evaluation,
        promotion, seconds, run.clock.elapsed_s,
        use_before.until(pool.use), run.energy.lap().total if run.energy else None,
        wait_for=[last_task],
    )
    receipt: Receipt = promoted.result()
    show_in_mlflow(run, number, after=promoted)
    # Told in this flow run, so that Prefect shows the iteration's table on its page.
    finished = events.IterationFinished(receipt, campaign_length(folder))
    board.tell(finished, contextvars.copy_context())
    return receipt


def _num_games(folder: CampaignFolder, generation: int) -> int:
    """Games of an evaluation."""
    matches = generation_matches(folder, generation)
    settings = folder.config.evaluation
    beside: int = settings.ladder_test_games if settings.ladder_test else 0
    if converts(folder):
        beside += settings.won_positions
    return beside + sum(match.num_games for match in matches)
