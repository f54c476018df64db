"""What the flows of one campaign share and Prefect parameters cannot carry: live connections."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from chess_snn.campaign import CampaignFolder
from flows.cluster import Crew
from tasks.progress import ProgressBoard


@dataclass(frozen=True, slots=True)
class CampaignRun:
    """A campaign that is running in this process."""

    folder: CampaignFolder
    crew: Crew
    board: ProgressBoard
    tracking_uri: str


_current: ContextVar[CampaignRun] = ContextVar("campaign_run")


def current_run() -> CampaignRun:
    """The campaign that this code runs in.

    Raises:
        LookupError: called outside the campaign flow.
    """
    return _current.get()


@contextmanager
def running(run: CampaignRun) -> Iterator[None]:
    """Make ``run`` the current one for the length of the block."""
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)
