"""A campaign for the page, from its folder alone: its live line, and its report.

It works as ``chess-snn watch`` does: nothing is written and no lock is taken.
"""

import base64
import hashlib
import threading
import time
from pathlib import Path
from typing import Final

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.plans import campaign_length
from chess_snn.campaign.viewing.lines import duration
from chess_snn.campaign.viewing.up_to_date import newest_change
from chess_snn.campaign.viewing.watching import CampaignView, CampaignWatch
from chess_snn.report.page import report_html, report_script, report_style
from chess_snn.types import Json
from chess_snn.wording import counted

_LOOK_PERIOD_S: Final = 1.0
"""Browsers that ask more often get the same answer."""


class CampaignPage:
    """One campaign, read again and again. Its methods may be called in any thread."""

    def __init__(self, directory: Path) -> None:
        """Open the campaign in ``directory``.

        Raises:
            CampaignError: there is none.
        """
        self.folder = CampaignFolder.open(directory)
        self._watch = CampaignWatch(directory)
        self._look_lock, self._report_lock = threading.Lock(), threading.Lock()
        self._next_s, self._last = 0.0, Json()
        self._report, self._made_of = "", (0, 0)

    def state(self) -> Json:
        """The campaign now, in one line.

        Raises:
            CampaignError: its folder is gone, or cannot be read.
            CorruptDataError: a file of it is damaged.
        """
        with self._look_lock:
            if time.monotonic() >= self._next_s:
                self._last = _describe(self._watch.look())
                self._next_s = time.monotonic() + _LOOK_PERIOD_S
            return self._last

    def report(self) -> str:
        """The report as HTML; it is made again only after the folder changed, one at a time.

        Raises:
            CorruptDataError: a plan or a receipt is damaged.
        """
        with self._report_lock:
            made_of = newest_change(self.folder)
            if not self._report or made_of != self._made_of:
                self._report, self._made_of = report_html(self.folder), made_of
            return self._report


def report_policy() -> str:
    """The content security policy of a report: its own style and script, and a frame of ours."""
    style, script = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (report_style(), report_script())
    )
    return (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )


def _describe(view: CampaignView) -> Json:
    pace = sum(worker.games_per_s for worker in view.workers)
    left = None if view.is_finished or view.seconds_left is None else view.seconds_left
    line = [
        view.state_text, f"{view.progress:.0%} of {campaign_length(view.folder)}",
        f"ran for {duration(view.elapsed_s)}",
        None if left is None else f"{duration(left)} left",
        f"{pace:.1f} games/s by {counted(len(view.workers), 'worker')}" if view.workers else None,
        *map(str, view.stages),
    ]
    return {
        "line": " · ".join(filter(None, line)),
        "progress": view.progress,
        "version": f"{len(view.receipts)} {view.champion} {view.is_finished}",
    }
