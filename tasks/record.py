"""The task that records in MLflow what the receipts of a campaign say."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from prefect import get_run_logger, task

from chess_snn.campaign import CampaignFolder, Receipt, read_receipts
from chess_snn.campaign.configuration.loading import config_values
from chess_snn.campaign.models.versions import describe_version
from chess_snn.campaign.stages import step_losses
from chess_snn.campaign.stages.first_generation import supervised_facts
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.stages.training import trained_by
from chess_snn.campaign.store.collection import GameFilter, games_of_iteration
from chess_snn.campaign.store.folder import CONFIG_FILE, REPORT
from chess_snn.campaign.store.match_facts import MatchFacts
from chess_snn.campaign.store.plans import campaign_length
from chess_snn.campaign.strength.champions import champion_of
from chess_snn.campaign.strength.matches import is_finished, read_final_matches
from chess_snn.campaign.strength.ratings import strength_of
from chess_snn.campaign.viewing.alarms import find_alarms
from chess_snn.campaign.viewing.figure import metric_name
from chess_snn.campaign.viewing.figures import metrics_of
from chess_snn.campaign.viewing.recorded_games import to_pgn
from chess_snn.campaign.viewing.results import result_rows, results_csv
from chess_snn.data import is_committed
from chess_snn.errors import CorruptDataError
from chess_snn.failpoints import failpoint
from chess_snn.sources import provenance
from chess_snn.tasks.tracking import TrackingError, tracking_uri
from chess_snn.tasks.tracking.recorder import ALARMS_TAG, CampaignTracker
from chess_snn.types import Json, LogFn

SAMPLE_GAMES: Final = 10
"""Games of the newest iteration, among the files of the run."""

_LOSSES: Final = ("total", "policy", "value")
"""Losses of :func:`chess_snn.campaign.stages.step_losses`, which has other figures too."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Outcome of recording what MLflow lacked of a campaign."""

    num_missing: int = 0
    """Finished iterations that MLflow lacked."""
    alias_line: str | None = None
    """Line on the alias that campaigns share: see :func:`.move_champion`."""
    failure: str | None = None
    """Reason why something is not recorded yet."""


@task(name="record", task_run_name="record-{iteration}")
def record(folder: CampaignFolder, iteration: int) -> Recorded:
    """Record every finished iteration up to ``iteration`` that MLflow lacks.

    MLflow away delays the curves and nothing else: the next call sends what is missing.
    """
    try:
        recorded = record_missing(folder, open_tracker(folder))
    except (TrackingError, CorruptDataError) as error:
        get_run_logger().warning("not recorded yet: %s", error)
        return Recorded(failure=str(error))
    if recorded.alias_line is not None:
        get_run_logger().info("%s", recorded.alias_line)
    failpoint("mlflow.recorded")
    return recorded


def open_tracker(folder: CampaignFolder) -> CampaignTracker:
    """The tracker of a campaign, its store made ready where it is not.

    The run's parameters are all settings, and of the network what its size and settings come to.

    Raises:
        TrackingError: the store is away.
    """
    values = config_values(folder.config)
    values["net"] |= asdict(folder.config.net.network())
    return CampaignTracker(tracking_uri(), folder, configuration=values)


def record_at_rest(folder: CampaignFolder) -> int:
    """:func:`record_missing` for a campaign that is not running, whose lock the caller has.

    Raises:
        TrackingError: the store is away.
    """
    tracker = open_tracker(folder)
    num_missing = record_missing(folder, tracker).num_missing
    tracker.close("FINISHED" if is_finished(folder) else "KILLED")
    return num_missing


def record_missing(folder: CampaignFolder, tracker: CampaignTracker) -> Recorded:
    """Record what MLflow lacks of a campaign.

    Raises:
        TrackingError: the store is away.
    """
    if facts := supervised_facts(folder):
        tracker.record_supervised(facts["points"], facts["games"])
    receipts = read_receipts(folder)
    history = result_rows(folder, receipts)
    recorded = tracker.recorded_iterations
    missing = [number for number in range(len(receipts)) if number not in recorded]
    for number in missing:
        version = describe_version(folder, receipts[number], receipts)
        metrics = metrics_of(folder.config, receipts[number])
        metrics |= _campaign_metrics(folder, receipts[: number + 1])
        metrics[metric_name("learning", "alarms")] = float(len(find_alarms(history[: number + 1])))
        tracker.record_iteration(
            number, metrics, None if version.is_removed else version,
            steps=_step_metrics(folder, number + 1),
        )
    champion, alias_line = champion_of(folder, receipts), None
    if champion is not None:
        alias_line = tracker.promote(champion)
        alarms = ", ".join(alarm.name for alarm in find_alarms(history))
        if finals := read_final_matches(folder):
            tracker.record_final(receipts[-1].iteration, _final_metrics(finals))
        newest = len(receipts)
        is_there = is_committed(folder.checkpoint(newest))
        tracker.tag(
            {ALARMS_TAG: alarms or "none"}
            | _provenance_tags(trained_by(folder, newest) if is_there else {})
        )
    try:
        with TemporaryDirectory() as files:
            _write_run_files(folder, history, Path(files))
            tracker.keep_files(Path(files))
    except OSError as error:
        raise TrackingError(f"the files of the run cannot be written: {error}") from error
    return Recorded(len(missing), alias_line)


def _write_run_files(folder: CampaignFolder, rows: Sequence[Json], target: Path) -> None:
    """Write all of them into ``target``, an empty folder; ``rows`` are :func:`.result_rows`.

    Raises:
        OSError: there is no room.
    """
    shutil.copy(folder.path / CONFIG_FILE, target)
    if folder.log_file.exists():
        shutil.copy(folder.log_file, target)
    if (folder.path / REPORT).exists():
        shutil.copy(folder.path / REPORT, target)
    (target / "results.csv").write_text(results_csv(folder, rows))
    if rows and game_of(folder).spec.num_players == 2:  # PGN has white and black
        text = _sample_games(folder, rows[-1]["iteration"])
        (target / "sample-games.pgn").write_text(text)


def _sample_games(folder: CampaignFolder, iteration: int) -> str:
    try:
        games = games_of_iteration(folder, iteration)
        wanted = games.games(GameFilter(limit=SAMPLE_GAMES))
        return "".join(to_pgn(games, game) for game in wanted)
    except CorruptDataError as error:
        # A comment of PGN. The campaign itself finds the damage and rebuilds it.
        return f"; {error}\n"


def _campaign_metrics(folder: CampaignFolder, receipts: Sequence[Receipt]) -> dict[str, float]:
    """Metrics of the campaign up to the last of ``receipts``.

    The strength of its champion as far as it was measured, and what it has cost: axes on which
    campaigns can be compared.
    """
    champion = receipts[-1].champion
    made = [receipt for receipt in receipts if receipt.training.generation == champion]
    strength = strength_of(folder.config, made[-1]) if made else None
    figures = {} if strength is None else strength.figures()
    return {
        metric_name("strength", "champion"): float(champion),
        **{metric_name("strength", f"champion_{name}"): value for name, value in figures.items()},
        metric_name("self_play", "all_games"): float(sum(
            each.statistics.games for each in receipts
        )),
        metric_name("self_play", "all_positions"): float(sum(
            each.statistics.positions for each in receipts
        )),
        metric_name("speed", "progress"): receipts[-1].share_of(campaign_length(folder)),
        metric_name("speed", "elapsed_s"): receipts[-1].elapsed_s,
        metric_name("devices", "device_seconds"): sum(
            each.statistics.seconds
            + each.seconds.training * each.training.metrics.get("ranks", 1.0)
            for each in receipts
        ),
    }


def _step_metrics(folder: CampaignFolder, generation: int) -> list[dict[str, float]]:
    """The losses by optimiser step of the training that made ``generation``."""
    return [
        {"step": point["step"]} | {f"{name}_loss": point[name] for name in _LOSSES if name in point}
        for point in step_losses(folder, generation)
    ]


def _provenance_tags(facts: Mapping[str, str]) -> dict[str, str]:
    """Tags of the run, those that MLflow's pages show as its source among them."""
    tags = {f"chess_snn.{name}": value for name, value in facts.items()}
    if "version" in facts:
        tags |= {
            "mlflow.source.name": f"chess-snn {facts['version']}", "mlflow.source.type": "LOCAL",
        }
    if "commit" in facts:
        tags["mlflow.source.git.commit"] = facts["commit"].removesuffix("+")
    return tags


def _final_metrics(matches: list[MatchFacts]) -> dict[str, float]:
    return {
        metric_name("strength", f"final_score_{match.name.replace('-', '_')}"): match.score
        for match in matches
    }


@contextmanager
def tracked_run(folder: CampaignFolder, warn: LogFn, flow_run: str = "") -> Iterator[None]:
    """The campaign's MLflow run, running in the block and ended with its outcome after it.

    Its description links to ``flow_run``, Markdown, if that is given. Where MLflow is away,
    ``warn`` gets a line, and the block runs all the same.
    """

    def attempt(action: Callable[[CampaignTracker], object]) -> None:
        try:
            action(open_tracker(folder))
        except TrackingError as error:
            warn(f"MLflow cannot be told: {error}")

    def begin(tracker: CampaignTracker) -> None:
        tracker.tag(_provenance_tags(provenance()))
        if flow_run:
            tracker.link_to_flow_run(flow_run)

    attempt(begin)
    status = "KILLED"
    try:
        yield
        status = "FINISHED"
    except Exception:
        status = "FAILED"
        raise
    finally:
        attempt(lambda tracker: tracker.close(status))
