"""The listeners of a campaign's events: two logs, Prefect's pages, and the file of ``watch``.

Each is a function of one event (:mod:`chess_snn.campaign.viewing.events`).
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import Final

from prefect.events import emit_event

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.viewing.events import (
    AlarmRaised,
    Event,
    Listener,
    StageProgress,
    WorkersProgress,
)
from chess_snn.campaign.viewing.lines import NowAndThen, event_lines
from chess_snn.campaign.viewing.live import PERIOD_S, Live, write_live
from chess_snn.errors import UsageError
from flows.progress_artifact import ProgressArtifact

ALARM_EVENT: Final = "chess-snn.alarm"
"""Begins the name of the Prefect event: ``chess-snn.alarm.draw-collapse``."""

_logger = logging.getLogger(__name__)

_extra: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Pass ``listener`` the events of every campaign that runs in the block."""
    token = _extra.set((*_extra.get(), listener))
    try:
        yield
    finally:
        _extra.reset(token)


def extra_listeners() -> list[Listener]:
    """Those of the enclosing :func:`listening` blocks."""
    return list(_extra.get())


def log_lines(logger: logging.Logger | logging.LoggerAdapter[logging.Logger]) -> Listener:
    """Writes lines to ``logger``; those of progress now and then."""
    is_due = NowAndThen()

    def listen(event: Event) -> None:
        if is_due(event):
            level = logging.WARNING if isinstance(event, AlarmRaised) else logging.INFO
            for line in event_lines(event):
                logger.log(level, "%s", line)

    return listen


def campaign_log(folder: CampaignFolder) -> logging.Logger:
    """A logger that appends to the campaign's log file: a line a message, with its time."""
    logger = logging.Logger(f"campaign {folder.campaign_id}")
    logger.addHandler(_LogFile(folder.log_file))
    return logger


class _LogFile(logging.Handler):
    """Never fails: a full disk must not end the campaign for the sake of its log."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._has_warned = False

    def emit(self, record: logging.LogRecord) -> None:
        """Append a line."""
        time_s = datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="seconds")
        line = " ".join(record.getMessage().split("\n"))
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{time_s} {line}\n")
        except OSError as error:
            if not self._has_warned:
                _logger.warning("%s lacks lines: %s", self._path, error.strerror)
            self._has_warned = True


def progress_artifact() -> Listener:
    """Shows a stage as a progress artifact in Prefect, and under it the workers.

    Call it inside a flow run, to which the artifact then belongs.
    """
    artifact, live = ProgressArtifact("iteration-progress"), Live()

    def listen(event: Event) -> None:
        nonlocal live
        live = live.after(event)
        if isinstance(event, StageProgress):
            lines = [str(event), *event_lines(WorkersProgress(live.workers))]
            artifact.show(event.share, "\n\n".join(lines), is_last=event.has_ended)

    return listen


def live_file(folder: CampaignFolder) -> Listener:
    """Writes the newest progress to the file that ``chess-snn watch`` reads, now and then."""
    live, next_s = Live(), 0.0

    def listen(event: Event) -> None:
        nonlocal live, next_s
        live = live.after(event)
        if not isinstance(event, WorkersProgress) or time.monotonic() < next_s:
            return
        next_s = time.monotonic() + PERIOD_S
        try:
            write_live(folder, live)
        except UsageError as error:
            # The view may lag; a disk that stays full stops the campaign elsewhere.
            _logger.warning("workers are not shown by chess-snn watch: %s", error)

    return listen


def alarm_events(folder: CampaignFolder) -> Listener:
    """Emits a Prefect event for each alarm, so that automations can react to it.

    Prefect relates it to the flow run that the alarm is told in. Prefect sends events from a thread
    of its own; an unreachable server delays nothing.
    """
    def listen(event: Event) -> None:
        if not isinstance(event, AlarmRaised):
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
