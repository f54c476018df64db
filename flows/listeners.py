"""Listeners of a campaign's events: logs, the file that ``watch`` reads, and Prefect's pages.

Each is a function of one event (:mod:`chess_snn.campaign.viewing.events`).
"""

import logging
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Final
from uuid import UUID

import httpx
from prefect import get_client
from prefect.artifacts import create_progress_artifact, create_table_artifact
from prefect.client.schemas.actions import ArtifactUpdate
from prefect.events import emit_event

from chess_snn.campaign import CampaignFolder, Receipt
from chess_snn.campaign.viewing import events
from chess_snn.campaign.viewing.figures import figure_row, shown_at
from chess_snn.campaign.viewing.lines import NowAndThen, event_lines
from chess_snn.campaign.viewing.live import PERIOD_S as LIVE_PERIOD_S
from chess_snn.campaign.viewing.live import Live, write_live
from chess_snn.data.plain_files import open_in_place
from chess_snn.errors import UsageError, one_line
from chess_snn.flows.links import artifact_key, mlflow_link
from chess_snn.tasks.summary_lines import outcomes_text, promotion_line

PERIOD_S: Final = 2.0
PAUSE_AFTER_FAILURE_S: Final = 30.0
ALARM_EVENT: Final = "chess-snn.alarm"
"""Begins the name of the Prefect event: ``chess-snn.alarm.draw-collapse``."""
_logger = logging.getLogger(__name__)

Row = Mapping[str, str]


def log_lines(logger: logging.Logger | logging.LoggerAdapter[logging.Logger]) -> events.Listener:
    """Writes lines to ``logger``; those of progress now and then."""
    is_due = NowAndThen()

    def listen(event: events.Event) -> None:
        if is_due(event):
            level = logging.WARNING if isinstance(event, events.AlarmRaised) else logging.INFO
            for line in event_lines(event):
                logger.log(level, "%s", line)

    return listen


def log_file(folder: CampaignFolder) -> events.Listener:
    """Appends lines to the campaign's log file, each with its time.

    It never fails: a full disk must not end the campaign for the sake of its log.
    """
    is_due, has_warned = NowAndThen(), False

    def listen(event: events.Event) -> None:
        nonlocal has_warned
        if not is_due(event):
            return
        time_s = datetime.now().astimezone().isoformat(timespec="seconds")
        lines = (one_line(" ".join(line.split("\n"))) for line in event_lines(event))
        try:
            with open(folder.log_file, "a", encoding="utf-8", opener=open_in_place) as file:
                file.writelines(f"{time_s} {line}\n" for line in lines)
        except OSError as error:
            if not has_warned:
                _logger.warning("%s lacks lines: %s", folder.log_file, error.strerror)
            has_warned = True

    return listen


def live_file(folder: CampaignFolder) -> events.Listener:
    """Writes the newest progress to the file that ``chess-snn watch`` reads, now and then."""
    live, next_s = Live(), 0.0

    def listen(event: events.Event) -> None:
        nonlocal live, next_s
        live = live.after(event)
        is_progress = isinstance(event, events.StageProgress | events.WorkersProgress)
        if not is_progress or time.monotonic() < next_s:
            return
        next_s = time.monotonic() + LIVE_PERIOD_S
        try:
            write_live(folder, live)
        except UsageError as error:
            # The view may lag; a disk that stays full stops the campaign elsewhere.
            _logger.warning("workers are not shown by chess-snn watch: %s", error)

    return listen


def progress_artifact() -> events.Listener:
    """Shows a stage as a progress artifact in Prefect, and under it the workers.

    It ends at 100 % with the campaign, and stays where it is if that fails or is stopped. Call it
    inside a flow run, to which the artifact then belongs.
    """
    artifact, live = _ProgressArtifact(), Live()

    def listen(event: events.Event) -> None:
        nonlocal live
        live = live.after(event)
        if isinstance(event, events.StageProgress):
            share, is_last = event.share, event.has_ended
        elif isinstance(event, events.CampaignFinished):
            share, is_last = 1.0, True
        else:
            return
        lines = [*event_lines(event), *event_lines(events.WorkersProgress(live.workers))]
        artifact.show(share, "\n\n".join(lines), is_last=is_last)

    return listen


class _ProgressArtifact:
    """A Prefect progress artifact, updated every two seconds at most.

    The server may be away, at the beginning too: the picture lags then, and the work goes on.
    """

    def __init__(self) -> None:
        """Create it inside a flow run."""
        self._artifact: UUID | None = None
        self._next_update = 0.0
        self.show(0.0, "starting")

    def show(self, share: float, text: str, *, is_last: bool = False) -> None:
        """Show which ``share`` is done, in [0, 1], now and then; the last is always shown."""
        now, percent = time.monotonic(), share * 100
        if now < self._next_update and not is_last:
            return
        try:
            if self._artifact is None:
                created = create_progress_artifact(
                    percent, key="iteration-progress", description=text
                )
                self._artifact = created  # called here it is sync
                return
            self._next_update = now + PERIOD_S
            with get_client(sync_client=True) as client:
                client.update_artifact(
                    self._artifact, ArtifactUpdate(data=percent, description=text)
                )
        except httpx.HTTPError as error:
            _logger.warning("progress is not shown in Prefect: %s", error)
            self._next_update = time.monotonic() + PAUSE_AFTER_FAILURE_S


def iteration_table(folder: CampaignFolder) -> events.Listener:
    """Creates the artifact when an iteration has finished; without it if Prefect is unreachable.

    The event must be told in the context of a flow run, to which the table then belongs.
    """
    def listen(event: events.Event) -> None:
        if not isinstance(event, events.IterationFinished):
            return
        receipt = event.receipt
        try:
            create_table_artifact(
                table=[dict(row) for row in table_rows(folder, receipt)],
                key=artifact_key(folder),
                description=(
                    f"**{folder.name}, iteration {receipt.iteration}**: {promotion_line(receipt)}"
                    f"\n\n{mlflow_link(folder)}"
                ),
            )
        except httpx.HTTPError as error:
            _logger.warning("the iteration's table is not shown in Prefect: %s", error)

    return listen


def table_rows(folder: CampaignFolder, receipt: Receipt) -> list[Row]:
    """Three columns: the part of the iteration, the figure's name, the figure."""
    figures = shown_at(folder.config, "run")
    row = figure_row(receipt, figures)
    return [
        _row("strength", "decision", promotion_line(receipt)),
        *(_row(figure.group.replace("_", "-"), figure.title, text)
          for figure in figures if (text := figure.text(row))),
        _row("self-play", "outcomes", outcomes_text(receipt.statistics)),
    ]


def _row(part: str, figure: str, value: str) -> Row:
    return {"part": part, "figure": figure, "value": value}


def alarm_events(folder: CampaignFolder) -> events.Listener:
    """Emits a Prefect event for each alarm, so that automations can react to it.

    Prefect relates it to the flow run that reports the alarm. Prefect sends events from a thread
    of its own; an unreachable server delays nothing.
    """
    def listen(event: events.Event) -> None:
        if not isinstance(event, events.AlarmRaised):
            return
        alarm = event.alarm
        emit_event(
            event=f"{ALARM_EVENT}.{alarm.name.replace(' ', '-')}",
            resource={
                "prefect.resource.id": f"chess-snn.campaign.{folder.campaign_id}",
                "prefect.resource.name": folder.name,
            },
            payload={
                "campaign": folder.name, "directory": str(folder.path), "alarm": alarm.name,
                "since_iteration": alarm.since_iteration, "saw": alarm.saw,
                "advice": alarm.advice,
            },
        )

    return listen
