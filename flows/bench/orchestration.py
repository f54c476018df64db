"""The orchestration's own share of an iteration: when no worker plays, trains or evaluates."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from chess_snn.bench.report import BenchReport
from chess_snn.campaign import CampaignFolder, Receipt, load_config, read_receipts
from chess_snn.campaign.viewing.alarms import Alarm
from chess_snn.campaign.viewing.live import WorkerProgress
from flows.bench.busy_times import noted_busy_times, union_s
from flows.launch import launch_campaign
from tasks.progress import StageProgress

MOST_SHARE: Final = 0.05
_ITERATIONS: Final = 3
_SELF_PLAY_S: Final = 45.0
"""Of an iteration; with training and the evaluation that training waits for, about a minute."""
_GAMES_QUICK: Final = 16
_SHARDS: Final = 8
_SETTINGS: Final = (
    "execution.device=cpu", "execution.workers=2", "net.precision=int8",
    "self_play.max_plies_first=60", "self_play.max_plies_last=60", "search.simulations_first=8",
    "search.simulations_last=8", "training.presentations=1.0", 'evaluation.opponents=["random"]',
    "evaluation.num_openings=4", "evaluation.max_plies=60", "promotion.max_openings=4",
    f"campaign.iterations={_ITERATIONS}",
)


class _Silent:
    """A listener that tells nobody."""

    def message(self, text: str) -> None:
        """See :class:`tasks.progress.Listener`."""

    def stage(self, progress: StageProgress) -> None:
        """See :class:`tasks.progress.Listener`."""

    def workers(self, workers: Sequence[WorkerProgress]) -> None:
        """See :class:`tasks.progress.Listener`."""

    def iteration_finished(self, receipt: Receipt, alarms: Sequence[Alarm]) -> None:
        """See :class:`tasks.progress.Listener`."""


def measure_orchestration(
    report: BenchReport, scratch: Path, games_per_s: float, quick: bool
) -> None:
    """Run a campaign of three iterations, and add what its workers did not do.

    Args:
        report: of the benchmark.
        scratch: a folder for the campaign.
        games_per_s: of self-play with two workers, for iterations of about a minute.
        quick: whether a few games are enough.
    """
    games = _GAMES_QUICK if quick else round(_SELF_PLAY_S * games_per_s)
    folder = CampaignFolder.create(scratch / "campaign", load_config(settings=(
        *_SETTINGS, f"self_play.games_per_iteration={games}",
        f"self_play.games_per_shard={-(-games // _SHARDS)}",
    )))
    with noted_busy_times() as intervals:
        launch_campaign(folder, _Silent(), lambda server, seconds: None)
    receipts = read_receipts(folder)
    # From the first plan to the last receipt: servers and workers were up before.
    span_s = receipts[-1].elapsed_s - receipts[0].plan.elapsed_s
    own_s = span_s - union_s(intervals)
    report.add("iteration", span_s / len(receipts), "s")
    report.add("orchestration, own time an iteration", own_s / len(receipts), "s")
    report.add(
        "orchestration, share of the iterations", own_s / span_s, "share",
        at_most=None if quick else MOST_SHARE,
    )
    report.notes.append(
        f"The share is of {len(receipts)} iterations of a campaign with its Prefect server, MLflow "
        f"store and 2 workers: time in which no worker was at work, of {len(intervals)} calls."
    )
