"""The promotion task: decide on the champion and finish the iteration with its receipt."""

from pathlib import Path

from prefect import task

from chess_snn.campaign import CampaignFolder, Receipt, read_receipt, write_receipt
from chess_snn.campaign.matches import EARLIER
from chess_snn.campaign.plans import ProgressPlan
from chess_snn.campaign.ratings import rating_of
from chess_snn.campaign.receipts import (
    EvaluationFacts,
    ShardFacts,
    StageSeconds,
    TrainingFacts,
)
from chess_snn.campaign.stages import choose_champion
from chess_snn.campaign.warm_start import is_warm


@task(name="promote", task_run_name="promote-{plan.iteration}")
def promote(
    directory: str,
    plan: ProgressPlan,
    shards: list[ShardFacts],
    training: TrainingFacts,
    evaluation: EvaluationFacts | None,
    seconds: StageSeconds,
    elapsed_s: float,
) -> Receipt:
    """Commit the receipt of the iteration, which names the champion from now on.

    All earlier iterations have theirs.
    """
    folder, iteration = CampaignFolder.open(Path(directory)), plan.iteration
    score = None if evaluation is None else _mean_score(evaluation)
    receipt = Receipt(
        iteration=iteration,
        plan=plan,
        shards=shards,
        training=training,
        matches=[] if evaluation is None else evaluation.matches,
        conversion=None if evaluation is None else evaluation.conversion,
        score=score,
        champion=choose_champion(
            score, training.generation, _champion_before(folder, iteration),
            folder.config.promotion.margin,
        ),
        seconds=seconds,
        elapsed_s=elapsed_s,
        rating=None if evaluation is None else rating_of(
            folder, training.generation, folder.config.evaluation.simulations
        ),
        is_warm=is_warm(folder),
    )
    write_receipt(folder, receipt)
    return receipt


def _mean_score(evaluation: EvaluationFacts) -> float:
    """Over the fixed opponents: an earlier generation is a different one each time."""
    scores = [match["score"] for match in evaluation.matches if match["name"] != EARLIER]
    return sum(scores) / len(scores)


def _champion_before(
    folder: CampaignFolder, iteration: int
) -> tuple[int, float | None] | None:
    """(generation, score) of the champion before ``iteration``; None before the first."""
    if iteration == 0:
        return None
    champion = read_receipt(folder, iteration - 1).champion
    # Generation g is the candidate of iteration g - 1.
    return champion, read_receipt(folder, champion - 1).score
