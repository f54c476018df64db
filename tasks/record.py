"""The recording task: show MLflow what the receipts say."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from prefect import get_run_logger, task

from chess_snn.campaign import CampaignConfig, CampaignFolder, Receipt
from chess_snn.campaign.configuration.loading import config_values
from chess_snn.campaign.models.versions import describe_version
from chess_snn.campaign.stages.warm_start import supervised_facts
from chess_snn.campaign.store.history import ReceiptHistory
from chess_snn.campaign.strength.champions import champion_of
from chess_snn.campaign.strength.matches import read_final_matches
from chess_snn.campaign.viewing.alarms import find_alarms
from chess_snn.errors import DamagedFolderError
from chess_snn.failpoints import failpoint
from chess_snn.types import Json
from tasks.tracking import (
    CampaignTracker,
    DatasetFacts,
    ModelVersionFacts,
    TrackingError,
)
from tasks.version_facts import champion_tags, version_facts


@task(name="record", task_run_name="record-{iteration}")
def record(directory: str, iteration: int, tracking_uri: str) -> str | None:
    """Record every finished iteration up to ``iteration`` that MLflow lacks.

    MLflow away delays the curves and nothing else: the next call sends what is missing.

    Returns:
        Why something is not recorded yet; None where all is.
    """
    folder = CampaignFolder.open(Path(directory))
    try:
        record_missing(folder, open_tracker(folder, tracking_uri))
    except (TrackingError, DamagedFolderError) as error:
        get_run_logger().warning("not recorded yet: %s", error)
        return str(error)
    failpoint("mlflow.recorded")
    return None


def open_tracker(folder: CampaignFolder, tracking_uri: str) -> CampaignTracker:
    """The tracker of a campaign, its store made ready where it is not.

    Raises:
        TrackingError: the store is away.
    """
    return CampaignTracker(tracking_uri, folder, configuration=_parameters(folder.config))


def record_missing(folder: CampaignFolder, tracker: CampaignTracker) -> int:
    """Record what MLflow lacks of a campaign; how many finished iterations it lacked.

    Raises:
        TrackingError: the store is away.
    """
    if facts := supervised_facts(folder):
        tracker.record_supervised(facts["points"], _dataset(facts["games"]))
    receipts = ReceiptHistory(folder)
    history = receipts.metrics()
    recorded = tracker.recorded_iterations()
    missing = [number for number in range(len(receipts)) if number not in recorded]
    for number in missing:
        alarms = _alarm_metrics(history[: number + 1])
        tracker.record_iteration(
            number, history[number] | alarms, _version(folder, receipts[number], receipts)
        )
    champion = champion_of(folder, receipts)
    if champion is not None:
        tracker.promote(champion, champion_tags(folder, champion))
        tracker.show_alarms([alarm.name for alarm in find_alarms(history)])
        if finals := read_final_matches(folder):
            tracker.record_final(receipts[-1].iteration, _final_metrics(finals))
    return len(missing)


def _version(
    folder: CampaignFolder, receipt: Receipt, receipts: Sequence[Receipt]
) -> ModelVersionFacts | None:
    """Its network, to be registered; None where that was removed on purpose."""
    version = describe_version(folder, receipt, receipts)
    return None if version.is_removed else version_facts(folder, version)


def _dataset(games: Json) -> DatasetFacts:
    return DatasetFacts(
        name=games["name"], digest=games["digest"], source={"uri": games["path"]},
        profile={"games": games["games"], "positions": games["positions"]},
    )


def _alarm_metrics(history: list[dict[str, float]]) -> dict[str, float]:
    """How many alarms are active, and 1 for each of them; 0 for one that has just ended."""
    active = {alarm.name for alarm in find_alarms(history)}
    told = active | {alarm.name for alarm in find_alarms(history[:-1])}
    return {
        "alarms/active": float(len(active)),
        **{f"alarms/{name.replace(' ', '_')}": float(name in active) for name in sorted(told)},
    }


def _final_metrics(matches: list[Json]) -> dict[str, float]:
    return {
        f"final/{figure}_{match['name'].replace('-', '_')}": match[figure]
        for match in matches for figure in ("score", "score_low", "score_high")
    }


def _parameters(config: CampaignConfig) -> Json:
    """Every setting, and of the network what its size and settings come to."""
    values = config_values(config)
    values["net"] |= asdict(config.net.network())
    return values


@contextmanager
def tracked_run(
    folder: CampaignFolder, tracking_uri: str, warn: Callable[[str], None],
    flow_run: str = "",
) -> Iterator[None]:
    """The campaign's MLflow run, running in the block and ended with its outcome after it.

    Its description links to ``flow_run``, Markdown, if that is given. Where MLflow is away,
    ``warn`` is told and the block runs all the same.
    """

    def attempt(action: Callable[[CampaignTracker], object]) -> None:
        try:
            action(open_tracker(folder, tracking_uri))
        except TrackingError as error:
            warn(f"MLflow cannot be told: {error}")

    attempt(lambda tracker: tracker.link_to_flow_run(flow_run) if flow_run else tracker.run_id)
    status = "KILLED"
    try:
        yield
        status = "FINISHED"
    except Exception:
        status = "FAILED"
        raise
    finally:
        attempt(lambda tracker: tracker.close(status))
