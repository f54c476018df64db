"""A note that every view of a finished campaign is up to date: report, MLflow's run, flow runs.

A resume of such a campaign has nothing to do, and need not start a server to find that out. The
note is a view itself: it may be deleted.
"""

from contextlib import suppress
from typing import Final

from chess_snn.campaign.store.folder import (
    EXTENSION,
    HAND_PROMOTION,
    MATCH,
    NOTE,
    RECEIPT,
    REMOVAL,
    REPORT,
    CampaignFolder,
)
from chess_snn.errors import without_credentials

_NAME: Final = "views-up-to-date"
_SHOWN: Final = tuple(
    path.partition("/")[0]
    for path in (RECEIPT, MATCH, HAND_PROMOTION, EXTENSION, NOTE, REMOVAL)
)
"""Folders of what views show; no network or game changes without a receipt or a note."""


def note_up_to_date(folder: CampaignFolder, store: str) -> None:
    """Note that the views have all of the campaign; ``store`` is the address of MLflow's."""
    with suppress(OSError):  # the next resume looks again
        (folder.services / _NAME).write_text(without_credentials(store))


def is_up_to_date(folder: CampaignFolder, store: str) -> bool:
    """Whether that was noted for the same store, and nothing has been committed since."""
    note, report = folder.services / _NAME, folder.path / REPORT
    if not (note.is_file() and report.is_file()):
        return False
    if note.read_text(errors="replace") != without_credentials(store):
        return False
    noted_ns = note.stat().st_mtime_ns
    return max(report.stat().st_mtime_ns, newest_change(folder)[1]) <= noted_ns


def newest_change(folder: CampaignFolder) -> tuple[int, int]:
    """Number of the files that views show, and when the newest was written, in ns since 1970."""
    shown = [path for name in _SHOWN for path in (folder.path / name).rglob("*.json")]
    return len(shown), max((path.stat().st_mtime_ns for path in shown), default=0)
