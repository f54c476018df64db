"""Listeners of a campaign's events: logs, and the file that ``watch`` reads.

Each is a function of one event (:mod:`chess_snn.campaign.viewing.events`). Those of Prefect's pages
are in :mod:`flows.prefect_pages`.
"""

import logging
import time
from datetime import datetime

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.viewing import events
from chess_snn.campaign.viewing.lines import NowAndThen, event_lines
from chess_snn.campaign.viewing.live import PERIOD_S, Live, write_live
from chess_snn.errors import UsageError

_logger = logging.getLogger(__name__)


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
        lines = (" ".join(line.split("\n")) for line in event_lines(event))
        try:
            with folder.log_file.open("a", encoding="utf-8") as file:
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
        next_s = time.monotonic() + PERIOD_S
        try:
            write_live(folder, live)
        except UsageError as error:
            # The view may lag; a disk that stays full stops the campaign elsewhere.
            _logger.warning("workers are not shown by chess-snn watch: %s", error)

    return listen
