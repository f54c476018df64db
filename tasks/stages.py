"""One Prefect task for each stage of a campaign: play, train, evaluate, promote, report."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import psutil
from prefect import get_run_logger, task
from prefect.states import Cancelled

from chess_snn import processes
from chess_snn.campaign import CampaignFolder, Receipt, write_receipt
from chess_snn.campaign.stages.first_generation import begins_trained
from chess_snn.campaign.store.match_facts import MatchFacts
from chess_snn.campaign.store.plans import ProgressPlan
from chess_snn.campaign.store.receipt_parts import (
    DeviceUse,
    EvaluationFacts,
    PromotionFacts,
    ShardFacts,
    StageSeconds,
    TrainingFacts,
)
from chess_snn.campaign.strength.champions import choose_champion
from chess_snn.campaign.strength.gating_match import decide, finish_gating_match, next_parts
from chess_snn.campaign.strength.match_schedule import (
    CONVERSION,
    EARLIER,
    LADDER_TEST,
    ScheduledMatch,
    converts,
    final_matches,
    generation_matches,
)
from chess_snn.campaign.strength.matches import finish_match, unplayed_parts
from chess_snn.campaign.strength.ratings import rate_campaign, rating_of
from chess_snn.failpoints import failpoint
from chess_snn.tasks import remote
from chess_snn.tasks.compute import (
    BACKGROUND,
    RETRIES,
    StoppedError,
    all_done,
    is_worth_retrying,
    run_all_on_devices,
)
from chess_snn.tasks.remote import Call, Done
from chess_snn.tasks.summary_lines import (
    evaluation_line,
    matches_line,
    promotion_line,
    shard_line,
    training_line,
)
from chess_snn.types import Json

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_retried: Final = partial(task, retries=RETRIES, retry_condition_fn=is_worth_retrying)
"""Decorate a stage that is tried again where that may help."""


def cancelled_by_stop(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorate the function of a task or flow: on StoppedError its run is Cancelled.

    A caller that asks for the run's result gets the StoppedError.
    """

    @wraps(function)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Any:
        try:
            return function(*args, **kwargs)
        except StoppedError as error:
            return Cancelled(message=str(error), data=error)

    return run


@_retried(name="self_play", task_run_name="self_play-{iteration}-{shard}")
@cancelled_by_stop
def self_play(folder: CampaignFolder, iteration: int, shard: int) -> Done[ShardFacts]:
    """Play shard ``shard`` of ``iteration`` on a worker and commit it."""
    (done,) = all_done([(remote.play_shard, str(folder.path), iteration, shard)])
    get_run_logger().info("%s", shard_line(done))
    return done


@_retried(name="train", task_run_name="train-{iteration}")
@cancelled_by_stop
def train(folder: CampaignFolder, iteration: int) -> TrainingFacts:
    """Train on the replay window of ``iteration`` and commit the next generation."""
    call = (remote.train_generation, str(folder.path), iteration)
    done: Done[TrainingFacts] = all_done([call])[0]
    get_run_logger().info("%s", training_line(done, iteration + 1, done.result.metrics))
    return done.result


@_retried(name="train_supervised", task_run_name="train_supervised")
def train_supervised(folder: CampaignFolder) -> Json:
    """Train generation 0 on a dataset and commit it."""
    done = train_first(folder)
    last = done.result["points"][-1]  # before the last checkpoint
    figures = last | {"steps": last["step"], "ranks": done.result.get("ranks", 1)}
    get_run_logger().info("%s", training_line(done, 0, figures))
    return done.result


def train_first(folder: CampaignFolder) -> Done[Json]:
    """The same outside a task."""
    return all_done([(remote.train_first_generation, str(folder.path))])[0]


@_retried(name="evaluate", task_run_name="evaluate-{generation}")
@cancelled_by_stop
def evaluate(folder: CampaignFolder, generation: int) -> EvaluationFacts:
    """Play a new generation's matches, ladder test and suite of won positions, side by side.

    Self-play of the next iteration goes first wherever both wait for a device.
    """
    directory, matches = str(folder.path), generation_matches(folder, generation)
    whole: dict[str, Call] = {}
    if folder.config.evaluation.ladder_test:
        # Its batches wait for one another: it takes longest and begins first.
        whole[LADDER_TEST] = (remote.play_ladder_test, directory, generation)
    if converts(folder):
        whole[CONVERSION] = (remote.play_conversion, directory, generation)
    parts = _part_calls(folder, generation - 1, matches)
    found = dict(zip(
        whole, run_all_on_devices([*whole.values(), *parts], priority=BACKGROUND), strict=False,
    ))
    facts = EvaluationFacts(
        [finish_match(folder.path, match) for match in matches],
        found.get(CONVERSION), found.get(LADDER_TEST),
    )
    get_run_logger().info("%s", evaluation_line(facts))
    return facts


@_retried(name="evaluate_final", task_run_name="evaluate_final")
@cancelled_by_stop
def evaluate_final(folder: CampaignFolder, iteration: int) -> list[MatchFacts]:
    """Play the matches at the end of the campaign, whose last one is ``iteration``."""
    matches = final_matches(folder)
    run_all_on_devices(_part_calls(folder, iteration, matches))
    played = [finish_match(folder.path, match) for match in matches]
    get_run_logger().info("%s", matches_line(played))
    return played


def _part_calls(
    folder: CampaignFolder, iteration: int, matches: Sequence[ScheduledMatch]
) -> list[Call]:
    return [
        (remote.play_match_part, str(folder.path), iteration, match, part)
        for match in matches for part in unplayed_parts(folder, match)
    ]


@_retried(name="gating_match", task_run_name="gating_match-{match.generation}")
@cancelled_by_stop
def gating_match(folder: CampaignFolder, match: ScheduledMatch, num_workers: int) -> PromotionFacts:
    """Let a candidate play the champion until the test is over, a part a worker at a time.

    Self-play of the next iteration goes first wherever both wait for a device.
    """
    directory, iteration = str(folder.path), match.generation - 1
    while parts := next_parts(folder, match, most=num_workers):
        run_all_on_devices(
            [(remote.play_match_part, directory, iteration, match, part) for part in parts],
            priority=BACKGROUND,
        )
    facts = finish_gating_match(folder.path, match)
    get_run_logger().info("%s: %s", facts.players_text, facts.match_text)
    return facts


@task(name="promote", task_run_name="promote-{plan.iteration}")
def promote(
    folder: CampaignFolder,
    plan: ProgressPlan,
    shards: list[ShardFacts],
    training: TrainingFacts,
    evaluation: EvaluationFacts | None,
    promotion: PromotionFacts | None,
    seconds: StageSeconds,
    elapsed_s: float,
    devices: DeviceUse | None,
    joules: float | None,
) -> Receipt:
    """Commit the receipt of the iteration, which names the champion from now on.

    All earlier iterations have theirs.
    """
    iteration = plan.iteration
    score = None if evaluation is None else _mean_score(evaluation)
    rated = None if evaluation is None else rate_campaign(folder, training.generation)
    if promotion is not None:
        promotion = decide(folder.config, promotion, rated)
    receipt = Receipt(
        iteration=iteration,
        plan=plan,
        shards=shards,
        training=training,
        matches=[] if evaluation is None else evaluation.matches,
        conversion=None if evaluation is None else evaluation.conversion,
        score=score,
        champion=choose_champion(folder, iteration, score, promotion),
        seconds=seconds,
        elapsed_s=elapsed_s,
        rating=rating_of(rated, training.generation, folder.config.evaluation.simulations),
        ladder_test=None if evaluation is None else evaluation.ladder_test,
        promotion=promotion,
        is_warm=begins_trained(folder),
        devices=devices,
        joules=joules,
    )
    failpoint("receipt.begins")
    write_receipt(folder, receipt)
    failpoint("receipt.committed")
    get_run_logger().info("%s", promotion_line(receipt))
    return receipt


def _mean_score(evaluation: EvaluationFacts) -> float:
    """Over the fixed opponents: an earlier generation is a different one each time."""
    scores: list[float] = [
        match.score for match in evaluation.matches if match.name != EARLIER
    ]
    return sum(scores) / len(scores)


_PRIORITY: Final = 10
"""Niceness: the report must not slow down self-play and training beside it."""


@task(name="report", task_run_name="report")
def report(path: Path) -> str | None:
    """Write the report of a campaign or an experiment into its folder, which does without it.

    Returns:
        Why it could not be written; None where it was.
    """
    child = processes.start(
        [sys.executable, "-m", "chess_snn", "report", str(path)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )
    with suppress(psutil.NoSuchProcess):
        psutil.Process(child.pid).nice(_PRIORITY)
    _, errors = child.communicate()
    if child.returncode == 0:
        return None
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("error: ") if lines else processes.describe_exit(child.returncode)
