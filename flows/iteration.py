"""One iteration as a DAG: self-play shards side by side, then training, evaluation, promotion."""

import time
from typing import Any

from prefect import flow, unmapped
from prefect.task_runners import ThreadPoolTaskRunner

from chess_snn.campaign import CampaignFolder, Receipt
from chess_snn.campaign.receipts import StageSeconds
from flows.cluster import Crew
from flows.context import current_run
from tasks import compute
from tasks.evaluate import evaluate
from tasks.progress import ProgressBoard
from tasks.promote import promote
from tasks.record import record
from tasks.self_play import self_play
from tasks.train import train

_MOST_WAITING_TASKS = 64
"""Threads that wait for shards; Dask has a few ahead of each worker and needs no more."""


@flow(
    name="iteration",
    flow_run_name="iteration-{iteration}",
    task_runner=ThreadPoolTaskRunner(max_workers=_MOST_WAITING_TASKS),  # type: ignore[arg-type]
)
def iteration(directory: str, iteration: int) -> Receipt:
    """Play, train, evaluate and promote; only what is not committed yet is done.

    Args:
        directory: the campaign folder.
        iteration: from 0; all earlier ones are finished.
    """
    run = current_run()
    try:
        return _stages(run.folder, iteration, run.crew, run.board, run.tracking_uri)
    except BaseException:
        # Prefect waits for running tasks before an error leaves the flow: let them give up.
        compute.stop()
        raise


def _stages(
    folder: CampaignFolder, number: int, crew: Crew, board: ProgressBoard, tracking_uri: str
) -> Receipt:
    config, directory = folder.config, str(folder.path)
    options: dict[str, Any] = {
        "retries": config.execution.retries,
        "retry_condition_fn": compute.is_worth_retrying,
    }

    with board.stage(number, "self_play", "games", config.self_play.games_per_iteration):
        began = time.monotonic()
        shards = self_play.with_options(**options).map(
            unmapped(directory), unmapped(number), range(config.self_play.num_shards),
            unmapped(crew.threads_each),
        )
        shard_facts = shards.result()
        self_play_s = time.monotonic() - began

    with board.stage(number, "train", "steps", config.training.num_steps(
        sum(shard.statistics["positions"] for shard in shard_facts)
    )):
        began = time.monotonic()
        trained = train.with_options(**options).submit(
            directory, number, crew.num_cores, wait_for=shards
        )
        training_facts = trained.result()
        training_s = time.monotonic() - began

    opponents = list(config.evaluation.opponents)
    num_games = 2 * config.evaluation.num_openings * len(opponents)
    with board.stage(number, "evaluate", "games", num_games):
        began = time.monotonic()
        matches = evaluate.with_options(**options).submit(
            directory, number + 1, opponents, crew.threads_each, wait_for=[trained]
        )
        match_facts = matches.result()
        evaluation_s = time.monotonic() - began

    seconds = StageSeconds(self_play_s, training_s, evaluation_s)
    promoted = promote.submit(
        directory, number, shard_facts, training_facts, match_facts, seconds,
        wait_for=[matches],
    )
    receipt = promoted.result()
    record.submit(directory, number, tracking_uri, wait_for=[promoted]).result()
    return receipt
