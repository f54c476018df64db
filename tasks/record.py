"""The recording task: show MLflow what the receipts say."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from prefect import get_run_logger, task

from chess_snn.campaign import CampaignFolder, Receipt, read_receipts
from chess_snn.campaign.loading import config_values
from chess_snn.training import WEIGHTS
from tasks.tracking import CampaignTracker, ModelVersionFacts, TrackingError


@task(name="record", task_run_name="record-{iteration}")
def record(directory: str, iteration: int, tracking_uri: str) -> int:
    """Record every finished iteration up to ``iteration`` that MLflow lacks; how many it lacked.

    MLflow away delays the curves and nothing else: the next call sends what is missing.
    """
    folder = CampaignFolder.open(Path(directory))
    try:
        tracker = CampaignTracker(tracking_uri, folder.campaign_id, folder.name)
        return record_missing(folder, tracker)
    except TrackingError as error:
        get_run_logger().warning("not recorded yet: %s", error)
        return 0


def record_missing(folder: CampaignFolder, tracker: CampaignTracker) -> int:
    """Record every finished iteration that MLflow lacks; how many those were.

    Raises:
        TrackingError: the store is away.
    """
    receipts = read_receipts(folder)
    recorded = tracker.recorded_iterations()
    missing = [receipt for receipt in receipts if receipt.iteration not in recorded]
    for receipt in missing:
        tracker.record_iteration(
            receipt.iteration, receipt.metrics(), _version_facts(folder, receipt)
        )
    if receipts:
        tracker.promote(receipts[-1].champion)
    return len(missing)


@contextmanager
def tracked_run(
    folder: CampaignFolder, tracking_uri: str, warn: Callable[[str], None]
) -> Iterator[None]:
    """The campaign's MLflow run, running in the block and ended with its outcome after it."""

    def attempt(action: Callable[[CampaignTracker], object]) -> None:
        try:
            action(
                CampaignTracker(
                    tracking_uri, folder.campaign_id, folder.name,
                    configuration=config_values(folder.config),
                )
            )
        except TrackingError as error:
            warn(f"MLflow cannot be told: {error}")

    attempt(lambda tracker: tracker.run_id)
    status = "KILLED"
    try:
        yield
        status = "FINISHED"
    except Exception:
        status = "FAILED"
        raise
    finally:
        attempt(lambda tracker: tracker.close(status))


def _version_facts(folder: CampaignFolder, receipt: Receipt) -> ModelVersionFacts:
    generation = receipt.training.generation
    lows = [match["score_low"] for match in receipt.matches]
    highs = [match["score_high"] for match in receipt.matches]
    return ModelVersionFacts(
        generation=generation,
        weights_path=folder.checkpoint(generation) / WEIGHTS,
        size=folder.config.net.size,
        ticks=folder.config.net.network().ticks,
        score=receipt.score,
        # The mean of intervals contains the mean score at least as surely as each its own.
        score_interval=(sum(lows) / len(lows), sum(highs) / len(highs)),
        digest=receipt.training.weights_digest,
        tags={"precision": folder.config.net.precision},
    )
