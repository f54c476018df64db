"""The promotion tasks: play the champion, decide on the next, finish the iteration."""

from pathlib import Path

from prefect import get_run_logger, task

from chess_snn.campaign import CampaignFolder, Receipt, write_receipt
from chess_snn.campaign.stages.warm_start import is_warm
from chess_snn.campaign.store.plans import ProgressPlan
from chess_snn.campaign.store.receipts import (
    DeviceUse,
    EvaluationFacts,
    PromotionFacts,
    ShardFacts,
    StageSeconds,
    TrainingFacts,
)
from chess_snn.campaign.strength.champions import choose_champion
from chess_snn.campaign.strength.gate import decide, finish_gate, next_parts
from chess_snn.campaign.strength.matches import EARLIER, ScheduledMatch
from chess_snn.campaign.strength.ratings import rate_campaign, rating_of
from chess_snn.failpoints import failpoint
from tasks import remote
from tasks.cancelling import cancelled_by_stop
from tasks.compute import BACKGROUND, run_all_on_devices
from tasks.summary_lines import promotion_line


@task(name="challenge", task_run_name="challenge-{match.event}")
@cancelled_by_stop
def challenge(
    directory: str, match: ScheduledMatch, num_workers: int, num_threads: int
) -> PromotionFacts:
    """Let a candidate play the champion until the test is over, a part a worker at a time.

    Self-play of the next iteration goes first wherever both wait for a device.
    """
    folder = CampaignFolder.open(Path(directory))
    iteration = match.player.generation - 1
    while parts := next_parts(folder, match, most=num_workers):
        run_all_on_devices(
            [
                (remote.play_match_part, directory, iteration, match, part, num_threads)
                for part in parts
            ],
            priority=BACKGROUND,
        )
    facts = finish_gate(Path(directory), match)
    get_run_logger().info("%s", facts)
    return facts


@task(name="promote", task_run_name="promote-{plan.iteration}")
def promote(
    directory: str,
    plan: ProgressPlan,
    shards: list[ShardFacts],
    training: TrainingFacts,
    evaluation: EvaluationFacts | None,
    promotion: PromotionFacts | None,
    seconds: StageSeconds,
    elapsed_s: float,
    devices: DeviceUse | None,
) -> Receipt:
    """Commit the receipt of the iteration, which names the champion from now on.

    All earlier iterations have theirs.
    """
    folder, iteration = CampaignFolder.open(Path(directory)), plan.iteration
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
        climb=None if evaluation is None else evaluation.climb,
        promotion=promotion,
        is_warm=is_warm(folder),
        devices=devices,
    )
    failpoint("receipt.begins")
    write_receipt(folder, receipt)
    failpoint("receipt.committed")
    get_run_logger().info("%s", promotion_line(receipt))
    return receipt


def _mean_score(evaluation: EvaluationFacts) -> float:
    """Over the fixed opponents: an earlier generation is a different one each time."""
    scores: list[float] = [
        match["score"] for match in evaluation.matches if match["name"] != EARLIER
    ]
    return sum(scores) / len(scores)

