"""The promotion task: decide on the champion and finish the iteration with its receipt."""

from pathlib import Path

from prefect import task

from chess_snn.campaign import CampaignFolder, Receipt, read_receipt, write_receipt
from chess_snn.campaign.receipts import ShardFacts, StageSeconds, TrainingFacts
from chess_snn.campaign.stages import choose_champion
from chess_snn.types import Json


@task(name="promote", task_run_name="promote-{iteration}")
def promote(
    directory: str,
    iteration: int,
    shards: list[ShardFacts],
    training: TrainingFacts,
    matches: list[Json],
    seconds: StageSeconds,
) -> Receipt:
    """Commit the receipt of ``iteration``, which names the champion from now on."""
    folder = CampaignFolder.open(Path(directory))
    score = sum(match["score"] for match in matches) / len(matches)
    receipt = Receipt(
        iteration=iteration,
        shards=shards,
        training=training,
        matches=matches,
        score=score,
        champion=choose_champion(
            score, training.generation, _champion_before(folder, iteration),
            folder.config.promotion.margin,
        ),
        seconds=seconds,
    )
    write_receipt(folder, receipt)
    return receipt


def _champion_before(folder: CampaignFolder, iteration: int) -> tuple[int, float] | None:
    """(generation, score) of the champion before ``iteration``; None before the first."""
    if iteration == 0:
        return None
    champion = read_receipt(folder, iteration - 1).champion
    # Generation g is the candidate of iteration g - 1.
    return champion, read_receipt(folder, champion - 1).score
