"""Runs the iterations of a campaign, each begun as soon as the network it plays with is trained.

So a generation is evaluated while the next iteration plays. No more than two iterations are alive,
each in a thread of its own; they get their receipts in order.
"""

import contextvars
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any

import httpx

from chess_snn.campaign import Receipt
from chess_snn.campaign.integrity.gc import sweep_leftovers
from chess_snn.campaign.store.history import ReceiptHistory
from chess_snn.campaign.store.plans import begin_iteration, num_shards
from chess_snn.campaign.store.receipts import num_finished_iterations, read_receipt
from chess_snn.campaign.viewing.alarms import Alarm, find_alarms
from chess_snn.campaign.viewing.events import AlarmRaised
from flows.context import CampaignRun, IterationRun, Relay, running
from flows.iteration import iteration, waiting_tasks
from flows.prefect_errors import await_server
from tasks import compute

_MOST_ALIVE = 2


def run_iterations(run: CampaignRun) -> None:
    """Run what is left of the campaign; an error in one iteration stops both."""
    folder, number = run.folder, num_finished_iterations(run.folder)
    relay: Relay | None = None
    finished: Future[Receipt] | None = None
    with (
        ThreadPoolExecutor(_MOST_ALIVE, thread_name_prefix="iteration") as threads,
        compute.stopped_by_errors(),
    ):
        while plan := begin_iteration(
            folder, number, run.clock.elapsed_s, run.crew.num_workers
        ):
            _tell_of_idle_workers(run, number)
            if relay is not None:
                relay.successor_begins()
            before, relay = finished, Relay(plan, predecessor=finished)
            # In a copy of this context: Prefect keeps the campaign's flow run there.
            in_context = contextvars.copy_context().run
            finished = threads.submit(in_context, _run_iteration, run, relay)
            awaited: list[Future[Any]] = [] if before is None else [before]
            awaited.append(relay.trained if folder.config.execution.overlap else finished)
            _wait_for_all(awaited)
            number += 1
        if finished is not None:
            _wait_for_all([finished])


def _tell_of_idle_workers(run: CampaignRun, iteration: int) -> None:
    workers, shards = run.crew.num_workers, num_shards(run.folder, iteration)
    if shards < workers:
        run.board.message(
            f"{workers - shards} of {workers} workers have nothing to play in iteration "
            f"{iteration}: it has {shards} shards of "
            f"{run.folder.config.self_play.games_per_iteration} games; use fewer workers "
            "(--workers), or more games (self_play.games_per_iteration)"
        )


def _run_iteration(run: CampaignRun, relay: Relay) -> Receipt:
    """Finish the iteration of ``relay``, if it has no receipt: one after a gap may have its own."""
    number = relay.plan.iteration
    try:
        if run.folder.receipt(number).exists():
            relay.hand_over()
            return read_receipt(run.folder, number)
        receipt = _call_flow(run, relay)
        sweep_leftovers(run.folder)  # of workers that were killed meanwhile
        for alarm in _new_alarms(run):
            run.board.tell(AlarmRaised(alarm))
    except BaseException as error:
        relay.fail(error)
        raise
    return receipt


def _call_flow(run: CampaignRun, relay: Relay) -> Receipt:
    """The iteration's flow; called again where the server went away before it began."""
    runner = waiting_tasks(run.crew.num_workers)
    while True:
        await_server(run.board.message)
        current = IterationRun(run, relay)
        try:
            with running(current):
                receipt: Receipt = iteration.with_options(task_runner=runner)(
                    str(run.folder.path), relay.plan.iteration
                )
        except httpx.ConnectError:
            if current.has_begun.is_set():
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
    # Whoever was stopped did not begin it.
    raise next((e for e in errors if not isinstance(e, compute.StoppedError)), errors[0])


def _new_alarms(run: CampaignRun) -> list[Alarm]:
    """Those that the newest receipt has raised."""
    history = ReceiptHistory(run.folder).metrics()
    known = {(alarm.name, alarm.since_iteration) for alarm in find_alarms(history[:-1])}
    return [a for a in find_alarms(history) if (a.name, a.since_iteration) not in known]
