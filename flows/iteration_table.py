"""A listener that shows each iteration as a table in Prefect: its results and workers."""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Final

import httpx
from prefect.artifacts import create_table_artifact

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.store.receipts import ShardFacts
from chess_snn.campaign.viewing.events import Event, IterationFinished, Listener, WorkerShare
from chess_snn.evaluation.solo import interval_text
from chess_snn.self_play import SelfPlayStatistics, combine
from flows.links import mlflow_link
from tasks.cluster.attempts import Done
from tasks.summary_lines import outcomes_text, promotion_line, was_played_now

_FIGURES: Final = {
    "train/total_loss": ("training", "loss, total"),
    "train/policy_loss": ("training", "loss, policy"),
    "train/value_loss": ("training", "loss, value"),
    "train/holdout_value_loss": ("training", "loss, value, on games held out"),
    "train/samples_per_s": ("training", "samples/s"),
    "train/ranks": ("training", "ranks"),
    "evaluation/points_mean": ("evaluation", "points, mean"),
    "evaluation/points_median": ("evaluation", "points, median"),
    "evaluation/points_best": ("evaluation", "points, most"),
    "evaluation/score": ("evaluation", "mean score"),
    "evaluation/conversion_rate": ("evaluation", "share of won positions converted"),
    "evaluation/climb_elo": ("evaluation", "Elo on the ladder"),
    "device/utilisation": ("devices", "share in use"),
    "device/memory_gib": ("devices", "memory of each, GiB"),
}
"""Metrics of a receipt that have a row: its first two columns."""

_logger = logging.getLogger(__name__)

Row = Mapping[str, str]


def artifact_key(folder: CampaignFolder) -> str:
    """Names the tables of a campaign: its history on Prefect's page has a version an iteration."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")
    return f"campaign-{name}-{folder.campaign_id[:8]}"


def iteration_table(folder: CampaignFolder, tracking_uri: str) -> Listener:
    """Creates the artifact when an iteration has finished; without it if Prefect is unreachable.

    The event must be told in the context of a flow run, to which the table then belongs.
    """
    def listen(event: Event) -> None:
        if not isinstance(event, IterationFinished):
            return
        receipt = event.receipt
        try:
            create_table_artifact(
                table=[dict(row) for row in table_rows(event)],
                key=artifact_key(folder),
                description=(
                    f"**{folder.name}, iteration {receipt.iteration}**: {promotion_line(receipt)}"
                    f"\n\nMLflow: {mlflow_link(folder, tracking_uri)}"
                ),
            )
        except httpx.HTTPError as error:
            _logger.warning("the iteration's table is not shown in Prefect: %s", error)

    return listen


def table_rows(finished: IterationFinished) -> list[Row]:
    """Three columns: the part of the iteration, the figure's name, the figure."""
    receipt = finished.receipt
    games, metrics = receipt.statistics, receipt.metrics()
    return [
        _row("self-play", "games", f"{games.games:,}"),
        _row("self-play", "outcomes", outcomes_text(games)),
        _row("self-play", "plies a game", f"{games.plies_mean:.1f}"),
        _row("self-play", "games/s", f"{metrics['self_play/games_per_s']:.2f}"),
        *_worker_rows(finished.shares),
        *(_row(part, name, f"{metrics[metric]:,.3f}".removesuffix(".000"))
          for metric, (part, name) in _FIGURES.items() if metric in metrics),
        *(_row("evaluation", f"score against {match['name']}",
               f"{match['score']:.3f} ({match['score_low']:.3f} to {match['score_high']:.3f})")
          for match in receipt.matches),
        *(_row("evaluation", f"points ahead of {match['name']}",
               interval_text(match["points"]["ahead"]))
          for match in receipt.matches if "points" in match),
        _row("promotion", "decision", promotion_line(receipt)),
    ]


def _worker_rows(shares: Sequence[WorkerShare]) -> list[Row]:
    """A row for each worker: games, games/s, and its share of the games."""
    total = sum(share.games for share in shares)
    return [
        _row(share.worker, "games, games/s, share",
             f"{share.games:,}, {share.games_per_s:.2f}/s, {share.games / total:.0%}")
        for share in shares
    ]


def _row(part: str, figure: str, value: str) -> Row:
    return {"part": part, "figure": figure, "value": value}


def worker_shares(played: Sequence[Done[ShardFacts]]) -> list[WorkerShare]:
    """Who played the shards of an iteration, by name."""
    by_worker: dict[str, list[SelfPlayStatistics]] = {}
    for done in played:
        name = f"{done.worker}, {done.device}" if was_played_now(done) else "an earlier run"
        by_worker.setdefault(name, []).append(SelfPlayStatistics.from_json(done.result.statistics))
    combined = {name: combine(parts) for name, parts in sorted(by_worker.items())}
    return [WorkerShare(name, own.games, own.games / own.seconds) for name, own in combined.items()]
