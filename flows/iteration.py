"""One iteration as a DAG: self-play shards side by side, then training, evaluation, promotion.

Promotion waits for the iteration before: the candidate plays the champion that one left.
"""

import contextvars
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prefect import flow, unmapped
from prefect.futures import PrefectFuture
from prefect.task_runners import ThreadPoolTaskRunner

from chess_snn.campaign import CampaignConfig, CampaignFolder, Receipt
from chess_snn.campaign.store.plans import num_shards
from chess_snn.campaign.store.receipts import PromotionFacts, StageSeconds
from chess_snn.campaign.strength.gate import gate_match
from chess_snn.campaign.strength.matches import converts, generation_matches, is_evaluated
from chess_snn.campaign.viewing.events import (
    EVALUATION,
    GATING_MATCH,
    SELF_PLAY,
    TRAINING,
    IterationFinished,
)
from flows.backup import send_to_store
from flows.campaign_runs import untagged_tasks
from flows.context import CampaignRun, IterationRun, current_iteration
from flows.prefect_pages import worker_shares
from tasks import compute
from tasks.record import record
from tasks.stages import cancelled_by_stop, challenge, evaluate, promote, self_play, train

_WAITING_TASKS_AHEAD = 64
"""Threads that wait for shards, beyond one a worker: whoever is done finds the next one there."""


def waiting_tasks(num_workers: int) -> ThreadPoolTaskRunner[Any]:
    """Threads for the tasks of an iteration, so many that every worker has something to do."""
    return ThreadPoolTaskRunner(max_workers=num_workers + _WAITING_TASKS_AHEAD)


@flow(
    name="iteration",
    flow_run_name="iteration-{iteration}",
    task_runner=waiting_tasks(num_workers=0),  # who calls it knows how many there are
)
@cancelled_by_stop
def iteration(directory: str, iteration: int) -> Receipt:
    """Play, train, evaluate and promote; only what is not committed yet is done.

    Args:
        directory: the campaign folder.
        iteration: from 0; its plan is committed, and all earlier ones are trained.
    """
    # Prefect waits for running tasks before an error leaves the flow: let them give up.
    with compute.stopped_by_errors(), untagged_tasks():
        current = current_iteration()
        current.has_begun.set()
        return _stages(current, directory, iteration)


def task_options(config: CampaignConfig) -> dict[str, Any]:
    """How tasks that may fail are tried again."""
    return {
        "retries": config.execution.retries,
        "retry_condition_fn": compute.is_worth_retrying,
    }


def show_in_mlflow(campaign: CampaignRun, iteration: int, after: PrefectFuture[Any]) -> None:
    """Record what MLflow lacks once ``after`` is done; say so where it is away."""
    failure = record.submit(
        str(campaign.folder.path), iteration, campaign.tracking_uri, wait_for=[after]
    ).result()
    if failure is not None:
        campaign.board.message(f"not recorded in MLflow yet: {failure}")


def _stages(run: IterationRun, directory: str, number: int) -> Receipt:
    campaign, relay = run.campaign, run.relay
    folder, crew, board = campaign.folder, campaign.crew, campaign.board
    config, options, began = folder.config, task_options(folder.config), time.monotonic()
    use_before = crew.use

    with board.stage(
        number, SELF_PLAY, "games", config.self_play.games_per_iteration
    ), _stopwatch() as self_play_clock:
        shards = self_play.with_options(**options).map(
            unmapped(directory), unmapped(number), range(num_shards(folder, number)),
            unmapped(crew.threads_each),
        )
        played = shards.result()

    if crew.shares_cores:
        # Two threads of training lose most of their pace to a third that wants their cores.
        relay.wait_for_predecessor()
    new_positions = sum(done.result.statistics["positions"] for done in played)
    num_steps = config.training.num_steps(new_positions)
    with board.stage(number, TRAINING, "steps", num_steps), _stopwatch() as training_clock:
        trained = train.with_options(**options).submit(
            directory, number, crew.num_cores, wait_for=shards
        )
        training_facts = trained.result()
    relay.hand_over()

    last_task, evaluation = trained, None
    with _stopwatch() as evaluation_clock:
        if is_evaluated(folder, number + 1):
            with board.stage(number, EVALUATION, "games", _num_games(folder, number + 1)):
                last_task = evaluate.with_options(**options).submit(
                    directory, number + 1, crew.threads_each, wait_for=[trained]
                )
                evaluation = last_task.result()

    relay.wait_for_predecessor()
    with _stopwatch() as gate_clock:
        promotion = _challenge(run, directory, number + 1)
    seconds = StageSeconds(
        self_play=self_play_clock.seconds,
        training=training_clock.seconds,
        evaluation=evaluation_clock.seconds,
        evaluation_hidden=relay.hidden_seconds(evaluation_clock.began, evaluation_clock.ended),
        iteration=time.monotonic() - began,
        gate=gate_clock.seconds if promotion else 0.0,
    )
    promoted = promote.submit(
        directory, relay.plan, [done.result for done in played], training_facts, evaluation,
        promotion, seconds, campaign.clock.elapsed_s,
        use_before.until(crew.use), wait_for=[last_task],
    )
    receipt: Receipt = promoted.result()
    show_in_mlflow(campaign, number, after=promoted)
    # In this flow run, so that Prefect shows the iteration's table on its page.
    board.tell(IterationFinished(receipt, worker_shares(played)), contextvars.copy_context())
    send_to_store(campaign, number, after=promoted)
    return receipt


def _challenge(run: IterationRun, directory: str, generation: int) -> PromotionFacts | None:
    """The games of ``generation`` against the champion; None where there are none to be played."""
    folder, crew = run.campaign.folder, run.campaign.crew
    match = gate_match(folder, generation)
    if match is None:
        return None
    # How many games it takes is not known before.
    with run.campaign.board.stage(generation - 1, GATING_MATCH, "games", total=0):
        played = challenge.with_options(**task_options(folder.config)).submit(
            directory, match, crew.num_workers, crew.threads_each
        )
        facts: PromotionFacts = played.result()
    return facts


def _num_games(folder: CampaignFolder, generation: int) -> int:
    """Of an evaluation."""
    matches = generation_matches(folder, generation)
    settings = folder.config.evaluation
    beside: int = settings.climb_games if settings.climb else 0
    if converts(folder):
        beside += settings.won_positions
    return beside + sum(match.num_games for match in matches)


class _Stopwatch:
    """When a block began and ended, by the monotonic clock."""

    began = ended = 0.0

    @property
    def seconds(self) -> float:
        return self.ended - self.began


@contextmanager
def _stopwatch() -> Iterator[_Stopwatch]:
    watch = _Stopwatch()
    watch.began = time.monotonic()
    yield watch
    watch.ended = time.monotonic()
