"""Listeners of a campaign's events: logs, and the file that ``watch`` reads.

Each is a function of one event (:mod:`chess_snn.campaign.viewing.events`). Those of Prefect's pages
are in :mod:`flows.prefect_pages`.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path

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


def live_file(folder: CampaignFolder) -> Listener:
    """Writes the newest progress to the file that ``chess-snn watch`` reads, now and then."""
    live, next_s = Live(), 0.0

    def listen(event: Event) -> None:
        nonlocal live, next_s
        live = live.after(event)
        is_progress = isinstance(event, StageProgress | WorkersProgress)
        if not is_progress or time.monotonic() < next_s:
            return
        next_s = time.monotonic() + PERIOD_S
        try:
            write_live(folder, live)
        except UsageError as error:
            # The view may lag; a disk that stays full stops the campaign elsewhere.
            _logger.warning("workers are not shown by chess-snn watch: %s", error)

    return listen
